"""The same submissions through `nbgrader autograde` and `course grade`, sandbox on:
seconds, and whether marks agree.

A third side is `course grade --dask`, on a cluster of this machine alone: one process
with as many threads as the second side has workers, as `dask worker` starts it. It is
new in each round: nothing has imported torch before.

The class hands in an assignment's named wrong and right answers, each once
(`tests/assignments/mutants`). Its demonstrations, which `course grade` does not run,
stand idle: both sides run the same cells. Each side gets a fresh copy of the course
folder in every round, and the first of one round is the last of the next. What is
reported are medians over the rounds, by the clock: nbgrader's seconds divided by ours,
and those with Dask divided by those without.

    python benchmarks/grading.py [--submissions 60] [--workers 2] [--rounds 3]
    [--record]
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from distributed import LocalCluster
from nbgrader.api import Gradebook
from side_by_side import read_settings, save, setting, show

from course_tools.grading.assignments.mutants import change, load_cases
from course_tools.grading.assignments.release import CONFIG, release
from course_tools.grading.assignments.source import answered, copy_idle, read_source

ROOT = Path(__file__).parents[1]
MARKS = dict[tuple[str, str], float | None]


@dataclass(frozen=True)
class Settings:
    """What is graded, and how often."""

    assignment: str = setting("attention", "which assignment")
    submissions: int = setting(
        60, "how many of its wrong and right answers are handed in"
    )
    workers: int = setting(2, "submissions that `course grade` runs at a time")
    rounds: int = setting(3, "how often each side grades the class")


def hand_in(settings: Settings, course: Path) -> None:
    """Make a course folder with a released assignment and submissions to it."""
    name = settings.assignment
    shutil.copy(ROOT / CONFIG, course)
    shipped = copy_idle(name, ROOT, course)
    released = release(name, course)
    reference = read_source(course / "solutions" / name / f"{name}.py")
    cases = [case for cases in load_cases(name, ROOT) for case in cases]
    if len(cases) < settings.submissions:
        raise ValueError(
            f"{name} has {len(cases)} wrong and right answers; choose at most so many"
            " submissions"
        )
    for case in cases[: settings.submissions]:
        notebook = answered(
            nbformat.read(released, as_version=4), change(reference, case.changes)
        )
        folder = course / "submitted" / case.name / name
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{name}.ipynb")
        for file in shipped:
            shutil.copy(released.parent / file, folder)


def marks(course: Path, name: str) -> MARKS:
    """Read every mark that a side gave, by student and question."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            (submission.student.id, grade.name): grade.auto_score
            for submission in gradebook.assignment_submissions(name)
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


def run(command: list[str], course: Path) -> float:
    """Run one side and return its seconds; it must end well, since no submission here
    needs a person."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=course,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - started
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}"
        )
    return took


def on_cluster(settings: Settings, course: Path) -> float:
    """Run the side with Dask, on a cluster that is up before and away after, and return
    its seconds."""
    with LocalCluster(
        n_workers=1, threads_per_worker=settings.workers, dashboard_address=None
    ) as cluster:
        command = [
            sys.executable,
            "-m",
            "course_tools.cli",
            "grade",
            settings.assignment,
        ]
        return run([*command, "--dask", cluster.scheduler_address], course)


def measure(settings: Settings) -> dict[str, Any]:
    """Let both sides grade the class, in turn."""
    name = settings.assignment
    commands = {
        "ours": [
            sys.executable,
            "-m",
            "course_tools.cli",
            "grade",
            name,
            "--workers",
            str(settings.workers),
        ],
        "stock": [sys.executable, "-m", "nbgrader", "autograde", name, "--create"],
    }
    sides = [*commands, "dask"]
    spent: dict[str, list[float]] = {side: [] for side in sides}
    given: dict[str, MARKS] = {}
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder) / "course"
        course.mkdir()
        hand_in(settings, course)
        for turn in range(settings.rounds):
            for side in sides if turn % 2 else reversed(sides):
                copy = Path(folder) / f"{side}-{turn}"
                shutil.copytree(course, copy)
                spent[side].append(
                    run(commands[side], copy)
                    if side in commands
                    else on_cluster(settings, copy)
                )
                given[side] = marks(copy, name)
    ratios = [
        stock / ours for ours, stock in zip(spent["ours"], spent["stock"], strict=True)
    ]
    low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    slower = [
        dask / ours for ours, dask in zip(spent["ours"], spent["dask"], strict=True)
    ]
    questions = set().union(*given.values())
    different = {
        key for key in questions if len({side.get(key) for side in given.values()}) > 1
    }
    return {
        "ratio": ratio,
        "low": low,
        "high": high,
        "seconds_each": statistics.median(spent["ours"]) / settings.submissions,
        "peer_seconds_each": statistics.median(spent["stock"]) / settings.submissions,
        "marks": len(questions),
        "different": sorted(map(list, different)),
        "dask_ratio": statistics.median(slower),
    }


def main() -> None:
    settings, record = read_settings(Settings, None, __doc__)
    row = measure(settings)
    show(
        f"{settings.submissions} submissions to {settings.assignment}",
        [row],
        {
            "course grade, s each": lambda row: f"{row['seconds_each']:.2f}",
            "nbgrader, s each": lambda row: f"{row['peer_seconds_each']:.2f}",
            "nbgrader / course grade": lambda row: (
                f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
            ),
            "with Dask / without": lambda row: f"{row['dask_ratio']:.2f}",
            "marks": lambda row: str(row["marks"]),
            "different": lambda row: str(row["different"]),
        },
    )
    if record:
        save("benchmark-grading", settings, [row])


if __name__ == "__main__":
    main()
