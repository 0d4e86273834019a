"""`course check`: what a student should know about a notebook before it is handed in.

It compares the notebook with the released one, runs it as the grader will, and says in
words what is wrong. The tests that it runs are the visible ones; the grader runs more.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import determine_grade, is_grade, is_solution
from rich.console import Console
from rich.table import Table
from rich.text import Text

from course_lib.files import EXERCISES
from course_tools.grading.assignments.hidden_words import NOT_STARTED
from course_tools.grading.check.check_run import (
    CellRun,
    KernelProblem,
    as_graded,
    run_notebook,
)
from course_tools.grading.check.check_structure import (
    Problem,
    by_name,
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
    """What one graded cell earns from its visible tests."""

    part: str  # the heading that it stands under in the released notebook
    cell: str  # its ``grade_id``
    points: float  # the most it can earn
    earned: float | None  # what the visible tests give; None if it is marked by hand
    state: str  # passed, partly, failed, not started, not run, written or empty


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
    path = find_notebook(path)
    with Reader({"opened": open_notebook, "compared": _compared}) as reader:
        try:
            given = reader.ask("opened", read_text(path), str(path))
            submitted = nbformat.from_dict(given)
            released_path = released_path or find_released(path, submitted)
            released = read_released(released_path)
            told, restored = reader.ask("compared", submitted, released)
        except CannotRead as error:
            raise CannotCheck(str(error)) from error
    problems = [Problem(**problem) for problem in told]
    if (name := released_path.name) != f"{path.stem}{released_path.suffix}":
        words = f"The grader reads {name} alone. Hand it in under that name."
        problems.insert(0, Problem("misnamed", path.name, words))
    notebook = nbformat.from_dict(restored)
    try:
        runs = run_notebook(notebook, time_limit, released_path.parent)
    except KernelProblem as error:
        raise CannotCheck(str(error)) from error
    marks = _marks(notebook, released, runs)
    # A part that is not started is said once, not again for each cell that needs it.
    not_started = {one.cell for one in problems if one.kind == "not-started"}
    for run in runs:
        known = run.place.partition(",")[0] in not_started
        if not (known and run.error == "NotImplementedError"):
            problems += _run_problems(notebook, run, time_limit)
    finished = {cell_name(notebook, run.index) for run in runs if run.state == "done"}
    for mark in marks:
        part = mark.earned is not None and mark.earned < mark.points
        if part and mark.cell in finished:
            earned = f"{mark.earned:g} of {mark.points:g} points"
            words = f"{mark.cell} earns {earned} in the visible tests."
            problems.append(Problem("failing", mark.cell, words))
    seconds = sum(run.seconds for run in runs)
    return Report(str(path), str(released_path), marks, problems, seconds)


def _compared(
    submitted: dict[str, Any], released: dict[str, Any]
) -> tuple[list[dict[str, str]], NotebookNode]:
    """What is wrong with a notebook as it stands, and the notebook as it is graded."""
    one, other = nbformat.from_dict(submitted), nbformat.from_dict(released)
    problems = [asdict(problem) for problem in structure_problems(one, other)]
    return problems, as_graded(one, other)


def find_notebook(path: Path) -> Path:
    """Find a notebook named without a folder, also from above the folder it lies in.

    So ``course check attention.ipynb`` is right wherever a terminal opens: beside the
    notebook, in the folder of ``course start``, or where that was typed.
    """
    if path.exists() or path.name != str(path):
        return path
    below = Path(path.stem, path.name)
    places = [place for place in (below, "assignments" / below) if place.is_file()]
    return places[0] if places else path


def find_released(path: Path, submitted: NotebookNode) -> Path:
    """Find the released notebook that shares most cell names with a student's."""
    names = by_name(submitted.cells).keys()
    parents = [Path.cwd(), *path.resolve().parents]
    best, most = Path(), 0
    for place in [*(parent / "exercises" for parent in parents), EXERCISES]:
        for candidate in sorted(place.glob("*/*.ipynb")):
            shared = len(names & by_name(read_notebook(candidate).cells).keys())
            if shared > most:
                best, most = candidate, shared
    if not most:
        why = "belongs to no assignment in a folder exercises/"
        why = why if names else "has no cell marked for grading"
        raise CannotCheck(
            f"{path} {why}, so there is nothing to compare it with. Start from the"
            " released notebook, or name it: course check NOTEBOOK --released"
            " RELEASED_NOTEBOOK."
        )
    return best


