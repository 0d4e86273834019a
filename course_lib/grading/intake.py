"""Collect what students handed in, and take nothing on trust: who, where, what kind of file, how large.

Nothing is skipped in silence: a submission that cannot be read is one with a problem, in words, and gets no points.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import unicodedata
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import nbformat
from nbformat import NotebookNode

from course_lib.grading.check import CannotCheck, parse_notebook
from course_lib.grading.check_structure import grade_id

LARGEST = 20 * 2**20
DEEPEST = 60
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


@dataclass
class Submission:
    """One student's work.

    Attributes:
        student: the name of the folder, which is the student's id in the gradebook.
        path: the notebook.
        digest: SHA-256 of its bytes; "" if there are none to read.
        packed: the notebook that is in them, compressed: of a large class all are held at once, though few are open.
        problem: why it cannot be graded, in words; "" if it can.
        notes: what a person should know about it.
    """

    student: str
    path: Path
    digest: str = ""
    packed: bytes = b""
    problem: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def notebook(self) -> NotebookNode | None:
        """A fresh copy of what was handed in; None if it cannot be graded."""
        return None if self.problem else nbformat.from_dict(json.loads(zlib.decompress(self.packed)))


@dataclass
class Collected:
    """All that lies in the folder of submissions: what can be graded or explained, and what belongs to nobody."""

    submissions: list[Submission]
    strangers: list[str]


def collect(folder: Path, assignment: str, graded: Mapping[str, str] = MappingProxyType({})) -> Collected:
    """Read every submission of an assignment: ``folder/STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb``.

    Args:
        folder: nbgrader's ``submitted``.
        assignment: its name.
        graded: by student, the digest of a submission that need not be opened again.

    Returns:
        Submissions by student, in alphabetical order, and in words what else lies there.
    """
    submissions, strangers = [], []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() or not entry.is_dir(follow_symlinks=False):
            strangers.append(f"{entry.name!r} in {folder} is no folder of a student; it is left out.")
        elif NAME.fullmatch(entry.name) is None:
            shown = entry.name.encode("ascii", "backslashreplace").decode()
            alike = unicodedata.normalize("NFKC", entry.name)
            hint = f" It looks like {alike!r}." if alike != entry.name and NAME.fullmatch(alike) else ""
            strangers.append(f"The folder {shown!r} is no student's id (letters, digits, . _ @ + -).{hint}")
        elif (place := Path(entry.path, assignment)).is_symlink() or place.exists():
            submissions.append(read(entry.name, place, assignment, graded.get(entry.name)))
    return Collected(submissions, strangers)


def read(student: str, folder: Path, assignment: str, graded: str | None = None) -> Submission:
    """Read one submission.

    Args:
        student: the id.
        folder: ``submitted/STUDENT/ASSIGNMENT``.
        assignment: its name, which the notebook must have.
        graded: its digest when it was graded; if it is the same still, the notebook is not opened.

    Returns:
        The submission, with its notebook or a problem.
    """
    submission = Submission(student, folder / f"{assignment}.ipynb")
    if folder.is_symlink() or not folder.is_dir():
        submission.problem = f"{folder.name} is a link or a file, not a folder with a notebook."
        return submission
    if not os.path.lexists(submission.path):
        others = sorted(path for path in folder.iterdir() if path.suffix == ".ipynb")
        if len(others) != 1:
            names = ", ".join(path.name.encode("ascii", "backslashreplace").decode() for path in others) or "none"
            submission.problem = f"There is no {assignment}.ipynb; notebooks here: {names}."
            return submission
        submission.path = others[0]
        submission.notes.append(f"The notebook should be called {assignment}.ipynb; the only one here was taken.")
    try:
        data = plain_bytes(submission.path)
        submission.digest = hashlib.sha256(data).hexdigest()
        if submission.digest == graded:
            return submission
        notebook = _notebook(data, f"{assignment}.ipynb")
        submission.packed = zlib.compress(json.dumps(notebook).encode())
    except CannotCheck as error:
        submission.problem = str(error)
    return submission


def plain_bytes(path: Path) -> bytes:
    """Read a plain file of bounded size; no link is followed, no pipe or device opened."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise CannotCheck(f"{path.name} cannot be opened; it may be a link ({error.strerror}).") from error
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise CannotCheck(f"{path.name} is no plain file.")
        if about.st_nlink > 1:
            raise CannotCheck(f"{path.name} is one of several names of a file, which may be another's work.")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise CannotCheck(f"{path.name} is larger than {LARGEST // 2**20} MiB. Clear its outputs and hand in again.")
    return data


def _notebook(data: bytes, name: str) -> NotebookNode:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CannotCheck(f"{name} cannot be read as text ({error.reason}).") from error
    notebook = parse_notebook(text, name)
    if not any(grade_id(cell) for cell in notebook.cells):
        raise CannotCheck(f"{name} has no cell marked for grading: it was not made from the released notebook.")
    return notebook
