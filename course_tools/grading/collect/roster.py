"""Who is in the class: the students of the gradebook, found by id, by number on a
platform, or by name.

The list is the one that ``nbgrader db student import`` reads: a CSV file with the
columns ``id``, and as far as you have them ``first_name``, ``last_name``, ``email`` and
``lms_user_id`` (a student's number on Canvas).
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook

from course_tools.grading.collect.download_names import Label
from course_tools.grading.collect.intake import NAME

COLUMNS = ("first_name", "last_name", "email", "lms_user_id")


class CannotReadRoster(Exception):
    """The list of students has a fault; the text says which."""


@dataclass(frozen=True)
class Student:
    """One student of the class, as nbgrader's gradebook knows them."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""

    @property
    def name(self) -> str:
        """First and last name, or the id where there is none."""
        return f"{self.first_name} {self.last_name}".strip() or self.id


def plain(name: str) -> str:
    """A name as platforms shorten it: no accents, spaces, signs or capitals; letters of
    other scripts stay other."""
    apart = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in apart.casefold() if letter.isalnum())


class Roster:
    """The class, and who is meant by what a download says."""

    def __init__(self, students: Iterable[Student]) -> None:
        self.students = {student.id: student for student in students}

    def knows(self, name: str) -> bool:
        """Say whether a folder of that name is a student of the class."""
        return self.find(Label((name,), name))[0] in self.students

    def find(self, label: Label) -> tuple[str, str]:
        """Find the student that a name in a download means."""
        for one in label.ids:
            if one in self.students:
                return one, ""
        if label.number:
            by_number = [
                student.id
                for student in self.students.values()
                if student.lms_user_id == label.number
            ]
            if len(by_number) == 1:
                return by_number[0], ""
        alike = {plain(one) for one in (*label.ids, label.name)} - {""}
        found = sorted(
            student.id
            for student in self.students.values()
            # whose number is another one is somebody else, be the name the same
            if alike & _ways(student) and not (label.number and student.lms_user_id)
        )
        if len(found) == 1:
            # that a platform has names alone is no news; that somebody wrote an id in
            # another way is
            return found[0], (
                f"{label.name or label.ids[0]} is taken to be {found[0]}"
                if label.ids
                else ""
            )
        who = label.name or label.ids[-1]
        if found:
            return (
                "",
                (
                    f"{who} could be {' or '.join(found)}. Give both their number on"
                    " the platform as lms_user_id."
                ),
            )
        if label.platform in ("Blackboard", "folders") and NAME.fullmatch(
            label.ids[-1]
        ):
            # an id that the platform, or whoever made the folders, states
            note = (
                f"{label.ids[-1]} is not in the gradebook yet; the id is taken as it"
                " stands"
            )
            return label.ids[-1], note if self.students else ""
        return (
            "",
            (
                f"{who} is nobody in the gradebook. List the class: course collect"
                " --students students.csv"
            ),
        )


def _ways(student: Student) -> set[str]:
    first, last = student.first_name, student.last_name
    written = (student.id, student.email, student.email.partition("@")[0])
    return {
        plain(way)
        for way in (*written, *((first + last, last + first) if first and last else ()))
    } - {""}


def class_of(gradebook: Gradebook) -> Roster:
    """Read the class from a gradebook that is open."""
    return Roster(
        Student(
            student.id, *(str(getattr(student, column) or "") for column in COLUMNS)
        )
        for student in gradebook.students
    )


def enter(gradebook: Gradebook, listing: Path) -> int:
    """Enter a list of students into the gradebook; who is there already gets what the
    list says."""
    try:
        with listing.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CannotReadRoster(
            f"{listing} cannot be read as a CSV file in UTF-8: {error}."
        ) from error
    seen: set[str] = set()
    for number, row in enumerate(rows, start=2):
        student = row.get("id") or ""
        if NAME.fullmatch(student) is None:
            raise CannotReadRoster(
                f"{listing}, line {number}: {student!r} is no id. It needs a column id"
                " with letters, digits, . _ @ + -"
            )
        if student.casefold() in seen:
            raise CannotReadRoster(
                f"{listing}, line {number}: {student} stands there twice."
            )
        seen.add(student.casefold())
    for row in rows:
        gradebook.update_or_create_student(
            row["id"], **{name: row[name] for name in COLUMNS if row.get(name)}
        )
    return len(rows)
