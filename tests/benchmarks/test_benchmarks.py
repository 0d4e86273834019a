"""The benchmarks run, measure what they say, and their records can be made again. No
test here asserts a time."""

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_lab import records

ROOT = Path(__file__).parents[2]
SMALL = [
    "--rounds",
    "2",
    "--batch",
    "2",
    "--length",
    "8",
    "--dim",
    "16",
    "--heads",
    "2",
]
MORE = {
    "attention": [
        "--memory-dim",
        "8",
        "--memory-heads",
        "2",
        "--memory-lengths",
        "16",
        "32",
    ],
    "transformer": ["--hidden-dim", "24", "--vocab", "20", "--layers", "1"],
}
MODULES = (
    *(
        "side_by_side",
        "attention",
        "transformer",
        "tokenizer",
        "tokenizer_agreement",
        "bert_sides",
        "bert",
    ),
    *("sentence_bert", "red_team", "stock_cage"),
)
BENCHMARKS = pytest.mark.parametrize("name", ["attention", "transformer"])


@pytest.fixture
def benchmark(monkeypatch):
    """A program of benchmarks/, imported as Python runs it: from its own folder, whose
    names mean nothing elsewhere."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for module in MODULES:  # the mutants of an assignment have such names, too
        monkeypatch.delitem(sys.modules, module, raising=False)
    yield importlib.import_module
    for module in MODULES:
        sys.modules.pop(module, None)


@pytest.mark.slow
@BENCHMARKS
def test_it_runs_at_a_tiny_size_and_its_table_has_all_rows(name):
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", *SMALL, *MORE[name]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in done.stdout.splitlines()
        if "│" in line
    ]
    calls = {
        "attention": ["self", "self, causal", "self, padding", "cross, padding"],
        "transformer": ["encoder", "encoder, no padding", "decoder", "Transformer"],
    }[name]
    expected = [
        [device, precision, call, mode, dropout]
        for device in devices
        for precision in (
            ("fp32",)
            if f"bf16 is left out on {device}" in done.stdout
            else ("fp32", "bf16")
        )
        for call in calls
        for mode, dropout in (
            ("forward", "0"),
            ("training step", "0"),
            ("training step", "0.1"),
        )
    ]
    times = [row for row in rows if len(row) == 8]
    assert [row[:5] for row in times] == expected
    assert all(
        re.fullmatch(r"\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)", row[7]) for row in times
    )
    memory = [row[:3] for row in rows if len(row) == 6]
    wanted = [
        [d, who, path]
        for d in devices
        for who in ("ours", "torch")
        for path in ("fused", "explicit")
    ]
    assert memory == (wanted if name == "attention" else [])
    # torch's build for GPUs says on a machine without one that it has found none
    said = [line for line in done.stderr.splitlines() if "gpuGetDevice" not in line]
    assert said == []


@pytest.mark.parametrize(
    ("who", "path", "exponent"), [("ours", "fused", 1), ("ours", "explicit", 2)]
)
def test_memory_grows_with_the_length_on_the_fused_path_and_with_its_square_in_the_open(
    benchmark, who, path, exponent
):
    """torch's allocator counts the same bytes on every run. The constant part pulls
    both exponents down a little."""
    attention = benchmark("attention")
    settings = attention.Settings(
        memory_dim=16, memory_heads=2, memory_lengths=(256, 512, 1024, 2048)
    )
    measured = attention.memory_of(settings, who, path, torch.device("cpu"))
    assert measured["exponent"] == pytest.approx(exponent, abs=0.1)


def test_peak_memory_is_what_lived_at_once_and_not_what_was_ever_made(benchmark):
    side_by_side = benchmark("side_by_side")

    def step():
        first = torch.ones(1000)  # 4,000 bytes
        second = first + first  # 4,000 more
        del first
        return second + second  # in the place of the first

    assert side_by_side.peak_bytes(step, torch.device("cpu")) == 8000


def test_programs_that_compute_different_things_are_not_compared(benchmark):
    side_by_side = benchmark("side_by_side")
    side_by_side.check_same("encoder", torch.ones(2), torch.ones(2) + 1e-6, "fp32")
    for other in (torch.tensor([1.0, 1.01]), torch.tensor([1.0, torch.nan])):
        with pytest.raises(RuntimeError, match="encoder: ours and torch's differ by"):
            side_by_side.check_same("encoder", torch.ones(2), other, "fp32")


def test_a_race_reports_the_median_ratio_whoever_goes_first(benchmark, monkeypatch):
    """By a clock that the two contestants move themselves: ours by 2 seconds a call,
    torch's by 3."""
    side_by_side = benchmark("side_by_side")
    now, order = [0.0], []

    def runs(name, took):
        def step():
            order.append(name)
            now[0] += took

        return step

    for clock in ("process_time", "perf_counter"):
        monkeypatch.setattr(side_by_side.time, clock, lambda: now[0])
    result = side_by_side.race(
        runs("ours", 2.0), runs("theirs", 3.0), torch.device("cpu"), rounds=5
    )
    assert (result["ratio"], result["low"], result["high"], result["rounds"]) == (
        1.5,
        1.5,
        1.5,
        5,
    )
    assert (result["milliseconds"], result["peer_milliseconds"]) == (2000, 3000)
    pairs = [tuple(order[place : place + 2]) for place in range(0, len(order), 2)]
    assert len(pairs) == 5 + side_by_side.WARM_UP
    assert pairs[0] != pairs[1]
    assert pairs[0::2] == [pairs[0]] * len(pairs[0::2])


