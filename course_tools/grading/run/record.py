"""Marks where nbgrader reads them, and a log of who got what, when, by which tests.

``gradebook.db`` is the single truth; ``nbgrader export``, ``nbgrader formgrader`` and
``nbgrader generate_feedback`` go on working on it and on ``autograded/``. One process
writes. All marks of a submission are one transaction, and the line in the log comes
after it: a submission without its line is graded again, with the same marks.

`course replay` builds the marks again from the log alone. What a person marked by hand
is not in the log, so the marks of the tests are compared. A gradebook that differs was
written by something else: by stock nbgrader, by hand, or by somebody.
"""

import getpass
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Grade, Gradebook, MissingEntry, TaskCell
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import OperationalError

from course_lib.files import write_whole
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.run.judge import Mark, written
from course_tools.grading.shown import shown

LOG = "grading-log.jsonl"
SECONDS_LOCKED = 120


class CannotRecord(Exception):
    """Marks cannot be written; the text says why and what to do."""


@dataclass(frozen=True)
class Entry:
    """One line of the audit log."""

    time: str  # in UTC
    assignment: str
    student: str
    submission: str  # SHA-256 of the notebook that was handed in
    tests: str  # SHA-256 of the assignment: all that marks depend on
    environment: str  # versions of what runs the tests
    marks: dict[str, float | None]  # by question; None where a person marks
    problem: str  # why it could not be graded, in words
    notes: list[str]  # what a person should know
    tampering: list[str]  # what looked like it
    cells: dict[str, str] = field(default_factory=dict)
    question: str = ""  # the only one that was judged for this line; "" if all were
    who: str = field(default_factory=lambda: account())


