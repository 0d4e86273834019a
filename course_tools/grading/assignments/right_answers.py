"""What independently written right answers have: what is common, and no sign of a copy.

`course release` takes it from the right answers that the graders are tested with, and
leaves it beside the assignment as ``solutions/<name>.right.json``. So a course without
our tests has it too. In it are fingerprints alone, from which no source can be read;
and since it lies outside ``solutions/<name>/``, nbgrader releases it to nobody.
"""

import json
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.utils import is_solution

from course_lib.files import write_whole
from course_tools.grading.assignments.mutants import change, load_cases
from course_tools.grading.check.check_structure import by_name
from course_tools.grading.reports.fingerprints import fingerprints, of


def place(name: str, root: Path = Path()) -> Path:
    """Where they are kept."""
    return root / "solutions" / f"{name}.right.json"


def right_answers(
    name: str, model: NotebookNode, root: Path = Path()
) -> dict[str, list[int]]:
    """The fingerprints of what each right answer has of its own: of a cell that is the
    model's but for some words, those words' alone."""
    answers = by_name(filter(is_solution, model.cells))
    found = {}
    for answer in load_cases(name, root)[1]:
        marks: set[int] = set()
        cells = by_name(change(model, answer.changes).cells)
        for cell, changed in answer.changes.items():
            written = of(fingerprints([cells[cell].source])[0])
            if isinstance(changed, tuple):
                written -= of(fingerprints([answers[cell].source])[0])
            marks |= written
        found[answer.name] = sorted(marks)
    return found


def keep(name: str, model: NotebookNode, root: Path = Path()) -> None:
    """Write them, where the graders' tests of the assignment are; else what is kept
    stays."""
    if (root / "tests" / "assignments" / "mutants" / f"{name}.py").is_file():
        found = right_answers(name, model, root)
        rows = [f'"{answer}": {marks}' for answer, marks in found.items()]
        write_whole(place(name, root), "{\n" + ",\n".join(rows) + "\n}\n")


def kept(name: str, root: Path = Path()) -> dict[str, frozenset[int]]:
    """Read them; none where the assignment has none."""
    if not place(name, root).is_file():
        return {}
    read = json.loads(place(name, root).read_text(encoding="utf-8"))
    return {answer: frozenset(marks) for answer, marks in read.items()}
