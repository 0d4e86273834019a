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
from course_tools.grading.run.plan import Split

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
    notebook: str = ""  # of a plain course's assignment, which may have several
    split: Split | None = None  # where the tests of a plain course run

    @property
    def title(self) -> str:
        """What the log and the pages call it."""
        return f"{self.name}/{self.notebook}" if self.notebook else self.name

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
    source, notebook, released = _places(name, root)
    if not is_ours(name, root):
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
    return made(name, instructor, given, files)


def _places(name: str, root: Path) -> tuple[Path, Path, Path]:
    source = root / "solutions" / name / f"{name}.py"
    released = root / "exercises" / name / f"{name}.ipynb"
    return source, source.with_suffix(".ipynb"), released


def is_ours(name: str, root: Path) -> bool:
    """Whether an assignment has one notebook, under its own name, as ours have."""
    source, notebook, released = _places(name, root)
    return released.is_file() and (source.is_file() or notebook.is_file())


def made(
    name: str,
    instructor: NotebookNode,
    given: NotebookNode,
    files: dict[str, bytes],
    notebook: str = "",
) -> Assignment:
    """Put an assignment together, with the checksums of what marks rest on."""
    text = json.dumps([instructor.cells, given.cells], sort_keys=True)
    digest = hashlib.sha256(f"{VERSION}{text}".encode())
    for file in sorted(files):
        digest.update(file.encode() + hashlib.sha256(files[file]).digest())
    cells = _checksums(instructor, given, files)
    whole = instructor, given, files, digest.hexdigest(), cells
    return Assignment(name, *whole, notebook=notebook)


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
