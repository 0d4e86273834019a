"""`course assemble`: a student's own parts, put into the capstone.

The capstone has cells that are made of cells of other assignments; their metadata name
these (``parts``). The student has answered them already, each in the notebook where it
was asked, and here they are copied into one program. Nothing is run, and nothing is
judged: whether the parts work together is what the capstone's own tests tell.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import is_solution

from course_tools.grading.assignments.source import (
    AssignmentError,
    parts_of,
    write_notebook,
)
from course_tools.grading.check.check_structure import grade_id

__all__ = ["ASSEMBLED", "Part", "assemble"]

ASSEMBLED = (
    "# Put together by course assemble. Change a part in its own notebook, then run it"
    " again."
)


@dataclass(frozen=True)
class Part:
    """One cell of another assignment, and what became of it."""

    assignment: str  # where it was asked
    name: str  # the cell's ``grade_id`` there
    problem: str = ""  # what is wrong, in words; empty if it has been put in


def assemble(
    capstone: Path, folder: Path | None = None, replace: bool = False
) -> list[Part]:
    """Fill a capstone's cells that are made of parts with the student's answers."""
    notebook = _read(capstone)
    cells = [cell for cell in notebook.cells if parts_of(cell) and is_solution(cell)]
    if not cells:
        raise AssignmentError(
            f"{capstone} has no cell that is made of parts; only the capstone has"
        )
    folder = folder or capstone.resolve().parents[1]
    found = [part for cell in cells for part in _fill(cell, folder, replace)]
    write_notebook(notebook, capstone)
    return found


def _read(path: Path) -> NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        raise AssignmentError(f"{path} cannot be read: {error}") from error


def _fill(cell: NotebookNode, folder: Path, replace: bool) -> Iterator[Part]:
    own = bool(cell.source.strip()) and not cell.source.startswith(ASSEMBLED)
    parts = [(*part, *_look_up(folder, *part)) for part in parts_of(cell)]
    if own and not replace and not is_empty(cell.source):
        problem = (
            f"the capstone's cell {grade_id(cell)} holds something else: keep it, or"
            " say --replace"
        )
        yield from (Part(name, part, problem) for name, part, _, _ in parts)
        return
    if all(source for *_, source, _ in parts):
        cell.source = "\n\n\n".join([ASSEMBLED, *(source for *_, source, _ in parts)])
        cell.outputs, cell.execution_count = [], None
    yield from (Part(name, part, problem) for name, part, _, problem in parts)


def _look_up(folder: Path, name: str, part: str) -> tuple[str, str]:
    """Return the source of a cell of another notebook, and what is wrong with it."""
    places = [folder / name / f"{name}.ipynb", folder / f"{name}.ipynb"]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        return "", f"there is no {name}.ipynb in {folder}, nor in {folder / name}"
    try:
        named = [cell for cell in _read(path).cells if grade_id(cell) == part]
    except AssignmentError as error:
        return "", str(error)
    cells = [cell for cell in named if cell.cell_type == "code"]
    if len(cells) != 1:
        count = f"{path} has {len(cells)} cells {part}"
        return "", f"{count}; get back the one that was released"
    source = cells[0].source.strip()
    return source, f"it is not answered yet in {path}" if is_empty(source) else ""


def is_empty(source: str) -> bool:
    """Whether a cell is unanswered: it raises NotImplementedError, as a skeleton."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False  # somebody wrote it; the tests will say what is wrong
    raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise))
    called = (error.func if isinstance(error, ast.Call) else error for error in raised)
    return "NotImplementedError" in [getattr(error, "id", "") for error in called]
