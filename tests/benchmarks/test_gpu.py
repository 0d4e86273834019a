"""`benchmarks/gpu.py` goes through its steps on a CPU, says what a machine lacks, and
repeats no run that it holds."""

import importlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from whole import EVERY, WHOLE

from course_lab import configurations, records
from course_lab import gpu as tables

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield importlib.import_module("gpu")
    for name in ("gpu", "gpu_steps"):
        sys.modules.pop(name, None)


def gpu_steps():
    return sys.modules["gpu_steps"]


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/gpu.py", *map(str, words)]
    # Of the library's tests it runs the fast ones, whichever run here.
    here = os.environ | {"COURSE_TESTS": ""}
    return subprocess.run(
        command, cwd=ROOT, env=here, capture_output=True, text=True, check=False
    )


#: Made again in vain, and in `make test` the only ones.
REPRESENTATIVES = ("attention",)
#: Left to the workflow: what these steps measure other tests call, too.
ELSEWHERE = {"tests", "answers", "grading", "ladder", "pages"}


def check_tests(rows):
    for row in rows:
        assert row["failed"] == {}
        assert row["passed"] >= row["on_device"] > 0


def check_bert(rows):
    assert len(rows) == 6
    for row, side in product(rows, ("", "peer_")):
        for figure in ("milliseconds", "tokens_a_second", "utilisation", "peak_bytes"):
            assert row[side + figure] > 0


def check_ladder(rows):
    assert rows[0]["mode"] == "ours, nothing switched on"
    assert any(row["mode"] == "torch.compile" for row in rows)
    assert min(row["milliseconds"] for row in rows) > 0


def check_answers(rows):
    [row] = rows
    assert (row["assignment"], row["answer"]) == ("wordpiece", "reference")
    assert row["points"] == row["most"] > 0
    assert row["failed"] == {}


def check_grading(rows):
    """Where no wall can be built, its row says so."""
    assert [row["wall"] for row in rows] == ["bubblewrap", "unsafe"]
    for row in rows:
        assert "refused" in row or row["points"] == row["most"] > 0
    assert "refused" not in rows[-1]


def check_attention(rows):
    peaks = {(row["who"], row["path"], row["length"]): row["bytes"] for row in rows}
    assert len(peaks) == len(rows) == 2 * 2 * 2
    for who in ("ours", "torch"):
        assert peaks[who, "explicit", 16] > peaks[who, "explicit", 8] > 0


def check_words(rows):
    for row in rows:
        for kinds in (x for model, x in row.items() if model != "length"):
            assert min(min(times) for times in kinds.values()) > 0


def check_pretraining(rows):
    [row] = rows
    assert (row["data"], row["steps"]) == ("wikitext2_raw", 2)
    assert {"model", "untrained", "unigram"} <= row["test"].keys()


def check_finetuning(rows):
    variants = [row["variant"] for row in rows]
    assert sorted(variants) == ["cola, fine-tuned", "stsb, fine-tuned"]
    assert {row["rows"] for row in rows} == {96}


def check_pairs(rows):
    assert len(rows) == 3
    assert min(row["ratio"] for row in rows) > 1


def check_pages(rows):
    assert [(row["page"], row["errors"]) for row in rows] == [("04-wordpiece-lab", {})]


@pytest.mark.slow
def test_a_dry_run_goes_through_every_step_and_a_second_one_repeats_nothing(
    gpu, tmp_path
):
    steps = [name for name in gpu.STEPS if EVERY or name not in ELSEWHERE]
    steps = steps if WHOLE else [*REPRESENTATIVES]
    done = run("--dry-run", "--folder", tmp_path, *steps)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == sorted(
        f"gpu-{name}" for name in steps
    )
    for name in steps:
        record = records.load(f"gpu-{name}", tmp_path)
        globals()[f"check_{name}"](record.results)
        assert tables.table(name, record.results) in done.stdout
    before = {path: path.read_bytes() for path in tmp_path.glob("*.json")}
    assert run("--dry-run", "--folder", tmp_path, *REPRESENTATIVES).returncode == 0
    assert {path: path.read_bytes() for path in before} == before


