"""`benchmarks/gpu.py` goes through its steps on a CPU, says what a machine lacks, and
repeats no run that it holds."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from course_lab import records

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield importlib.import_module("gpu")
    sys.modules.pop("gpu", None)


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/gpu.py", *map(str, words)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_dry_run_goes_through_every_step_and_a_second_one_repeats_nothing(
    gpu, tmp_path
):
    done = run("--dry-run", "--folder", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(
        f"gpu-{name}" for name in gpu.STEPS
    )
    for row in records.load("gpu-tests", tmp_path).results:
        assert row["failed"] == {}
        assert row["passed"] >= row["on_device"] > 0
    races = records.load("gpu-bert", tmp_path).results
    assert len(races) == 2 * len(gpu.COMPILED)
    for row in races:
        for side in ("", "peer_"):
            for figure in (
                "milliseconds",
                "tokens_a_second",
                "utilisation",
                "peak_bytes",
            ):
                assert row[side + figure] > 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run("--dry-run", "--folder", tmp_path).returncode == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_package_that_is_not_there_is_said_in_words(
    gpu, monkeypatch, capsys, tmp_path
):
    there = importlib.util.find_spec
    monkeypatch.setattr(
        gpu,
        "find_spec",
        lambda name: None if name in ("beartype", "datasets") else there(name),
    )
    assert gpu.main(["tests", "--dry-run", "--folder", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert (
        "tests not run: this Python lacks beartype, datasets: pip install beartype"
        " datasets" in told
    )
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_a_gpu_is_said_in_words(gpu, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert gpu.main(["bert"]) == 1
    assert (
        "sees no CUDA device here; --dry-run goes through the steps on the CPU"
        in capsys.readouterr().out
    )


def test_a_step_that_takes_too_long_is_ended_and_says_how_to_go_on(tmp_path):
    done = run("bert", "--dry-run", "--minutes", "0.001", "--folder", tmp_path)
    assert done.returncode == 1
    assert (
        "bert ended after 0.001 minutes; call it again for the runs that its record"
        " lacks" in done.stdout
    )


def test_files_of_tests_that_a_record_holds_are_not_run_again(gpu, monkeypatch):
    tried = []
    monkeypatch.setattr(
        gpu, "test_file", lambda file, device: tried.append(file.name) or {}
    )
    runs = list(
        gpu.run_tests(gpu.Tests("cpu", "test_mu*.py", 1), [{"file": "test_muon.py"}])
    )
    assert (
        [key for key, _ in runs]
        == [{"file": name} for name in tried]
        == [{"file": "test_multi_head.py"}]
    )


def test_a_file_that_cannot_be_imported_says_why(gpu, tmp_path):
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--device')\n"
    )
    (tmp_path / "test_none.py").write_text("import no_such_package\n")
    found = gpu.test_file(tmp_path / "test_none.py", "cpu")
    assert found["passed"] == 0
    assert any(
        "No module named 'no_such_package'" in words
        for words in found["failed"].values()
    )


@pytest.mark.parametrize(
    "path", sorted(records.RESULTS.glob("gpu-*.json")), ids=lambda path: path.stem
)
def test_a_record_was_made_with_the_step_s_settings(gpu, path):
    record = records.load(path.stem)
    settings = gpu.STEPS[path.stem.removeprefix("gpu-")].settings
    assert vars(settings) == record.configuration
