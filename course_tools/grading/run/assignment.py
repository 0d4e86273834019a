"""An assignment as the grader needs it: both notebooks, and what marks rest on."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution

from course_tools.grading.assignments.source import read_source
from course_tools.grading.check.check import read_released
from course_tools.grading.check.check_structure import grade_id

VERSION = "1"  # of the rules by which marks are made; a new one grades everybody again


class CannotGrade(Exception):
    """There is nothing to grade, or nothing to grade it with; the text says why."""


@dataclass(frozen=True)
class Assignment:
    """Both notebooks, the files beside them, and checksums of all and each test."""

    name: str
    instructor: NotebookNode
    released: NotebookNode
    files: dict[str, bytes]
    digest: str
    cells: dict[str, str] = field(default_factory=dict)
    feedback: str = "words"  # how much of its tests is given back

    @property
    def device(self) -> str:
        """What its header asks for (:mod:`course_tools.grading.run.class_run`)."""
        return str(self.instructor.metadata.get("course", {}).get("device", ""))

    @property
    def tests(self) -> list[NotebookNode]:
        """Its graded cells, as released."""
        return [cell for cell in self.released.cells if is_grade(cell)]

    @property
    def points(self) -> float:
        """The most that it can earn."""
        return float(sum(cell.metadata.nbgrader.points for cell in self.tests))


def load(name: str, root: Path) -> Assignment:
    """Read an assignment as the grader needs it."""
    source = root / "solutions" / name / f"{name}.py"
    released = root / "exercises" / name / f"{name}.ipynb"
    notebook = source.with_suffix(".ipynb")
    if not released.is_file() or not (source.is_file() or notebook.is_file()):
        no = f"There is no assignment {name} that was released here."
        raise CannotGrade(f"{no} Run: course release {name}")
    there = source.is_file()
    instructor = read_source(source) if there else nbformat.read(notebook, 4)
    given = read_released(released)
    files = {
        path.name: path.read_bytes()
        for path in sorted(released.parent.iterdir())
        if path.is_file() and path.suffix not in (".ipynb", ".py")
    }
    text = json.dumps([instructor.cells, given.cells], sort_keys=True)
    digest = hashlib.sha256(f"{VERSION}{text}".encode())
    for file in sorted(files):
        digest.update(file.encode() + hashlib.sha256(files[file]).digest())
    cells = _checksums(instructor, given, files)
    return Assignment(name, instructor, given, files, digest.hexdigest(), cells)


def _checksums(
    instructor: NotebookNode, released: NotebookNode, files: dict[str, bytes]
) -> dict[str, str]:
    """By question, a checksum of its test; under "" one of all the rest."""
    graded = [cell for cell in released.cells if is_grade(cell)]
    tests = {grade_id(cell) for cell in graded if not is_solution(cell)}
    shipped = [hashlib.sha256(files[file]).hexdigest() for file in sorted(files)]
    parts: dict[str, list[Any]] = {"": [VERSION, *shipped]}
    for cell in [*instructor.cells, *released.cells]:
        name = grade_id(cell)
        parts.setdefault((name or "") if name in tests else "", []).append(cell)
    states = {name: json.dumps(part, sort_keys=True) for name, part in parts.items()}
    return {
        name: hashlib.sha256(state.encode()).hexdigest()[:16]
        for name, state in states.items()
    }
