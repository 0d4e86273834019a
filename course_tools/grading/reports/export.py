"""`course export`: marks in the form that a learning platform takes, from
``gradebook.db``, the single truth.

A table is opened in spreadsheets, where a cell that begins with ``=``, ``+``, ``-`` or
``@`` is a formula that runs. No such cell leaves here, wherever a spreadsheet may take
a cell to begin: names are students' own choice.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory

from course_lib._files import write_whole
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.collect.late import LateWork
from course_tools.grading.collect.roster import Roster, Student, class_of, plain
from course_tools.grading.run.record import Records
from course_tools.grading.shown import shown

# a dash alone is how Moodle writes "nothing"
NUMBER = re.compile(r"-|-?\d+(\.\d+)?", re.ASCII)
MOST_LINES = 40  # of what failed, for Gradescope
#: In which column of a platform's own table a student's id, email or number stands, the
#: surest first.
KEYS = (
    "id",
    "sis login id",
    "sis user id",
    "username",
    "id number",
    "student id",
    "email address",
    "email",
    "full name",
)


class CannotExport(Exception):
    """There is nothing to export, or nowhere to put it; the text says why and what to
    do."""


@dataclass
class Row:
    """One student's marks.

    Attributes:
        student: who.
        marks: by question; None where a person has still to mark.
        raw: their sum.
        penalty: what late work costs.
        comments: by question, what a person wrote.
        handed_in: whether there is anything.
    """

    student: Student
    marks: dict[str, float | None] = field(default_factory=dict)
    raw: float = 0.0
    penalty: float = 0.0
    comments: dict[str, str] = field(default_factory=dict)
    handed_in: bool = False

    @property
    def score(self) -> float:
        """What counts: the marks without the penalty, and never less than nothing, as
        nbgrader's own export."""
        return max(0.0, self.raw - self.penalty)


@dataclass
class Exported:
    """What was written, and what a person should know before it is handed on."""

    place: Path
    notes: list[str] = field(default_factory=list)


def safe(cell: str) -> str:
    """Make a cell that no spreadsheet runs: an apostrophe stands before each sign that
    could begin a formula."""
    if NUMBER.fullmatch(cell):
        return cell
    written, begins = "", True
    for letter in cell:
        # a full-width sign is one, too
        plain_letter = unicodedata.normalize("NFKC", letter)
        if begins and plain_letter[0] in "=+-@":
            written += "'"
        written += letter
        splits = plain_letter[0] in ";,|" or not letter.isprintable()
        begins = splits or (begins and plain_letter.isspace())
    return written


