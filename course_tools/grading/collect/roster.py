"""Who is in the class: found by id, by number on a platform, or by name.

The list is the one that ``nbgrader db student import`` reads: a CSV file with the
columns ``id``, and as far as you have them ``first_name``, ``last_name``, ``email`` and
``lms_user_id`` (a student's number on Canvas).
"""

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
    """A name as platforms shorten it: no accents, spaces, signs or capitals."""
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
        students, number = self.students.values(), label.number
        if number:
            by_number = [one.id for one in students if one.lms_user_id == number]
            if len(by_number) == 1:
                return by_number[0], ""
        alike = {plain(one) for one in (*label.ids, label.name)} - {""}
        # whose number is another one is somebody else, be the name the same
        others = [one for one in students if not (number and one.lms_user_id)]
        found = sorted(one.id for one in others if alike & _ways(one))
        if len(found) == 1:
            # that a platform has names alone is no news; that somebody wrote an id in
            # another way is
            note = f"{label.name or label.ids[0]} is taken to be {found[0]}"
            return found[0], note if label.ids else ""
        who = label.name or label.ids[-1]
        if found:
            several = f"{who} could be {' or '.join(found)}."
            both = "Give both their number on the platform as lms_user_id."
            return "", f"{several} {both}"
        stated = label.platform in ("Blackboard", "folders")
        if stated and NAME.fullmatch(new := label.ids[-1]):
            # an id that the platform, or whoever made the folders, states
            note = f"{new} is not in the gradebook yet; the id is taken as it stands"
            return new, note if self.students else ""
        nobody = f"{who} is nobody in the gradebook."
        return "", f"{nobody} List the class: course collect --students students.csv"


def _ways(student: Student) -> set[str]:
    first, last = student.first_name, student.last_name
    both = (first + last, last + first) if first and last else ()
    written = (student.id, student.email, student.email.partition("@")[0])
    return {plain(way) for way in (*written, *both)} - {""}


def class_of(gradebook: Gradebook) -> Roster:
    """Read the class from a gradebook that is open."""
    return Roster(
        Student(one.id, *(str(getattr(one, column) or "") for column in COLUMNS))
        for one in gradebook.students
    )


def enter(gradebook: Gradebook, listing: Path) -> int:
    """Enter a list of students into the gradebook, or bring it up to date."""
    try:
        with listing.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CannotReadRoster(
            f"{listing} cannot be read as a CSV file in UTF-8: {error}."
        ) from error
    seen: set[str] = set()
    for number, row in enumerate(rows, start=2):
        student, line = row.get("id") or "", f"{listing}, line {number}"
        if NAME.fullmatch(student) is None:
            column = "It needs a column id with letters, digits, . _ @ + -"
            raise CannotReadRoster(f"{line}: {student!r} is no id. {column}")
        if student.casefold() in seen:
            raise CannotReadRoster(f"{line}: {student} stands there twice.")
        seen.add(student.casefold())
    for row in rows:
        fields = {name: row[name] for name in COLUMNS if row.get(name)}
        gradebook.update_or_create_student(row["id"], **fields)
    return len(rows)
