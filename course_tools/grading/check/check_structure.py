"""What is wrong with a student's notebook that one can see without running it.

The notebook as it was released says which cells there must be. Every finding is a
:class:`Problem` in words.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
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
    """One thing that is wrong.

    Attributes:
        kind: one word to sort by: deleted, unmarked, duplicated, retyped, altered,
            tampered, outdated, moved, tagged, unknown, misnamed, not-started, empty,
            withheld, slow, failing, flooding or dead.
        cell: the cell's name (nbgrader's ``grade_id``), or "cell 7" for the seventh
        cell of the notebook.
        message: what is wrong and what to do.
    """

    kind: str
    cell: str
    message: str


def grade_id(cell: NotebookNode) -> str | None:
    """The name under which nbgrader knows a cell, or None for a cell that it leaves
    alone."""
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def cell_name(notebook: NotebookNode, index: int) -> str:
    """The cell's ``grade_id``, or its place counted from 1."""
    return shown(grade_id(notebook.cells[index]) or f"cell {index + 1}", 80)


def describe(cell: NotebookNode) -> str:
    """Say what a released cell is for: "test cell beam-best (3 points)"."""
    role = cell.metadata.nbgrader
    kind = (
        "answer cell"
        if role.get("solution")
        else "test cell"
        if role.get("grade")
        else "read-only cell"
    )
    points = f" ({role['points']:g} points)" if role.get("grade") else ""
    return f"{kind} {role['grade_id']}{points}"


def structure_problems(
    submitted: NotebookNode, released: NotebookNode
) -> list[Problem]:
    """Compare a notebook with the one that was released."""
    problems: list[Problem] = []
    handed_in: dict[str | None, list[NotebookNode]] = {}
    for cell in submitted.cells:
        handed_in.setdefault(grade_id(cell), []).append(cell)
    for expected in released.cells:
        if (name := grade_id(expected)) is not None:
            copies = handed_in.get(name, [])
            problems.extend(_presence(expected, copies, submitted))
            problems.extend(
                problem for cell in copies[-1:] for problem in _changes(cell, expected)
            )
            problems.extend(
                problem
                for cell in copies[-1:]
                for problem in _unanswered(cell, expected)
            )
    problems.extend(_order(submitted, released))
    problems.extend(_own_cells(submitted, released))
    return problems


def _presence(
    expected: NotebookNode, copies: list[NotebookNode], submitted: NotebookNode
) -> Iterator[Problem]:
    name = expected.metadata.nbgrader.grade_id
    if len(copies) > 1:
        yield Problem(
            "duplicated",
            name,
            f"The {describe(expected)} is there {len(copies)} times; the grader reads"
            " the last. Delete the others.",
        )
    elif not copies:
        lost = any(
            cell.source == expected.source and grade_id(cell) is None
            for cell in submitted.cells
        )
        if lost:
            yield Problem(
                "unmarked",
                name,
                f"The {describe(expected)} has lost its grading mark: its text is there"
                " in a cell made by hand or by copying. Take the cell itself from the"
                " released notebook.",
            )
        else:
            yield Problem(
                "deleted",
                name,
                f"The {describe(expected)} is missing. Open the released notebook and"
                " copy your answers into it.",
            )


def _changes(cell: NotebookNode, expected: NotebookNode) -> Iterator[Problem]:
    name = expected.metadata.nbgrader.grade_id
    if cell.cell_type != expected.cell_type:
        yield Problem(
            "retyped",
            name,
            f"The {describe(expected)} must be a {expected.cell_type} cell; yours is a"
            f" {cell.cell_type} cell. Change it back with the cell type menu.",
        )
    role, released_role = cell.metadata.nbgrader, expected.metadata.nbgrader
    changed = [key for key in ROLES if role.get(key) != released_role.get(key)]
    if changed:
        words = ", ".join(
            f"{key} is {_cut(role.get(key))} instead of {released_role.get(key)!r}"
            for key in changed
        )
        yield Problem(
            "altered",
            name,
            f"The grading metadata of the {describe(expected)} was changed: {words}."
            " The grader puts it back; take the cell from the released notebook.",
        )
    if released_role.get("locked") and cell.source.rstrip() != expected.source.rstrip():
        yield _changed_text(cell, expected, role_unchanged=not changed)
    if "skip-execution" in cell.metadata.get("tags", []):
        yield Problem(
            "tagged",
            name,
            f"The {describe(expected)} carries the tag skip-execution. The grader runs"
            " it anyway; remove the tag.",
        )


