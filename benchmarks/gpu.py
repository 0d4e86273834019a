"""What this project asks of a GPU, step by step: `STEPS`, in the order of their worth.

    python benchmarks/gpu.py [tests] [bert]    these steps, or all, on the first CUDA device
    python benchmarks/gpu.py --dry-run         the same steps with tiny sizes on the CPU, in about a minute

A machine with a GPU may be lent for half an hour, without a network, and with nothing
but the packages that it came with. So a step says in words what it lacks; it runs in a
process of its own, which is ended after nine minutes; and it saves each run in
`gpu-<step>.json` as soon as that is done. Called again, it does the runs that the file
lacks; to repeat one, remove it from there. Nothing needs to be installed but what a
step names.
"""  # noqa: E501

import argparse
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
LIBRARY_TESTS = ROOT / "tests" / "library"
MINUTES = 9.0  # of a step, at most
Results: TypeAlias = Sequence[Mapping[str, Any]]
Runs: TypeAlias = Iterator[tuple[Mapping[str, Any], Callable[[], Mapping[str, Any]]]]


@dataclass(frozen=True)
class Step:
    """One thing to measure.

    Parameters
    ----------
    title
        Printed above it.
    needs
        Packages that it imports.
    settings, tiny
        Of a run on a GPU, and of a dry run: two of one dataclass.
    runs
        From the settings and what the record holds already, the runs that it should
        hold, one by one: as `records.run_missing` takes them.
    total
        From the record's results, the sentence that sums them up.
    """

    title: str
    needs: tuple[str, ...]
    settings: Any
    tiny: Any
    runs: Callable[[Any, Results], Runs]
    total: Callable[[Results], str]


@dataclass(frozen=True)
class Tests:
    """Which of the library's tests run, where, and in how many processes."""

    device: str = "cuda"
    files: str = "test_*.py"
    processes: int = 8


def run_tests(settings: Tests, held: Results) -> Runs:
    """Run each file of tests in a process of its own: after a kernel fails, a process
    can compute nothing on a GPU."""
    tried = {row["file"] for row in held}
    files = [
        file
        for file in sorted(LIBRARY_TESTS.rglob(settings.files))
        if file.name not in tried
    ]
    with ThreadPoolExecutor(settings.processes) as pool:
        tested = {pool.submit(test_file, file, settings.device): file for file in files}
        for future in as_completed(tested):
            yield {"file": tested[future].name}, future.result


