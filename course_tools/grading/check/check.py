"""`course check`: what a student should know about a notebook before it is handed in.

It compares the notebook with the released one
(:mod:`course_tools.grading.check.check_structure`), runs it as the grader will
(:mod:`course_tools.grading.check.check_run`), and says in words what is wrong. The
tests that it runs are the visible ones; the grader runs more.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import determine_grade
from rich.console import Console
from rich.table import Table
from rich.text import Text

from course_lib.shipped_files import EXERCISES
from course_tools.grading.check.check_run import (
    CellRun,
    KernelProblem,
    as_graded,
    run_notebook,
)
from course_tools.grading.check.check_structure import (
    Problem,
    cell_name,
    describe,
    grade_id,
    structure_problems,
)
from course_tools.grading.check.notebook_files import (
    CannotCheck,
    open_notebook,
    read_notebook,
    read_released,
    read_text,
)
from course_tools.grading.run.reader import CannotRead, Reader

#: Seconds that a cell may take; the grader's limit (`Execute.timeout` in
#: nbgrader_config.py).
TIME_LIMIT = 60

#: The end of a SyntaxError's message: the kernel's own file of the cell, which means
#: nothing to a student.
FILE_OF_CELL = re.compile(r" \([^()]*, line \d+\)$")


@dataclass(frozen=True)
class Marks:
    """What one graded cell earns from its visible tests.

    Attributes:
        part: the heading that it stands under in the released notebook.
        cell: its ``grade_id``.
        points: the most it can earn.
        earned: what the visible tests give; None if it is marked by hand.
        state: "passed", "partly", "failed", "not started", "not run", "written" or
        "empty".
    """

    part: str
    cell: str
    points: float
    earned: float | None
    state: str


@dataclass(frozen=True)
class Report:
    """All that `course check` found: marks part by part, then what is wrong."""

    notebook: str
    released: str
    marks: list[Marks]
    problems: list[Problem]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_json(self) -> str:
        """The report for a program to read."""
        return json.dumps({"ok": self.ok, **asdict(self)}, indent=2, ensure_ascii=False)


def check(
    path: Path, released_path: Path | None = None, time_limit: int = TIME_LIMIT
) -> Report:
    """Check a student's notebook, which is read and never written."""
    with Reader({"opened": open_notebook, "compared": _compared}) as reader:
        try:
            submitted = nbformat.from_dict(
                reader.ask("opened", read_text(path), str(path))
            )
            released_path = released_path or find_released(path, submitted)
            released = read_released(released_path)
            told, restored = reader.ask("compared", submitted, released)
        except CannotRead as error:
            raise CannotCheck(str(error)) from error
    problems = []
    if path.stem != released_path.stem:
        problems.append(
            Problem(
                "misnamed",
                path.name,
                f"The grader reads {released_path.name} alone. Hand it in under that"
                " name.",
            )
        )
    problems += [Problem(**problem) for problem in told]
    notebook = nbformat.from_dict(restored)
    try:
        runs = run_notebook(notebook, time_limit, released_path.parent)
    except KernelProblem as error:
        raise CannotCheck(str(error)) from error
    marks = _marks(notebook, released, runs)
    # A part that is not started is said once, not again for each cell that needs it.
    not_started = {
        problem.cell for problem in problems if problem.kind == "not-started"
    }
    told = [
        run
        for run in runs
        if run.error == "NotImplementedError"
        and run.place.partition(",")[0] in not_started
    ]
    problems += [
        problem
        for run in runs
        if run not in told
        for problem in _run_problems(notebook, run, time_limit)
    ]
    finished = {cell_name(notebook, run.index) for run in runs if run.state == "done"}
    for mark in marks:
        if (
            mark.earned is not None
            and mark.earned < mark.points
            and mark.cell in finished
        ):
            words = (
                f"{mark.cell} earns {mark.earned:g} of {mark.points:g} points in the"
                " visible tests."
            )
            problems.append(Problem("failing", mark.cell, words))
    return Report(
        str(path), str(released_path), marks, problems, sum(run.seconds for run in runs)
    )


def _compared(
    submitted: dict[str, Any], released: dict[str, Any]
) -> tuple[list[dict[str, str]], NotebookNode]:
    """What is wrong with a notebook as it stands, and the notebook as it is graded."""
    one, other = nbformat.from_dict(submitted), nbformat.from_dict(released)
    return [asdict(problem) for problem in structure_problems(one, other)], as_graded(
        one, other
    )


def find_released(path: Path, submitted: NotebookNode) -> Path:
    """Find the released notebook that shares most cell names with a student's: the file
    may have been renamed."""
    names = {name for cell in submitted.cells if (name := grade_id(cell))}
    places = [
        *(parent / "exercises" for parent in [Path.cwd(), *path.resolve().parents]),
        EXERCISES,
    ]
    best: Path | None = None
    most = 0
    for candidate in (
        file for place in places for file in sorted(place.glob("*/*.ipynb"))
    ):
        shared = len(
            names
            & {
                name
                for cell in read_notebook(candidate).cells
                if (name := grade_id(cell))
            }
        )
        if shared > most:
            best, most = candidate, shared
    if best is None:
        why = (
            "has no cell marked for grading"
            if not names
            else "belongs to no assignment in a folder exercises/"
        )
        raise CannotCheck(
            f"{path} {why}, so there is nothing to compare it with. Start from the"
            " released notebook, or name it: course check NOTEBOOK --released"
            " RELEASED_NOTEBOOK."
        )
    return best


