"""Collect what students handed in, and take nothing on trust.

Nothing is skipped in silence: a submission that cannot be read is one with a problem,
in words, and gets no points.
"""

import hashlib
import json
import os
import re
import stat
import unicodedata
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from course_tools.grading.check.notebook_files import LARGEST, CannotCheck
from course_tools.grading.run.reader import CannotRead
from course_tools.grading.shown import shown

#: Reads the text of a notebook, which messages call by a name, and gives what JSON can
#: say.
Read = Callable[[str, str], Any]
NOBODY: Mapping[str, str] = MappingProxyType({})
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


@dataclass
class Submission:
    """One student's work."""

    student: str  # the name of the folder, which is the student's id in the gradebook
    path: Path  # the notebook
    digest: str = ""  # SHA-256 of its bytes; "" if there are none to read
    packed: bytes = b""  # what reading it gave, compressed: a class may be large
    problem: str = ""  # why it cannot be graded, in words; "" if it can
    notes: list[str] = field(default_factory=list)  # what a person should know about it

    @property
    def content(self) -> Any:
        """What reading it gave."""
        return json.loads(zlib.decompress(self.packed))


@dataclass
class Collected:
    """All that lies among submissions: what is somebody's, and what is nobody's."""

    submissions: list[Submission]
    strangers: list[str]


def collect(
    folder: Path,
    assignment: str,
    read_text: Read,
    graded: Mapping[str, str] = MappingProxyType({}),
    notebook: str = "",
) -> Collected:
    """Read the submissions ``folder/STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb``, or of an
    assignment with several notebooks one of them."""
    submissions, strangers = [], []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() or not entry.is_dir(follow_symlinks=False):
            what = f"{shown(entry.name)!r} in {folder} is no folder of a student"
            strangers.append(f"{what}; it is left out.")
        elif NAME.fullmatch(entry.name) is None:
            alike = unicodedata.normalize("NFKC", entry.name)
            fits = alike != entry.name and NAME.fullmatch(alike)
            hint = f" It looks like {shown(alike)!r}." if fits else ""
            strangers.append(
                f"The folder {shown(ascii(entry.name))} is no student's id (letters,"
                f" digits, . _ @ + -).{hint}"
            )
        elif (place := Path(entry.path, assignment)).is_symlink() or place.exists():
            before = graded.get(entry.name, "")
            about = entry.name, place, assignment, read_text, before
            one = read(*about, notebook)
            submissions.append(one)
    return Collected(submissions, strangers)


def read(
    student: str,
    folder: Path,
    assignment: str,
    read_text: Read,
    graded: str = "",
    notebook: str = "",
) -> Submission:
    """Read one submission, unless its bytes are those that are graded."""
    name = f"{notebook or assignment}.ipynb"
    submission = Submission(student, folder / name)
    if folder.is_symlink() or not folder.is_dir():
        link = f"{folder.name} is a link or a file"
        submission.problem = f"{link}, not a folder with a notebook."
        return submission
    if not os.path.lexists(submission.path):
        others = sorted(path for path in folder.iterdir() if path.suffix == ".ipynb")
        if notebook or len(others) != 1:
            names = ", ".join(shown(path.name) for path in others) or "none"
            submission.problem = f"There is no {name}; notebooks here: {names}."
            return submission
        submission.path = others[0]
        only = "the only one here was taken."
        submission.notes.append(f"The notebook should be called {name}; {only}")
    try:
        data = plain_bytes(submission.path)
        submission.digest = hashlib.sha256(data).hexdigest()
        if submission.digest != graded:
            content = read_text(data.decode("utf-8"), name)
            submission.packed = zlib.compress(json.dumps(content).encode())
    except UnicodeDecodeError as error:
        submission.problem = f"{name} cannot be read as text ({error.reason})."
    except CannotRead as error:
        submission.problem = shown(error)
    return submission


def plain_bytes(path: Path) -> bytes:
    """Read a plain file of bounded size: no link, no pipe, no device."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise CannotCheck(
            f"{path.name} cannot be opened; it may be a link ({error.strerror})."
        ) from error
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise CannotCheck(f"{path.name} is no plain file.")
        if about.st_nlink > 1:
            names = f"{path.name} is one of several names of a file"
            raise CannotCheck(f"{names}, which may be another's work.")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        large = f"{path.name} is larger than {LARGEST // 2**20} MiB."
        raise CannotCheck(f"{large} Clear its outputs and hand in again.")
    return data
