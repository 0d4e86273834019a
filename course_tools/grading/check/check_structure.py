"""What is wrong with a student's notebook that one can see without running it.

The notebook as it was released says which cells there must be. Every finding is a
:class:`Problem` in words.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nbformat import NotebookNode
from nbgrader.utils import compute_checksum

from course_tools.grading.assignments.editions import withheld
from course_tools.grading.assignments.withheld import withheld_uses
from course_tools.grading.shown import shown

#: What nbgrader puts where the solution of a written answer was.
EMPTY_ANSWER = "YOUR ANSWER HERE"
ROLES = ("grade", "solution", "locked", "points", "task", "cell_type")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    kind: str  # one word to sort by: deleted, tampered, slow, failing, ...
    cell: str  # its ``grade_id``, or "cell 7" for the seventh
    message: str  # what is wrong and what to do


def grade_id(cell: NotebookNode) -> str | None:
    """The name by which nbgrader knows a cell; None of others."""
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def cell_name(notebook: NotebookNode, index: int) -> str:
    """The cell's ``grade_id``, or its place counted from 1."""
    return shown(grade_id(notebook.cells[index]) or f"cell {index + 1}", 80)


def by_name(cells: Iterable[NotebookNode]) -> dict[str, NotebookNode]:
    """The cells that have a name; of copies the last."""
    return {name: cell for cell in cells if (name := grade_id(cell))}


def describe(cell: NotebookNode) -> str:
    """Say what a released cell is for: "test cell beam-best (3 points)"."""
    role = cell.metadata.nbgrader
    kind = "test" if role.get("grade") else "read-only"
    kind = "answer" if role.get("solution") else kind
    points = f" ({role['points']:g} points)" if role.get("grade") else ""
    return f"{kind} cell {role['grade_id']}{points}"


#: A kind and a message of a problem, of the cell that is looked at.
Found = Iterator[tuple[str, str]]


def structure_problems(
    submitted: NotebookNode, released: NotebookNode
) -> list[Problem]:
    """Compare a notebook with the one that was released."""
    problems: list[Problem] = []
    handed_in: dict[str | None, list[NotebookNode]] = {None: []}
    for cell in submitted.cells:
        handed_in.setdefault(grade_id(cell), []).append(cell)
    own = {cell.source for cell in handed_in[None]}
    for name, expected in by_name(released.cells).items():
        copies = handed_in.get(name, [])
        found = [*_presence(expected, copies, own)]
        for cell in copies[-1:]:
            found += [*_changes(cell, expected), *_unanswered(cell, expected)]
        problems += [Problem(kind, name, words) for kind, words in found]
    return [*problems, *_order(submitted, released), *_own_cells(submitted, released)]


def _presence(
    expected: NotebookNode, copies: list[NotebookNode], own: set[str]
) -> Found:
    what = f"The {describe(expected)}"
    if len(copies) > 1:
        twice = f"{what} is there {len(copies)} times; the grader reads the last."
        yield "duplicated", f"{twice} Delete the others."
    elif not copies and expected.source in own:
        yield (
            "unmarked",
            f"{what} has lost its grading mark: its text is there in a cell made by"
            " hand or by copying. Take the cell itself from the released notebook.",
        )
    elif not copies:
        copy = "Open the released notebook and copy your answers into it."
        yield "deleted", f"{what} is missing. {copy}"


def _changes(cell: NotebookNode, expected: NotebookNode) -> Found:
    what, kind = describe(expected), expected.cell_type
    if cell.cell_type != kind:
        yours = f"The {what} must be a {kind} cell; yours is a {cell.cell_type} cell."
        yield "retyped", f"{yours} Change it back with the cell type menu."
    mark, released = cell.metadata.nbgrader, expected.metadata.nbgrader
    changed = [key for key in ROLES if mark.get(key) != released.get(key)]
    if changed:
        pairs = [(shown(repr(mark.get(key)), 80), released.get(key)) for key in changed]
        keys = [
            f"{k} is {n} instead of {b!r}"
            for k, (n, b) in zip(changed, pairs, strict=True)
        ]
        words = f"The grading metadata of the {what} was changed: {', '.join(keys)}."
        back = "The grader puts it back; take the cell from the released notebook."
        yield "altered", f"{words} {back}"
    if released.get("locked") and cell.source.rstrip() != expected.source.rstrip():
        # nbgrader stamps each cell at release: a text that fits its own stamp was
        # released, only not this time.
        stamp = mark.get("checksum")
        other = stamp != released.get("checksum") and stamp == compute_checksum(cell)
        if other and not changed:
            yield (
                "outdated",
                f"The {what} is from another release of this assignment. The grader"
                " runs the one that stands in exercises/, as this check did; copy your"
                " answers into that notebook.",
            )
        else:
            yield (
                "tampered",
                f"The text of the {what} was changed. The grader puts the released text"
                " back, so write your own experiments in cells of your own.",
            )
    if "skip-execution" in cell.metadata.get("tags", []):
        tag = f"The {what} carries the tag skip-execution."
        yield "tagged", f"{tag} The grader runs it anyway; remove the tag."


def _unanswered(cell: NotebookNode, expected: NotebookNode) -> Found:
    what, source = describe(expected), cell.source.strip()
    untouched = source == expected.source.strip()
    if not expected.metadata.nbgrader.get("solution"):
        return
    if expected.cell_type == "markdown":
        if untouched or not cell.source.replace(EMPTY_ANSWER, "").strip():
            yield "empty", f"The written {what} is empty. Write your answer in it."
    elif untouched:
        yield "not-started", f"The {what} is not started: it is as it was released."
    elif not source:
        head = "Take its head from the released notebook."
        yield "empty", f"The {what} is empty. {head}"
    elif re.search(r"^\s*raise NotImplementedError\b", cell.source, re.MULTILINE):
        says = f"The {what} still says `raise NotImplementedError()`."
        yield "not-started", f"{says} Put your code in its place."


def _order(submitted: NotebookNode, released: NotebookNode) -> Iterator[Problem]:
    expected = list(by_name(released.cells))
    there = [name for cell in submitted.cells if (name := grade_id(cell)) in expected]
    last_place = {name: place for place, name in enumerate(there)}
    names = sorted(last_place, key=last_place.__getitem__)
    for name, follower in itertools.pairwise(names):
        if expected.index(name) > expected.index(follower):
            words = (
                f"{follower} stands below {name}, but was released above it. The grader"
                " runs cells from top to bottom; move it back."
            )
            yield Problem("moved", follower, words)


def _own_cells(submitted: NotebookNode, released: NotebookNode) -> Iterator[Problem]:
    """Find names that nbgrader does not know, and withheld modules."""
    known, names = by_name(released.cells), withheld(released)
    for index, cell in enumerate(submitted.cells):
        name, called = grade_id(cell), cell_name(submitted, index)
        if name is not None and name not in known:
            words = (
                f"The cell {called} is marked for grading, but this assignment has no"
                " such cell. Delete it, or paste its text into a new cell."
            )
            yield Problem("unknown", called, words)
        locked = name in known and known[name].metadata.nbgrader.get("locked")
        if cell.cell_type == "code" and not locked:
            for words in withheld_uses(cell.source, names):
                yield Problem("withheld", called, f"{called}: {words}.")