def _marks(
    notebook: NotebookNode, released: NotebookNode, runs: list[CellRun]
) -> list[Marks]:
    by_name = {
        name: run for run in runs if (name := grade_id(notebook.cells[run.index]))
    }
    cells = {name: cell for cell in notebook.cells if (name := grade_id(cell))}
    marks, part = [], ""
    for expected in released.cells:
        if expected.cell_type == "markdown" and (
            heading := re.search(r"^##? +(.+)$", expected.source, re.MULTILINE)
        ):
            part = re.sub(r" *\([\d.]+ points\)$", "", heading[1])
        if (name := grade_id(expected)) is None or not expected.metadata.nbgrader.get(
            "grade"
        ):
            continue
        points = float(expected.metadata.nbgrader.points)
        if expected.metadata.nbgrader.get("solution"):
            state = (
                "empty"
                if cells[name].source.strip() in ("", expected.source.strip())
                else "written"
            )
            marks.append(Marks(part, name, points, None, state))
        else:
            marks.append(
                Marks(part, name, points, *_earned(cells[name], by_name[name], points))
            )
    return marks


def _earned(cell: NotebookNode, run: CellRun, points: float) -> tuple[float, str]:
    if run.state == "not run":
        return 0.0, "not run"
    if run.state != "done":
        return 0.0, "not started" if run.error == "NotImplementedError" else "failed"
    # as the grader does
    cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    earned, _ = determine_grade(cell)
    return earned, "passed" if earned == points else "partly" if earned else "failed"


def _run_problems(
    notebook: NotebookNode, run: CellRun, time_limit: int
) -> list[Problem]:
    """Say in words what became of a cell; nothing if it ran through."""
    cell, name = notebook.cells[run.index], cell_name(notebook, run.index)
    what = f"The {describe(cell)}" if grade_id(cell) else name.capitalize()
    problems = []
    if run.flooded:
        problems.append(
            Problem(
                "flooding",
                name,
                f"{what} prints more than a million characters. Print less.",
            )
        )
    if run.state == "stopped":
        words = (
            f"{what} took longer than {time_limit} s and was stopped: an endless loop,"
            " or far too slow."
        )
        problems.append(Problem("slow", name, words))
    elif run.state == "deaf":
        words = (
            f"{what} took longer than {time_limit} s and could not be stopped; the"
            " cells after it were not run."
        )
        problems.append(
            Problem("slow", name, words + " Does a loop catch every exception?")
        )
    elif run.state == "died":
        words = f"{what} ended Python itself, and the cells after it were not run."
        advice = (
            " Remove exit(), quit() or os._exit(); if there is none, it used up the"
            " memory."
        )
        problems.append(Problem("dead", name, words + advice))
    elif run.state == "error":
        kind = "not-started" if run.error == "NotImplementedError" else "failing"
        problems.append(Problem(kind, name, f"{what} {_error_words(run)}"))
    return problems


def _error_words(run: CellRun) -> str:
    where = f" ({run.place})" if run.place else ""
    if run.error == "NotImplementedError":
        return f"cannot pass: a part that it needs is not started{where}."
    if run.error == "StdinNotImplementedError":
        return (
            f"asks for input(){where}. Nobody is there to answer in grading; put the"
            " value into the code."
        )
    if run.error == "SystemExit":
        return f"calls exit(){where}. Leave a function with return or raise."
    if run.error in ("SyntaxError", "IndentationError", "TabError"):
        return f"is not valid Python: {FILE_OF_CELL.sub('', run.message)}{where}."
    if run.error == "AssertionError":
        return (
            f"fails: {run.message}"
            if run.message
            else f"fails: an assertion does not hold{where}."
        )
    return f"fails with {run.error}: {run.message}{where}."


def print_report(report: Report, console: Console) -> None:
    """Show the marks part by part, what is wrong, and a last line that says whether
    anything is."""
    console.print(
        Text(
            f"{report.notebook}: compared with {report.released}, ran"
            f" {report.seconds:.0f} s"
        )
    )
    table = Table("part", "cell", "points", "", box=None, pad_edge=False)
    part = ""
    for mark in report.marks:
        earned = "by hand" if mark.earned is None else f"{mark.earned:g} of"
        colour = {"passed": "green", "written": "green"}.get(mark.state, "red")
        heading = mark.part if mark.part != part else ""
        table.add_row(
            Text(heading),
            Text(mark.cell),
            Text(f"{earned} {mark.points:g}"),
            Text(mark.state, style=colour),
        )
        part = mark.part
    console.print(table)
    tested = [mark for mark in report.marks if mark.earned is not None]
    total = (
        f"{sum(mark.earned or 0.0 for mark in tested):g} of"
        f" {sum(mark.points for mark in tested):g} points"
    )
    console.print(
        Text(f"Visible tests: {total}. The grader runs more tests than these.")
    )
    findings = Table.grid(padding=(0, 2))
    for problem in report.problems:
        findings.add_row(Text(problem.kind, style="bold red"), Text(problem.message))
    console.print(findings)
    count = len(report.problems)
    last = (
        "Nothing is wrong."
        if report.ok
        else f"{count} thing{'s' if count > 1 else ''} to mend."
    )
    console.print(Text(last, style="bold green" if report.ok else "bold red"))