def append(log: Path, entry: dict[str, Any]) -> None:
    """Add a line to a log, on the disk; close one that a crash cut off."""
    # in ASCII: a student's words can neither act on a terminal nor fail here
    line = json.dumps(entry).encode() + b"\n"
    with log.open("a+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = line if file.read() == b"\n" else b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def lines(log: Path) -> Iterator[dict[str, Any]]:
    """Read the whole lines of a log; one that a crash cut off is left out."""
    for line in log.read_bytes().split(b"\n") if log.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


def _fit(entry: Entry) -> dict[str, Any]:
    """An entry for the log, with an end to what may be a student's words."""
    notes, tampering = [*map(shown, entry.notes)], [*map(shown, entry.tampering)]
    said = {"notes": notes, "tampering": tampering, "problem": shown(entry.problem)}
    return asdict(entry) | said


def account() -> str:
    """Name the account that runs this; a container may have none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


class Records:
    """The gradebook, the graded notebooks and the log of one course folder."""

    def __init__(
        self, courses: CourseDirectory, assignment: str, notebook: str = ""
    ) -> None:
        self.courses, self.assignment = courses, assignment
        self.notebook = notebook or assignment
        self.title = f"{assignment}/{notebook}" if notebook else assignment
        self.log = Path(courses.root) / LOG
        # open while marks are written: to open it takes longer than to write
        self._gradebook: Gradebook | None = None
        with Gradebook(courses.db_url, courses.course_id) as gradebook:
            try:
                gradebook.find_notebook(self.notebook, assignment)
            except MissingEntry as error:
                unknown = f"The gradebook does not know {assignment}."
                raise CannotRecord(
                    f"{unknown} Run: course release {assignment}"
                ) from error

    def done(self) -> dict[str, dict[str, Any]]:
        """By student, the last whole line of the log for this assignment."""
        own = [one for one in lines(self.log) if one["assignment"] == self.title]
        return {line["student"]: line for line in own}

    def in_gradebook(self) -> set[str]:
        """Students who have a submission of this assignment there."""
        with Gradebook(self.courses.db_url, self.courses.course_id) as gradebook:
            return {
                s.student.id for s in gradebook.assignment_submissions(self.assignment)
            }

    def graded_notebook(self, student: str) -> Path:
        """Where nbgrader looks for the notebook that was marked."""
        folder = self._place(self.courses.autograded_directory, student)
        return folder / f"{self.notebook}.ipynb"

    def write(
        self,
        entry: Entry,
        notebook: str | None,
        marks: list[Mark],
        unanswered: Sequence[str] = (),
    ) -> None:
        """Record one submission: graded notebook, gradebook, log, in this order."""
        if notebook is not None:
            place = self.graded_notebook(entry.student)
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, notebook + "\n")
        earned = {mark.cell: mark.earned for mark in marks}
        marked = entry.student, earned, set(unanswered), notebook is not None
        self.patiently(entry.student, lambda: self._marks(*marked))
        append(self.log, _fit(entry))

    def write_question(
        self, entry: Entry, notebook: str, question: str, earned: float | None
    ) -> None:
        """Record one question that was judged again; all else stays."""
        place = self.graded_notebook(entry.student)
        if place.is_file():
            write_whole(place, notebook + "\n")
        self.patiently(
            entry.student, lambda: self._one_mark(entry.student, question, earned)
        )
        append(self.log, _fit(entry))

    def patiently(self, what: str, write: Callable[[], Any]) -> Any:
        """Write into the gradebook, and wait while another program holds it."""
        patience = time.monotonic() + SECONDS_LOCKED
        while True:
            try:
                return write()
            except OperationalError as error:  # another program holds the database
                self.close()
                if time.monotonic() > patience:
                    raise CannotRecord(
                        f"gradebook.db was locked for {SECONDS_LOCKED} s; {what} is not"
                        " recorded. Close what holds it and start again: graded work is"
                        " kept."
                    ) from error

    def _place(self, directory: str, student: str) -> Path:
        return Path(self.courses.format_path(directory, student, self.assignment))

    def _marks(
        self,
        student: str,
        earned: dict[str, float | None],
        unanswered: set[str],
        there: bool,
    ) -> None:
        gradebook = self._open()
        gradebook.update_or_create_student(student)
        name, folder = self.assignment, self.courses.submitted_directory
        when = self.courses.get_existing_timestamp(str(self._place(folder, student)))
        # None, too: the time of a notebook that this one replaces says nothing about
        # this one
        with gradebook.db.no_autoflush:
            gradebook.update_or_create_submission(name, student, timestamp=when)
            submitted = gradebook.find_submission_notebook(self.notebook, name, student)
            for grade in submitted.grades:
                if not isinstance(grade.cell, TaskCell) or not there:
                    _enter(grade, earned.get(grade.name, 0.0))
            for comment in submitted.comments:
                silent = comment.name in unanswered
                comment.auto_comment = "No response." if silent else None
        gradebook.db.commit()

    def _open(self) -> Gradebook:
        if self._gradebook is None:
            self._gradebook = Gradebook(self.courses.db_url, self.courses.course_id)
        return self._gradebook

    def close(self) -> None:
        """Let go of the gradebook."""
        if self._gradebook is not None:
            self._gradebook.close()
            self._gradebook = None

    def _one_mark(self, student: str, question: str, earned: float | None) -> None:
        gradebook, name = self._open(), self.assignment
        grade = gradebook.find_grade(question, self.notebook, name, student)
        _enter(grade, earned)
        gradebook.db.commit()


def _enter(grade: Grade, earned: float | None) -> None:
    grade.auto_score = earned
    grade.needs_manual_grade = earned is None or grade.manual_score is not None


def now() -> str:
    """The time for the log."""
    return datetime.now(UTC).isoformat(timespec="seconds")


Marks = dict[str, dict[str, float | None]]


@dataclass
class Replay:
    """What the log says."""

    marks: Marks = field(default_factory=dict)  # as the log leaves them
    count: int = 0  # lines of this assignment
    faults: list[str] = field(default_factory=list)  # where the log contradicts itself
    differences: list[str] = field(default_factory=list)  # of the gradebook

    def add(self, more: "Replay") -> None:
        """Add what the log says of another notebook of the assignment."""
        self.marks |= more.marks
        self.count += more.count
        self.faults += more.faults
        self.differences += more.differences

    @property
    def ok(self) -> bool:
        """Whether log and gradebook hold."""
        return not self.faults and not self.differences


def replay(name: str, root: Path = Path(), notebook: str = "") -> Replay:
    """Rebuild the marks of an assignment from the log, and compare."""
    courses = CourseDirectory(config=course_settings(root))
    found, records = Replay(), Records(courses, name, notebook)
    for line in lines(records.log):
        if line["assignment"] != records.title:
            continue
        found.count += 1
        student, before = line["student"], found.marks.get(line["student"], {})
        if question := line.get("question"):
            marks = line["marks"] | {question: None}
            if marks != before | {question: None}:
                what = f"{student}, {line['time']}: judging {question} again"
                found.faults.append(f"{what} changed other marks too.")
        found.marks[student] = line["marks"]
    found.differences = _differences(found.marks, _in_gradebook(records))
    return found


def _in_gradebook(records: Records) -> Marks:
    courses = records.courses
    with Gradebook(courses.db_url, courses.course_id) as gradebook:
        return {
            submission.student.id: {
                grade.name: grade.auto_score
                for notebook in submission.notebooks
                if notebook.name == records.notebook
                for grade in notebook.grades
                if not isinstance(grade.cell, TaskCell)
            }
            for submission in gradebook.assignment_submissions(records.assignment)
        }


def _differences(log: Marks, gradebook: Marks) -> list[str]:
    found = []
    for student in sorted(log.keys() | gradebook.keys()):
        if student not in log:
            found.append(f"{student} is in the gradebook and not in the log.")
        elif student not in gradebook:
            found.append(f"{student} is in the log and not in the gradebook.")
        else:
            for part, mark in gradebook[student].items():
                if (said := log[student].get(part, 0.0)) != mark:
                    both = f"{written(said)} in the log, {written(mark)}"
                    found.append(f"{student}, {part}: {both} in the gradebook.")
    return found