def table(rows: Sequence[Sequence[str]]) -> str:
    """Write rows as CSV, every cell quoted, without formulas."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
        [safe(cell) for cell in row] for row in rows
    )
    return text.getvalue()


def _last_first(row: Row) -> str:
    student = row.student
    both = student.last_name and student.first_name
    return f"{student.last_name}, {student.first_name}" if both else student.name


Column = Callable[[Row], str]
NOTHING: Column = lambda row: ""  # noqa: E731
ID: Column = attrgetter("student.id")
FIRST: Column = attrgetter("student.first_name")
LAST: Column = attrgetter("student.last_name")
EMAIL: Column = attrgetter("student.email")
SCORE: Column = lambda row: f"{row.score:g}"  # noqa: E731


def columns(
    to: str, name: str, most: float, points: dict[str, float]
) -> list[tuple[str, Column]]:
    """Say which columns a platform takes and what stands in them; ``csv`` has
    everything: each question, the sum, the penalty, what counts, what waits for a
    person."""

    def mark(part: str) -> Column:
        return lambda row: "" if (m := row.marks.get(part)) is None else f"{m:g}"

    forms: dict[str, list[tuple[str, Column]]] = {
        "canvas": [
            ("Student", _last_first), ("ID", attrgetter("student.lms_user_id")),
            ("SIS User ID", NOTHING), ("SIS Login ID", ID),
            ("Section", NOTHING), (name, SCORE),
        ],
        "moodle": [
            ("Username", ID), ("First name", FIRST), ("Last name", LAST),
            ("Email address", EMAIL), (name, SCORE),
            ("Maximum grade", lambda _: f"{most:g}"),
        ],
        "blackboard": [
            ("Last Name", LAST), ("First Name", FIRST), ("Username", ID),
            (f"{name} [Total Pts: {most:g} Score]", SCORE),
        ],
        "csv": [
            ("id", ID), ("last_name", LAST), ("first_name", FIRST), ("email", EMAIL),
            *((part, mark(part)) for part in points),
            ("raw", lambda row: f"{row.raw:g}"),
            ("late_penalty", lambda row: f"{row.penalty:g}"),
            ("score", SCORE), ("max_score", lambda _: f"{most:g}"),
            ("to_mark", lambda row: str(sum(m is None for m in row.marks.values()))),
        ],
    }  # fmt: skip
    return forms[to]


def form(
    to: str, name: str, most: float, points: dict[str, float], rows: list[Row]
) -> str:
    """Write the table that a platform imports."""
    found = columns(to, name, most, points)
    body = [[column(row) for _, column in found] for row in rows]
    if to == "canvas":  # a row of points stands before the students
        body.insert(0, ["    Points Possible", "", "", "", "", f"{most:g}"])
    return table([[head for head, _ in found], *body])


FORMS = ("canvas", "moodle", "blackboard", "csv")


def export(
    name: str, to: str, root: Path = Path(), into: Path | None = None
) -> Exported:
    """Write the marks of an assignment into ``exports/``."""
    if to not in (*FORMS, "gradescope"):
        raise CannotExport(
            f"There is no form {to!r}. Choose one of"
            f" {', '.join([*FORMS, 'gradescope'])}."
        )
    courses = CourseDirectory(config=course_settings(root))
    with Gradebook(courses.db_url, courses.course_id) as gradebook:
        try:
            assignment = gradebook.find_assignment(name)
        except MissingEntry as error:
            raise CannotExport(
                f"The gradebook does not know {name}. Run: course release {name}"
            ) from error
        most = float(assignment.max_score)
        points = {
            cell.name: float(cell.max_score)
            for book in assignment.notebooks
            for cell in book.grade_cells
        }
        roster = class_of(gradebook)
        found = {
            each.student.id: each for each in gradebook.assignment_submissions(name)
        }
        rows = [
            _row(student, found.get(student.id))
            for _, student in sorted(roster.students.items())
        ]
        outdated = LateWork(courses, name).outdated(gradebook)
    notes = [
        f"{row.student.id} handed in nothing: 0 points."
        for row in rows
        if not row.handed_in
    ]
    notes += [
        f"{row.student.id} has {waits} answers that nobody marked yet; they count as 0."
        for row in rows
        if (waits := sum(mark is None for mark in row.marks.values()))
    ]
    if outdated:
        notes.append(
            f"The penalty of {', '.join(outdated)} is not up to date. Run: course grade"
            f" {name}"
        )
    folder = root / "exports"
    folder.mkdir(exist_ok=True)
    if to == "gradescope":
        place = folder / f"{name}-gradescope"
        _gradescope(
            place, courses, name, points, [row for row in rows if row.handed_in]
        )
    else:
        place = folder / f"{name}-{to}.csv"
        text = (
            form(to, name, most, points, rows)
            if into is None
            else fill(into, name, rows, roster, notes)
        )
        write_whole(place, text)
    return Exported(place, notes)


def _row(student: Student, submission: SubmittedAssignment | None) -> Row:
    if submission is None:
        return Row(student)
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    comments = [
        comment for notebook in submission.notebooks for comment in notebook.comments
    ]
    return Row(
        student,
        {
            grade.name: None if grade.needs_manual_grade else float(grade.score)
            for grade in grades
        },
        float(submission.score),
        float(submission.late_submission_penalty or 0.0),
        {
            comment.name: comment.manual_comment
            for comment in comments
            if comment.manual_comment
        },
        True,
    )


def fill(
    into: Path, name: str, rows: list[Row], roster: Roster, notes: list[str]
) -> str:
    """Fill the assignment's column of a platform's own table; all else in it stays."""
    cells = read_table(into)
    head = [cell.strip().casefold() for cell in cells[0]]
    columns = [
        place for place, cell in enumerate(head) if cell.startswith(name.casefold())
    ]
    columns = columns or [place for place, cell in enumerate(head) if cell == "grade"]
    if len(columns) != 1:
        raise CannotExport(
            f"{into} has {len(columns)} columns whose name begins with {name}; it needs"
            " one."
        )
    keys = [(key, head.index(key)) for key in KEYS if key in head]
    left = {row.student.id: row for row in rows}
    for line in cells[1:]:
        if len(line) < len(head) or not any(line[place].strip() for _, place in keys):
            # Canvas has rows on points and on posting between its head and its students
            continue
        student = next(
            (
                found
                for key, place in keys
                if (found := known(key, line[place], roster))
            ),
            None,
        )
        if student is None:
            notes.append(
                f"The row of {safe(line[0]) or 'nobody'} in {into.name} is no student"
                " of the gradebook."
            )
        elif student in left:
            line[columns[0]] = f"{left.pop(student).score:g}"
    notes += [
        f"{student} has no row in {into.name}."
        for student, row in left.items()
        if row.handed_in
    ]
    return table(cells)


def read_table(into: Path) -> list[list[str]]:
    """Read a table as platforms write them: with commas, semicolons or tabs, in UTF-8
    or UTF-16."""
    try:
        data = into.read_bytes()
        text = data.decode(
            "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        )
        first = text.partition("\n")[0]
        delimiter = (
            "\t"
            if "\t" in first
            else ";"
            if first.count(";") > first.count(",")
            else ","
        )
        # a student's own text may stand in a cell
        csv.field_size_limit(max(csv.field_size_limit(), len(text)))
        cells = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CannotExport(f"{into} cannot be read as a table: {error}.") from error
    if not cells:
        raise CannotExport(f"{into} is empty.")
    return cells


def known(key: str, cell: str, roster: Roster) -> str | None:
    """Say which student a cell of a platform's table means, by the kind of its column;
    None if nobody or two."""
    cell = cell.strip()
    kinds: dict[str, Callable[[Student], str]] = {
        "id": lambda student: student.lms_user_id, "full name": lambda student: plain(student.name),  # noqa: E501
        "email": lambda student: student.email, "email address": lambda student: student.email,  # noqa: E501
    }  # fmt: skip
    kind = kinds.get(key, lambda student: student.id)
    wanted = plain(cell) if key == "full name" else cell
    found = [
        student.id
        for student in roster.students.values()
        if wanted and kind(student) == wanted
    ]
    return found[0] if len(found) == 1 else None


def _gradescope(
    folder: Path,
    courses: CourseDirectory,
    name: str,
    points: dict[str, float],
    rows: list[Row],
) -> None:
    """Write ``STUDENT/results.json`` as Gradescope's autograders do: a test for each
    question, and what failed."""
    ours = Records(courses, name).done()
    for row in rows:
        place = folder / row.student.id / "results.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        # a page that stock nbgrader made may quote hidden tests; what `course grade`
        # says never does
        words = _words(
            Path(
                courses.format_path(courses.autograded_directory, row.student.id, name)
            ),
            name,
        )
        tests = [
            {
                "name": part,
                "score": mark or 0.0,
                "max_score": points[part],
                "output": (
                    row.comments.get(part)
                    or (words.get(part, "") if row.student.id in ours else "")
                ),
            }
            for part, mark in row.marks.items()
        ]
        notes = ours.get(row.student.id, {}).get("notes", [])
        results = {
            "score": row.score,
            "output": "\n".join(notes),
            "visibility": "visible",
            "tests": tests,
        }
        write_whole(
            place,
            json.dumps(
                results | {"stdout_visibility": "hidden"}, indent=1, ensure_ascii=False
            )
            + "\n",
        )


def _words(folder: Path, name: str) -> dict[str, str]:
    """By question, what failed, as the graded notebook has it."""
    place = folder / f"{name}.ipynb"
    if not place.is_file():
        return {}
    return {
        part: "\n".join(shown(line) for line in output.evalue.splitlines()[:MOST_LINES])
        for cell in nbformat.read(place, as_version=4).cells
        if (part := grade_id(cell)) and cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "error"
    }
