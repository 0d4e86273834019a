"""Which cell of a submission runs where.

A student's cells run in the student's process. Test cells run in the referee's, with
their hidden tests, as the instructor's notebook has them; cells that the notebook gives
run in both, the referee's as they were released.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from course_tools.grading.assignments.editions import amendment, withheld
from course_tools.grading.assignments.source import is_demonstration
from course_tools.grading.check.check_structure import by_name, grade_id
from course_tools.grading.run.given_objects import (
    answer_names,
    defined_names,
    imports_of,
    interfaces,
)

#: The tag of a test cell that depends on chance.
FLAKY = "flaky"


def role(cell: NotebookNode) -> str:
    """Say what a released cell is: "answer", "test", "given" or "text"."""
    metadata = cell.metadata.get("nbgrader", {})
    if cell.cell_type != "code":
        return "text"
    if metadata.get("solution"):
        return "answer"
    return "test" if metadata.get("grade") else "given"


@dataclass(frozen=True)
class Split:
    """Where the tests of a plain course run."""

    there: Mapping[str, str]  # in the student's process, by name, and why
    numbers: frozenset[str]  # what ends in a number, its points, for the model answer


def steps(
    instructor: NotebookNode,
    released: NotebookNode,
    submitted: NotebookNode,
    split: Split | None = None,
) -> list[dict[str, Any]]:
    """Put the cells of a submission in the order in which they run.

    In a plain course, which has a split, an answer's imports are the test's as well, a
    name may also be defined by a cell of the student's own, and some tests run in the
    student's process.
    """
    places: dict[str | None, int] = {
        name: n for n, cell in enumerate(submitted.cells) if (name := grade_id(cell))
    }
    visible = {grade_id(cell): cell.source for cell in released.cells}
    tests = by_name(cell for cell in instructor.cells if role(cell) == "test")
    slow = by_name(filter(is_demonstration, released.cells))
    skipped = tests.keys() | slow.keys()
    found: list[dict[str, Any]] = [{"kind": "withhold", "withheld": withheld(released)}]
    done, own = -1, False  # whether cells of the student's own ran since names crossed
    known: dict[str, None] = {}
    declared_by_all: dict[str, str] = {}

    def students_cells(last: int, names: list[str], declared: dict[str, str]) -> None:
        nonlocal done, own
        step: dict[str, Any] = {"kind": "student", "names": []}
        for index in range(done + 1, last + 1):
            cell = submitted.cells[index]
            code = cell.source if cell.cell_type == "code" else ""
            if code.strip() and grade_id(cell) not in skipped:
                found.append(step | {"index": index, "source": code})
                own = True
        done = max(done, last)
        if names:
            if not found or found[-1]["kind"] != "student":
                found.append(step | {"index": last, "source": "pass"})
            found[-1].update(names=names, interfaces=declared)

    def give(name: str, *sources: str) -> None:
        step = {"kind": "given", "name": name}
        found.extend(step | {"source": source} for source in sources if source)

    for cell in instructor.cells:
        name, kind = grade_id(cell), role(cell)
        if kind == "text" or name in slow or is_demonstration(cell):
            continue
        if kind == "given":
            if name is not None:
                students_cells(places.get(name, done), [], {})
            for defined in defined_names(cell.source):
                known.pop(defined, None)
            give(name or "", cell.source, amendment(released, cell.source))
        elif kind == "answer":
            declared = interfaces(cell.source, visible.get(name, ""))
            names_of = defined_names if split is None else answer_names
            names = names_of(cell.source)
            students_cells(places.get(name, done), names, declared)
            if split is not None:
                give(str(name), imports_of(cell.source))
                known |= dict.fromkeys(names)
                declared_by_all |= declared
                own = False
        else:
            students_cells(places.get(name, done + 1) - 1, [], {})
            test: dict[str, Any] = {"kind": "test", "name": name, "source": cell.source}
            if split is not None:
                test |= {
                    "stock": name not in split.numbers,
                    "there": name in split.there,
                }
                if own and known:
                    learn = {"kind": "learn", "names": [*known]}
                    found.append(learn | {"interfaces": declared_by_all})
                    own = False
            points = float(cell.metadata.nbgrader.points)
            found.append(test | {"visible": visible[name], "points": points})
    return found


def flaky_tests(instructor: NotebookNode) -> dict[str, float]:
    """Name the tests declared to depend on chance, and their points."""
    tests = by_name(cell for cell in instructor.cells if role(cell) == "test")
    return {
        name: float(cell.metadata.nbgrader.points)
        for name, cell in tests.items()
        if FLAKY in cell.metadata.get("tags", [])
    }