def test_file(file: Path, device: str) -> dict[str, Any]:
    """How many of a file's fast tests passed, how many of these computed on the device,
    and what the others said."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [
            "-q",
            "-m",
            "not slow",
            "--device",
            device,
            f"--junitxml={report}",
            "-o",
            "junit_family=xunit1",
        ]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                *words,
                str(file),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.is_file():
            said = (done.stdout + done.stderr).strip().splitlines() or [
                f"exit status {done.returncode}"
            ]
            reason = next(
                (line for line in said if "Error" in line or "error:" in line), said[-1]
            )
            return {
                "passed": 0,
                "on_device": 0,
                "skipped": 0,
                "failed": {file.name: reason},
            }
        cases = list(ET.parse(report).iter("testcase"))
    failed, skipped, passed = {}, 0, []
    for case in cases:
        trouble = [part for part in case if part.tag in ("failure", "error")]
        if trouble:
            words = (
                (trouble[0].text or trouble[0].get("message", "")).strip().splitlines()
            )
            failed[case.get("name", "")] = next(
                (line for line in words if line.startswith("E ")), words[-1]
            ).strip()
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed.append(case)
    computed = [
        case
        for case in passed
        if case.find("properties/property[@name='computed_on_device']") is not None
    ]
    return {
        "passed": len(passed),
        "on_device": len(computed),
        "skipped": skipped,
        "failed": failed,
    }


def sum_of_tests(results: Results) -> str:
    passed, computed, skipped = (
        sum(row[what] for row in results) for what in ("passed", "on_device", "skipped")
    )
    failed = [
        f"\n  {row['file']}: {name}: {words}"
        for row in results
        for name, words in row["failed"].items()
    ]
    return (
        f"{len(results)} files: {passed} tests passed, of which {computed} computed on"
        f" the device; {skipped} skipped; {len(failed)} failed{''.join(failed)}"
    )


@dataclass(frozen=True)
class Bert:
    """What a training step and an inference read, how they compute, and how often each
    is timed."""

    device: str = "cuda"
    size: str = "base"
    batch: int = 64
    length: int = 512
    precision: str = "bf16"
    compiler: str = "inductor"
    rounds: int = 11


#: Of ours and of transformers: compiled?
COMPILED = ((False, False), (False, True), (True, True))


def race_bert(settings: Bert, held: Results) -> Runs:
    """Race ours against `transformers` (attention "sdpa"), each as it is and
    compiled."""
    for mode in ("with optimizer", "inference"):
        for ours, theirs in COMPILED:
            key = {"mode": mode, "ours_compiled": ours, "transformers_compiled": theirs}
            yield key, partial(race_once, settings, mode, (ours, theirs))


def race_once(settings: Bert, mode: str, compiled: tuple[bool, bool]) -> dict[str, Any]:
    """Time, tokens a second, the share of the device's matrix rate and the most memory,
    of both sides."""
    import bert
    import bert_sides
    import torch
    from side_by_side import peak_bytes, race

    from course_lib.training.loop import device

    # else its limit on compilations of one function counts those of earlier races
    torch._dynamo.reset()
    where, name, options = device(), settings.precision, bert.Settings()
    vocab = options.base_vocab if settings.size == "base" else options.vocab
    batch = bert_sides.make_batch(settings.batch, settings.length, vocab, False, where)
    ours = bert_sides.Ours(bert.make_ours(options, settings.size, bert.DROPOUT, where))
    sides = (ours, bert_sides.Transformers(ours.model))
    bert_sides.check_same(*sides, batch, name, where)
    steps = [bert.steps_of(side, mode, batch, name, where) for side in sides]
    operations = [
        bert.operations(step) for step in steps
    ]  # before compiling, after which they cannot be counted
    for side, wanted in zip(sides, compiled, strict=True):
        if wanted:  # in place; inference calls the encoder alone
            (side.model.bert if mode == "inference" else side.model).compile(
                backend=settings.compiler
            )
    raced = race(*steps, where, settings.rounds)
    found: dict[str, Any] = {"matrix_rate": bert.rate_of(where, name), **raced}
    for who, step, count in zip(("", "peer_"), steps, operations, strict=True):
        seconds = raced[f"{who}milliseconds"] / 1000
        found[f"{who}tokens_a_second"] = settings.batch * settings.length / seconds
        found[f"{who}utilisation"] = count / seconds / found["matrix_rate"]
        found[f"{who}peak_bytes"] = peak_bytes(step, where)
    return found


def sum_of_races(results: Results) -> str:
    lines = []
    for row in results:
        names = [
            f"{name}{', compiled' if row[f'{name}_compiled'] else ''}:"
            f" {row[f'{who}milliseconds']:.1f} ms, {row[f'{who}tokens_a_second']:,.0f}"
            f" tokens/s, {row[f'{who}utilisation']:.0%} of the matrix rate,"
            f" {row[f'{who}peak_bytes'] / 1e9:.2f} GB"
            for name, who in (("ours", ""), ("transformers", "peer_"))
        ]
        lines.append(f"\n  {row['mode']}: {'; '.join(names)}")
    return f"{len(results)} races{''.join(lines)}"


STEPS = {
    "tests": Step(
        "the library's fast tests",
        (
            "torch",
            "pytest",
            "hypothesis",
            "jaxtyping",
            "beartype",
            "tokenizers",
            "datasets",
            "sacrebleu",
        ),
        Tests(),
        Tests("cpu", "test_mu*.py", 1),
        run_tests,
        sum_of_tests,
    ),
    "bert": Step(
        "BERT-base on sequences of 512 tokens, beside transformers",
        ("torch", "transformers", "rich", "tqdm", "tokenizers", "jaxtyping"),
        Bert(),
        Bert(
            "cpu",
            "tiny",
            batch=2,
            length=16,
            precision="fp32",
            compiler="aot_eager",
            rounds=2,
        ),
        race_bert,
        sum_of_races,
    ),
}


def lacking(step: Step, dry: bool) -> str | None:
    """What keeps a step from running here, and what to do about it."""
    missing = [name.replace("_", "-") for name in step.needs if find_spec(name) is None]
    if missing:
        return (
            f"this Python lacks {', '.join(missing)}: pip install {' '.join(missing)},"
            " or bring the wheels"
        )
    import torch

    if not dry and not torch.cuda.is_available():
        return (
            f"torch {torch.__version__} sees no CUDA device here; --dry-run goes"
            " through the steps on the CPU"
        )
    return None


def run_step(name: str, dry: bool, folder: Path) -> None:
    """Do what the step's record lacks. In a process group of its own, so that all it
    started can be ended with it."""
    os.setsid()
    settings = STEPS[name].tiny if dry else STEPS[name].settings
    os.environ["COURSE_DEVICE"] = settings.device
    from course_lab import records

    step, label, command = (
        STEPS[name],
        f"gpu-{name}",
        ["python", "benchmarks/gpu.py", name],
    )

    runs = step.runs(settings, records.held(label, settings, folder=folder))
    records.run_missing(label, command, settings, runs, print, folder)
    print(step.total(records.load(label, folder).results))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "steps", nargs="*", metavar="STEP", help=f"{', '.join(STEPS)} (default: all)"
    )
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes, on the CPU")
    parser.add_argument(
        "--minutes",
        type=float,
        default=MINUTES,
        help=f"that a step may take (default: {MINUTES:g})",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="of the records (default: book/results, or none for a dry run)",
    )
    asked = parser.parse_args(words)
    if unknown := set(asked.steps) - set(STEPS):
        parser.error(
            f"no step {', '.join(sorted(unknown))}; the steps are {', '.join(STEPS)}"
        )
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or (
            Path(temporary) if asked.dry_run else ROOT / "book" / "results"
        )
        done = [
            attempt(name, asked.dry_run, folder, asked.minutes)
            for name in asked.steps or STEPS
        ]
    return 0 if all(done) else 1


def attempt(name: str, dry: bool, folder: Path, minutes: float) -> bool:
    """Run one step in a process of its own; False, once said why, if it did not come to
    its end."""
    step = STEPS[name]
    print(f"== {name}: {step.title}", flush=True)
    if reason := lacking(step, dry):
        print(f"{name} not run: {reason}")
        return False
    process = multiprocessing.get_context("spawn").Process(
        target=run_step, args=(name, dry, folder)
    )
    process.start()
    try:
        process.join(60 * minutes)
        late = process.is_alive()
    finally:
        end_group(process)
    if late:
        print(
            f"{name} ended after {minutes:g} minutes; call it again for the runs that"
            " its record lacks"
        )
    elif process.exitcode:
        print(
            f"{name} failed with exit status {process.exitcode}; the lines above say"
            " why, its record holds the rest"
        )
    return not late and process.exitcode == 0


def end_group(process: Any) -> None:
    """Kill what is left of a step and of what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    process.join()


if __name__ == "__main__":
    for place in (ROOT, ROOT / "benchmarks"):  # course_lib need not be installed
        sys.path.insert(0, str(place))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    )
    sys.exit(main())
