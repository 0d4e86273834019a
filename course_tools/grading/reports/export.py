"""`course export`: marks from ``gradebook.db`` in the form of a platform.

A table is opened in spreadsheets, where a cell that begins with ``=``, ``+``, ``-`` or
``@`` is a formula that runs. No such cell leaves here, wherever a spreadsheet may take
a cell to begin: names are students' own choice.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Assignment, Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory

from course_lib.files import write_whole
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
KEYS = ["id", "sis login id", "sis user id", "username", "id number", "student id"]
KEYS += ["email address", "email", "full name"]


class CannotExport(Exception):
    """There is nothing to export, or nowhere to put it; the text says why."""


@dataclass
class Row:
    """One student's marks."""

    student: Student
    marks: dict[str, float | None] = field(default_factory=dict)
    raw: float = 0.0  # the sum of the marks
    penalty: float = 0.0  # what late work costs
    comments: dict[str, str] = field(default_factory=dict)
    handed_in: bool = False  # whether there is anything

    @property
    def score(self) -> float:
        """What counts, as in nbgrader's own export: never less than nothing."""
        return max(0.0, self.raw - self.penalty)


@dataclass
class Exported:
    """What was written, and what a person should know before it is handed on."""

    place: Path
    notes: list[str] = field(default_factory=list)


def safe(cell: str) -> str:
    """Put an apostrophe before each sign that could begin a formula."""
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


HEADS = {
    "canvas": "Student,ID,SIS User ID,SIS Login ID,Section",
    "moodle": "Username,First name,Last name,Email address",
    "blackboard": "Last Name,First Name,Username",
    "csv": "id,last_name,first_name,email",
}
FORMS = (*HEADS, "gradescope")


def form(
    to: str, name: str, most: float, points: dict[str, float], rows: list[Row]
) -> str:
    """Write the table that a platform imports; ``csv`` has everything."""
    full = f"{most:g}"
    behind = {
        "canvas": [name],
        "moodle": [name, "Maximum grade"],
        "blackboard": [f"{name} [Total Pts: {full} Score]"],
        "csv": [*points, "raw", "late_penalty", "score", "max_score", "to_mark"],
    }
    body = [_cells(to, row, full, list(points)) for row in rows]
    if to == "canvas":  # a row of points stands before the students
        body.insert(0, ["    Points Possible", "", "", "", "", full])
    return table([[*HEADS[to].split(","), *behind[to]], *body])


def _cells(to: str, row: Row, full: str, parts: list[str]) -> list[str]:
    student, score = row.student, f"{row.score:g}"
    first, last = student.first_name, student.last_name
    if to == "canvas":
        name = f"{last}, {first}" if last and first else student.name
        return [name, student.lms_user_id, "", student.id, "", score]
    if to == "moodle":
        return [student.id, first, last, student.email, score, full]
    if to == "blackboard":
        return [last, first, student.id, score]
    marks = [row.marks.get(part) for part in parts]
    numbers = ["" if mark is None else f"{mark:g}" for mark in marks]
    sums = [f"{row.raw:g}", f"{row.penalty:g}", score, full, str(_to_mark(row))]
    return [student.id, last, first, student.email, *numbers, *sums]


def _to_mark(row: Row) -> int:
    return sum(mark is None for mark in row.marks.values())


def export(
    name: str, to: str, root: Path = Path(), into: Path | None = None
) -> Exported:
    """Write the marks of an assignment into ``exports/``."""
    if to not in FORMS:
        known = ", ".join(FORMS)
        raise CannotExport(f"There is no form {to!r}. Choose one of {known}.")
    courses = CourseDirectory(config=course_settings(root))
    with Gradebook(courses.db_url, courses.course_id) as gradebook:
        try:
            assignment = gradebook.find_assignment(name)
        except MissingEntry as error:
            raise CannotExport(
                f"The gradebook does not know {name}. Run: course release {name}"
            ) from error
        most = float(assignment.max_score)
        points = points_of(assignment)
        roster = class_of(gradebook)
        submissions = gradebook.assignment_submissions(name)
        found = {each.student.id: each for each in submissions}
        students = sorted(roster.students.items())
        rows = [_row(student, found.get(key)) for key, student in students]
        outdated = ", ".join(LateWork(courses, name).outdated(gradebook))
    handed_in = [row for row in rows if row.handed_in]
    nothing = [row.student.id for row in rows if not row.handed_in]
    notes = [f"{student} handed in nothing: 0 points." for student in nothing]
    notes += [
        f"{row.student.id} has {waits} answers that nobody marked yet; they count as 0."
        for row in rows
        if (waits := _to_mark(row))
    ]
    if outdated:
        late = f"The penalty of {outdated} is not up to date."
        notes.append(f"{late} Run: course grade {name}")
    folder = root / "exports"
    folder.mkdir(exist_ok=True)
    if to == "gradescope":
        place = folder / f"{name}-gradescope"
        _gradescope(place, courses, name, points, handed_in)
    else:
        place = folder / f"{name}-{to}.csv"
        if into is None:
            write_whole(place, form(to, name, most, points, rows))
        else:
            write_whole(place, fill(into, name, rows, roster, notes))
    return Exported(place, notes)