def test_a_slice_takes_nine_minutes_at_most_and_all_of_them_25(gpu):
    slices = [step.slice for step in gpu.STEPS.values()]
    assert slices == sorted(slices), "in the order of their worth"
    assert set(slices) == {1, 2, 3}
    limits = {
        number: sum(s.minutes for s in gpu.STEPS.values() if s.slice == number)
        for number in (1, 2, 3)
    }
    assert max(limits.values()) <= 9
    assert sum(limits.values()) <= 25


def test_a_slice_is_made_of_its_own_steps(gpu, monkeypatch):
    tried = []
    monkeypatch.setattr(
        gpu, "attempt", lambda name, *others: tried.append(name) or True
    )
    for number in gpu.SLICES:
        assert gpu.main(["--slice", str(number)]) == 0
    assert tried == list(gpu.STEPS)


def test_what_a_step_measures_on_a_gpu_and_in_a_dry_run_are_settings_of_one_kind(gpu):
    for name, step in gpu.STEPS.items():
        assert type(step.settings) is type(step.tiny), name
        assert (step.settings.device, step.tiny.device) == ("cuda", "cpu"), name
    assert gpu.STEPS.keys() == tables.TABLES.keys()


def test_a_run_that_raises_stops_no_other_and_is_tried_again(gpu, tmp_path, capsys):
    def broken():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    runs = [({"what": "a"}, broken), ({"what": "b"}, lambda: {"found": 1})]
    for _ in range(2):
        failed = gpu.do_runs("gpu-two", ["python"], {}, iter(runs), tmp_path)
        assert failed == [{"what": "a"}]
        assert "an illegal memory access" in capsys.readouterr().err
    assert records.load("gpu-two", tmp_path).results == [{"what": "b", "found": 1}]


def test_a_run_whose_process_dies_ends_no_other(gpu, tmp_path):
    def runs():
        given = gpu.Given(None, [], None, tmp_path)
        work = [({"what": str(n)}, (in_a_process, os._exit, n)) for n in (3, 4)]
        work.append(({"what": "pid"}, (in_a_process, os.getpid)))
        return gpu_steps().as_they_end(given, ThreadPoolExecutor(2), work)

    in_a_process = gpu_steps().in_a_process
    found = {}
    for key, run in runs():
        try:
            found[key["what"]] = run()
        except BrokenProcessPool:
            found[key["what"]] = None
    assert found.keys() == {"3", "4", "pid"}
    assert found["3"] is found["4"] is None
    assert found["pid"] not in (None, os.getpid())


def test_a_missing_folder_of_data_is_said_in_words(gpu, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(gpu.multiprocessing, "get_context", None)  # nothing is started
    assert gpu.main(["finetuning", "--folder", str(tmp_path)]) == 1
    assert (
        "finetuning not run: it reads public data; name a folder that has rte, mrpc,"
        " stsb, cola, sst2 with --data" in capsys.readouterr().out
    )
    (tmp_path / "rte").mkdir()
    words = ["finetuning", "--folder", str(tmp_path), "--data", str(tmp_path)]
    assert gpu.main(words) == 1
    assert f"{tmp_path} has no mrpc, stsb, cola, sst2;" in capsys.readouterr().out


def test_a_corpus_that_no_folder_has_is_left_out_in_words(gpu, capsys, tmp_path):
    settings = replace(gpu.STEPS["pretraining"].settings, sizes=("mini",))
    for data in (None, str(tmp_path)):
        given = gpu.Given(settings, [], data, tmp_path)
        keys = [key for key, _ in gpu.STEPS["pretraining"].runs(given)]
        assert [key["data"] for key in keys] == ["stories", "pydocs"]
        assert (
            "mini on wikitext2_raw left out: name a folder with wikitext2_raw/train.txt"
            in capsys.readouterr().out
        )
    (tmp_path / "wikitext2_raw").mkdir()
    (tmp_path / "wikitext2_raw" / "train.txt").touch()
    assert len(list(gpu.STEPS["pretraining"].runs(given))) == 3


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
        "tests not run: this Python lacks datasets, beartype: pip install datasets"
        " beartype" in told
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
        gpu_steps(), "test_file", lambda file, device: tried.append(file.name) or {}
    )
    step, held = gpu.STEPS["tests"], [{"file": "test_muon.py"}]
    runs = step.runs(gpu.Given(step.tiny, held, None, ROOT))
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
    found = gpu_steps().test_file(tmp_path / "test_none.py", "cpu")
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
    assert configurations.as_json(settings) == record.configuration