def _marks(
    notebook: NotebookNode, released: NotebookNode, runs: list[CellRun]
) -> list[Marks]:
    of_cell = {grade_id(notebook.cells[run.index]): run for run in runs}
    cells = by_name(notebook.cells)
    marks, part = [], ""
    for expected in released.cells:
        heading = re.search(r"^##? +(.+)$", expected.source, re.MULTILINE)
        if expected.cell_type == "markdown" and heading:
            part = re.sub(r" *\([\d.]+ points\)$", "", heading[1])
        name = grade_id(expected)
        if name is None or not is_grade(expected):
            continue
        points, cell = float(expected.metadata.nbgrader.points), cells[name]
        if is_solution(expected):
            untouched = cell.source.strip() in ("", expected.source.strip())
            state = "empty" if untouched else "written"
            marks.append(Marks(part, name, points, None, state))
        else:
            earned = _earned(cell, of_cell[name], points)
            marks.append(Marks(part, name, points, *earned))
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
    found, late = [], f"took longer than {time_limit} s and"
    if run.flooded:
        found.append(("flooding", "prints more than a million characters. Print less."))
    if run.state == "stopped":
        words = f"{late} was stopped: an endless loop, or far too slow."
        found.append(("slow", words))
    elif run.state == "deaf":
        words = f"{late} could not be stopped; the cells after it were not run."
        found.append(("slow", f"{words} Does a loop catch every exception?"))
    elif run.state == "died":
        words = (
            "ended Python itself, and the cells after it were not run. Remove exit(),"
            " quit() or os._exit(); if there is none, it used up the memory."
        )
        found.append(("dead", words))
    elif run.state == "error":
        kind = "not-started" if run.error == "NotImplementedError" else "failing"
        found.append((kind, _error_words(run)))
    what = f"The {describe(cell)}" if grade_id(cell) else name.capitalize()
    return [Problem(kind, name, f"{what} {words}") for kind, words in found]


def _error_words(run: CellRun) -> str:
    where = f" ({run.place})" if run.place else ""
    if run.error == "NotImplementedError":
        return f"{NOT_STARTED}{where}."
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
        return f"fails: {run.message or f'an assertion does not hold{where}.'}"
    return f"fails with {run.error}: {run.message}{where}."


def print_report(report: Report, console: Console) -> None:
    """Show the marks part by part, what is wrong, and a verdict."""
    head = f"{report.notebook}: compared with {report.released}"
    console.print(Text(f"{head}, ran {report.seconds:.0f} s"))
    table = Table("part", "cell", "points", "", box=None, pad_edge=False)
    part = ""
    for mark in report.marks:
        earned = "by hand" if mark.earned is None else f"{mark.earned:g} of"
        state = Text(mark.state)
        state.stylize("green" if mark.state in ("passed", "written") else "red")
        cells = [mark.part if mark.part != part else "", mark.cell]
        table.add_row(*map(Text, [*cells, f"{earned} {mark.points:g}"]), state)
        part = mark.part
    console.print(table)
    tested = [mark for mark in report.marks if mark.earned is not None]
    earned = f"{sum(mark.earned or 0.0 for mark in tested):g}"
    total = f"{earned} of {sum(mark.points for mark in tested):g} points"
    words = f"Visible tests: {total}. The grader runs more tests than these."
    console.print(Text(words))
    findings = Table.grid(padding=(0, 2))
    for problem in report.problems:
        findings.add_row(Text(problem.kind, style="bold red"), Text(problem.message))
    console.print(findings)
    count = len(report.problems)
    last = f"{count} thing{'s' if count > 1 else ''} to mend."
    last = "Nothing is wrong." if report.ok else last
    console.print(Text(last, style="bold green" if report.ok else "bold red"))
