"""What this project asks of a GPU: the steps of `gpu_steps`, in the order of their
worth.

    python benchmarks/gpu.py --slice 1        the steps of a slice, of three: nine minutes each, at most
    python benchmarks/gpu.py [STEP ...]       these steps, or all, on the first CUDA device
    python benchmarks/gpu.py --dry-run        all steps with tiny sizes on the CPU, in minutes

A machine with a GPU may be lent for half an hour, without a network, and with nothing
but the packages that it came with. So a step says in words what it lacks; it runs in a
process of its own, which is ended when its time is over; and it saves each run in
`gpu-<step>.json` as soon as that is done. Called again, it does the runs that the file
lacks; to repeat one, remove it from there. A run that raises stops no other. Nothing
needs to be installed but what a step names; `--data` names a folder of public data
sets, `<name>/<split>.parquet`, which some steps read.
"""  # noqa: E501

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpu_steps import ROOT, STEPS, Found, Given, Runs, Step

#: What pip calls modules whose package has another name.
PACKAGES = {"sklearn": "scikit-learn", "yaml": "PyYAML", "IPython": "ipython"}
SLICES = sorted({step.slice for step in STEPS.values()})


def lacking(step: Step, dry: bool, data: str | None = None) -> str | None:
    """What keeps a step from running here, and what to do about it."""
    missing = [
        PACKAGES.get(name, name.replace("_", "-"))
        for name in step.needs.split()
        if find_spec(name) is None
    ]
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
    absent = [name for name in step.data if not (Path(data or "") / name).is_dir()]
    if absent and not (dry and data is None):
        where = f"{data} has no {', '.join(absent)}" if data else "it reads public data"
        return f"{where}; name a folder that has {', '.join(step.data)} with --data"
    return None


def run_step(name: str, dry: bool, folder: Path, data: str | None) -> None:
    """Do what the step's record lacks. In a process group of its own, so that all it
    started can be ended with it."""
    os.setsid()
    sys.stdout.reconfigure(line_buffering=True)  # it may be killed at any time
    step = STEPS[name]
    settings = step.tiny if dry else step.settings
    os.environ["COURSE_DEVICE"] = settings.device
    if settings.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from course_lab import gpu, records, stand_ins

    label, command = f"gpu-{name}", ["python", "benchmarks/gpu.py", name]
    held = records.held(label, settings, folder=folder)
    with tempfile.TemporaryDirectory() as temporary:
        # an earlier call may have left there what a run goes on from
        scratch = Path(temporary) if dry else ROOT / "_build" / "gpu"
        if dry and data is None and (step.data or step.more_data):
            data = stand_ins.folder_of_tables()
        runs = step.runs(Given(settings, held, data, scratch))
        failed = do_runs(label, command, settings, runs, folder)
    if (folder / f"{label}.json").is_file():
        print(gpu.table(name, records.load(label, folder).results))
    if failed:
        raise SystemExit(f"{len(failed)} runs raised: {failed}")


def do_runs(
    label: str, command: Sequence[str], settings: Any, runs: Runs, folder: Path
) -> list[Found]:
    """Do the runs that a record lacks, and return which raised, once told what: half an
    hour with a GPU is too short for one of them to stop the others."""
    from course_lab import records

    failed = []
    for key, run in runs:
        try:
            records.run_missing(label, command, settings, [(key, run)], print, folder)
        except Exception:
            traceback.print_exc()
            failed.append(key)
    return failed


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "steps", nargs="*", metavar="STEP", help=f"{', '.join(STEPS)} (default: all)"
    )
    parser.add_argument(
        "--slice", type=int, choices=SLICES, help="the steps of this slice alone"
    )
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes, on the CPU")
    parser.add_argument(
        "--minutes", type=float, help="that a step may take (default: its own limit)"
    )
    parser.add_argument("--data", help="a folder of public data sets")
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
    if asked.steps and asked.slice:
        parser.error("name steps, or a slice, not both")
    of_slice = [x for x in STEPS if asked.slice in (None, STEPS[x].slice)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or (
            Path(temporary) if asked.dry_run else ROOT / "book" / "results"
        )
        done = [
            attempt(name, asked.dry_run, folder, asked.minutes, asked.data)
            for name in asked.steps or of_slice
        ]
    return 0 if all(done) else 1


def attempt(
    name: str, dry: bool, folder: Path, minutes: float | None, data: str | None
) -> bool:
    """Run one step in a process of its own; False, once said why, if it did not come to
    its end."""
    step = STEPS[name]
    # no machine is too slow for a dry run
    limit = step.minutes if minutes is None and not dry else minutes
    print(f"== {name}: {step.title}", flush=True)
    if reason := lacking(step, dry, data):
        print(f"{name} not run: {reason}")
        return False
    process = multiprocessing.get_context("spawn").Process(
        target=run_step, args=(name, dry, folder, data)
    )
    process.start()
    try:
        process.join(None if limit is None else 60 * limit)
        late = process.is_alive()
    finally:
        end_group(process)
    if late:
        print(
            f"{name} ended after {limit:g} minutes; call it again for the runs that"
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
    for place in (ROOT, ROOT / "benchmarks"):  # course_lab need not be installed
        sys.path.insert(0, str(place))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    )
    sys.exit(main())
