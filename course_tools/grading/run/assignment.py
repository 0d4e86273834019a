"""An assignment as the grader needs it: the instructor's notebook, the released one,
and what marks depend on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import is_grade

from course_tools.grading.assignments.source import read_source
from course_tools.grading.check.check import read_released
from course_tools.grading.check.check_structure import grade_id

VERSION = "1"  # of the rules by which marks are made; a new one grades everybody again


class CannotGrade(Exception):
    """There is nothing to grade, or nothing to grade it with; the text says why and
    what to do."""


@dataclass(frozen=True)
class Assignment:
    """The instructor's notebook, the released one, the files beside it, and a checksum
    of all, and of each test."""

    name: str
    instructor: NotebookNode
    released: NotebookNode
    files: dict[str, bytes]
    digest: str
    cells: dict[str, str] = field(default_factory=dict)

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
        raise CannotGrade(
            f"There is no assignment {name} that was released here. Run: course release"
            f" {name}"
        )
    instructor = (
        read_source(source)
        if source.is_file()
        else nbformat.read(notebook, as_version=4)
    )
    files = {
        path.name: path.read_bytes()
        for path in sorted(released.parent.iterdir())
        if path.is_file() and path.suffix not in (".ipynb", ".py")
    }
    digest = hashlib.sha256(VERSION.encode())
    digest.update(
        json.dumps(
            [instructor.cells, read_released(released).cells], sort_keys=True
        ).encode()
    )
    for file in sorted(files):
        digest.update(file.encode() + hashlib.sha256(files[file]).digest())
    cells = _checksums(instructor, read_released(released), files)
    return Assignment(
        name, instructor, read_released(released), files, digest.hexdigest(), cells
    )


def _checksums(
    instructor: NotebookNode, released: NotebookNode, files: dict[str, bytes]
) -> dict[str, str]:
    """By question, a checksum of its test; under "" one of all that every mark depends
    on."""
    tests = {
        grade_id(cell)
        for cell in released.cells
        if is_grade(cell) and not cell.metadata.nbgrader.get("solution")
    }
    parts: dict[str, Any] = {
        "": [
            VERSION,
            *(hashlib.sha256(files[file]).hexdigest() for file in sorted(files)),
        ]
    }
    for cell in [*instructor.cells, *released.cells]:
        name = grade_id(cell)
        parts.setdefault(name if name in tests and name is not None else "", []).append(
            cell
        )
    return {
        name: hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]
        for name, part in parts.items()
    }