def _cut(value: object) -> str:
    """What a notebook says in place of a mark, as Python would write it."""
    return shown(repr(value), 80)


def _changed_text(
    cell: NotebookNode, expected: NotebookNode, role_unchanged: bool
) -> Problem:
    name = expected.metadata.nbgrader.grade_id
    stamp = cell.metadata.nbgrader.get("checksum")
    # nbgrader stamps each cell at release: a text that fits its own stamp was released,
    # only not this time.
    if (
        role_unchanged
        and stamp != expected.metadata.nbgrader.get("checksum")
        and stamp == compute_checksum(cell)
    ):
        return Problem(
            "outdated",
            name,
            f"The {describe(expected)} is from another release of this assignment. The"
            " grader runs the one that stands in exercises/, as this check did; copy"
            " your answers into that notebook.",
        )
    return Problem(
        "tampered",
        name,
        f"The text of the {describe(expected)} was changed. The grader puts the"
        " released text back, so write your own experiments in cells of your own.",
    )


def _unanswered(cell: NotebookNode, expected: NotebookNode) -> Iterator[Problem]:
    name, role = expected.metadata.nbgrader.grade_id, expected.metadata.nbgrader
    if not role.get("solution"):
        return
    if expected.cell_type == "markdown":
        written = cell.source.replace(EMPTY_ANSWER, "").strip()
        if not written or cell.source.strip() == expected.source.strip():
            yield Problem(
                "empty",
                name,
                f"The written {describe(expected)} is empty. Write your answer in it.",
            )
    elif cell.source.strip() == expected.source.strip():
        yield Problem(
            "not-started",
            name,
            f"The {describe(expected)} is not started: it is as it was released.",
        )
    elif not cell.source.strip():
        yield Problem(
            "empty",
            name,
            f"The {describe(expected)} is empty. Take its head from the released"
            " notebook.",
        )
    elif re.search(r"^\s*raise NotImplementedError\b", cell.source, re.MULTILINE):
        yield Problem(
            "not-started",
            name,
            f"The {describe(expected)} still says `raise NotImplementedError()`. Put"
            " your code in its place.",
        )


def _order(submitted: NotebookNode, released: NotebookNode) -> Iterator[Problem]:
    expected = [name for cell in released.cells if (name := grade_id(cell))]
    there = [name for cell in submitted.cells if (name := grade_id(cell)) in expected]
    last_place = {name: place for place, name in enumerate(there)}
    names = sorted(last_place, key=last_place.__getitem__)
    for name, follower in itertools.pairwise(names):
        if expected.index(name) > expected.index(follower):
            yield Problem(
                "moved",
                follower,
                f"{follower} stands below {name}, but was released above it. The grader"
                " runs cells from top to bottom; move it back.",
            )


def _own_cells(submitted: NotebookNode, released: NotebookNode) -> Iterator[Problem]:
    """What stands in cells that the release did not lock: names nbgrader does not know,
    and withheld modules."""
    known = {name: cell for cell in released.cells if (name := grade_id(cell))}
    names = withheld(released)
    for index, cell in enumerate(submitted.cells):
        name = grade_id(cell)
        if name is not None and name not in known:
            called = cell_name(submitted, index)
            yield Problem(
                "unknown",
                called,
                f"The cell {called} is marked for grading, but this assignment has no"
                " such cell. Delete it, or paste its text into a new cell.",
            )
        locked = name in known and known[name].metadata.nbgrader.get("locked")
        if cell.cell_type == "code" and not locked:
            for words in withheld_uses(cell.source, names):
                yield Problem(
                    "withheld",
                    cell_name(submitted, index),
                    f"{cell_name(submitted, index)}: {words}.",
                )