def _row(student: Student, submission: SubmittedAssignment | None) -> Row:
    if submission is None:
        return Row(student)
    comments = [one for notebook in submission.notebooks for one in notebook.comments]
    return Row(
        student,
        marks_of(submission),
        float(submission.score),
        float(submission.late_submission_penalty or 0.0),
        {one.name: one.manual_comment for one in comments if one.manual_comment},
        True,
    )


def marks_of(submission: SubmittedAssignment) -> dict[str, float | None]:
    """By question, what a submission has; None where a person has still to mark."""
    among = submission.notebooks
    return {
        _key(notebook, among, grade.name): None
        if grade.needs_manual_grade
        else float(grade.score)
        for notebook in among
        for grade in notebook.grades
    }


def _key(notebook: Any, among: Sequence[Any], cell: str) -> str:
    """A question's name; two notebooks of an assignment may have one of the same."""
    return cell if len(among) == 1 else f"{notebook.name}/{cell}"


def points_of(assignment: Assignment) -> dict[str, float]:
    """By question, the most it can earn."""
    among = assignment.notebooks
    return {
        _key(notebook, among, cell.name): float(cell.max_score)
        for notebook in among
        for cell in [*notebook.grade_cells, *notebook.task_cells]
    }


def fill(
    into: Path, name: str, rows: list[Row], roster: Roster, notes: list[str]
) -> str:
    """Fill the assignment's column of a platform's own table; all else in it stays."""
    cells = read_table(into)
    head = [cell.strip().casefold() for cell in cells[0]]
    starts = [n for n, cell in enumerate(head) if cell.startswith(name.casefold())]
    columns = starts or [n for n, cell in enumerate(head) if cell == "grade"]
    if len(columns) != 1:
        many = f"{into} has {len(columns)} columns whose name begins with {name}"
        raise CannotExport(f"{many}; it needs one.")
    keys = [(key, head.index(key)) for key in KEYS if key in head]
    left = {row.student.id: row for row in rows}
    for line in cells[1:]:
        if len(line) < len(head) or not any(line[place].strip() for _, place in keys):
            # Canvas has rows on points and on posting between its head and its students
            continue
        student = known(keys, line, roster)
        if student is None:
            row = f"The row of {safe(line[0]) or 'nobody'} in {into.name}"
            notes.append(f"{row} is no student of the gradebook.")
        elif student in left:
            line[columns[0]] = f"{left.pop(student).score:g}"
    without = [student for student, row in left.items() if row.handed_in]
    notes += [f"{student} has no row in {into.name}." for student in without]
    return table(cells)


def read_table(into: Path) -> list[list[str]]:
    """Read a platform's table, with , ; or tabs, in UTF-8 or UTF-16."""
    try:
        data = into.read_bytes()
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = data.decode("utf-16" if wide else "utf-8-sig")
        first = text.partition("\n")[0]
        delimiter = ";" if first.count(";") > first.count(",") else ","
        delimiter = "\t" if "\t" in first else delimiter
        # a student's own text may stand in a cell
        csv.field_size_limit(max(csv.field_size_limit(), len(text)))
        cells = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CannotExport(f"{into} cannot be read as a table: {error}.") from error
    if not cells:
        raise CannotExport(f"{into} is empty.")
    return cells


def known(keys: list[tuple[str, int]], row: list[str], roster: Roster) -> str | None:
    """Say which one student a row means, by the first column that tells; or None."""
    fields = {"id": "lms_user_id", "email": "email", "email address": "email"}
    for key, place in keys:
        wanted, field = row[place].strip(), fields.get(key, "id")
        students = {one: getattr(one, field) for one in roster.students.values()}
        if key == "full name":
            wanted = plain(wanted)
            students = {one: plain(one.name) for one in students}
        found = [one.id for one, said in students.items() if wanted and said == wanted]
        if len(found) == 1:
            return found[0]
    return None


def _gradescope(
    folder: Path,
    courses: CourseDirectory,
    name: str,
    points: dict[str, float],
    rows: list[Row],
) -> None:
    """Write ``STUDENT/results.json`` as Gradescope's autograders do."""
    ours = Records(courses, name).done()
    for row in rows:
        place = folder / row.student.id / "results.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        # a page that stock nbgrader made may quote hidden tests; what `course grade`
        # says never does
        student, graded = row.student.id, courses.autograded_directory
        line = ours.get(student)
        folder_of = Path(courses.format_path(graded, student, name))
        words = {} if line is None else _words(folder_of / f"{name}.ipynb")
        tests = [
            {
                "name": part,
                "score": mark or 0.0,
                "max_score": points[part],
                "output": row.comments.get(part) or words.get(part, ""),
            }
            for part, mark in row.marks.items()
        ]
        results = {
            "score": row.score,
            "output": "\n".join(line.get("notes", []) if line else []),
            "visibility": "visible",
            "tests": tests,
            "stdout_visibility": "hidden",
        }
        text = json.dumps(results, indent=1, ensure_ascii=False)
        write_whole(place, f"{text}\n")


def _words(place: Path) -> dict[str, str]:
    """By question, what failed, as the graded notebook has it."""
    if not place.is_file():
        return {}
    return {
        part: "\n".join(shown(line) for line in output.evalue.splitlines()[:MOST_LINES])
        for cell in nbformat.read(place, as_version=4).cells
        if (part := grade_id(cell)) and cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "error"
    }