RECORDED = pytest.mark.parametrize(
    "path", sorted(records.RESULTS.glob("benchmark-*.json")), ids=lambda path: path.stem
)


@RECORDED
def test_a_record_s_command_gives_its_configuration(path, benchmark):
    record = records.load(path.stem)
    program, script, *words = shlex.split(record.command)
    name = path.stem.removeprefix("benchmark-")
    assert (program, script) == ("python", f"benchmarks/{name}.py")
    settings, recorded = benchmark("side_by_side").read_settings(
        benchmark(name).Settings, words, None
    )
    assert recorded
    loaded = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in record.configuration.items()
    }
    assert vars(settings) == loaded


@RECORDED
def test_a_record_says_where_when_and_with_what_it_was_made(path):
    record = records.load(path.stem)
    assert re.fullmatch(r"[0-9a-f]{40}", record.commit), (
        "recorded from files that no commit holds"
    )
    assert record.date.startswith("20")
    # these two time commands, whose processes have a thread each and none of this one's
    assert (
        path.stem in ("benchmark-grading", "benchmark-semester")
        or record.machine["threads"] == record.configuration["threads"]
    )
    assert record.machine["name"]
    assert record.seeds == []


@pytest.mark.records
@pytest.mark.parametrize("name", ["benchmark-attention", "benchmark-transformer"])
def test_a_record_holds_every_row_with_enough_rounds(name):
    rows = [row for row in records.load(name).results if "ratio" in row]
    assert len(
        {
            (row["device"], row["precision"], row["what"], row["mode"], row["dropout"])
            for row in rows
        }
    ) == len(rows)
    assert len([row for row in rows if row["device"] == "cpu"]) == 24
    for row in rows:
        assert row["rounds"] >= 30
        assert row["low"] <= row["ratio"] <= row["high"]


@pytest.mark.records
def test_a_recorded_training_step_of_our_encoder_is_as_fast_as_torch_s():
    rows = [
        row
        for row in records.load("benchmark-transformer").results
        if row["what"].startswith("encoder") and row["mode"] == "training step"
    ]
    # with padding and without, precisions, dropouts
    assert len([row for row in rows if row["device"] == "cpu"]) == 8
    assert [row for row in rows if row["ratio"] < 1] == []


@pytest.mark.records
def test_recorded_memory_grows_with_the_length_on_the_fused_path():
    rows = {
        (row["who"], row["path"]): row["exponent"]
        for row in records.load("benchmark-attention").results
        if row["what"] == "memory"
    }
    assert rows["ours", "fused"] == pytest.approx(1, abs=0.1)
    assert rows["ours", "explicit"] == pytest.approx(2, abs=0.1)
