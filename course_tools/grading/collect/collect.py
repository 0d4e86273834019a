"""`course collect`: from what a learning platform hands out to
``submitted/STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb``.

Each file of the download is taken, or named with the reason why not. Of several
attempts the latest counts. What the notebook is worth, nobody asks here:
:mod:`course_tools.grading.collect.intake` reads it when it is graded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from zoneinfo import ZoneInfo

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import FileNameCollectorPlugin
from nbgrader.utils import parse_utc

from course_lib._files import write_whole
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.collect.download_names import Label, labels
from course_tools.grading.collect.handed_in_at import times
from course_tools.grading.collect.intake import NAME, read
from course_tools.grading.collect.roster import class_of, enter
from course_tools.grading.collect.unpack import CannotUnpack, File, contents, inner_zip
from course_tools.grading.run.reader import Reader
from course_tools.grading.run.reading import readable
from course_tools.grading.shown import shown

TIMESTAMP = "timestamp.txt"
MOST_ARCHIVES = 10  # of one student: each that is looked into is held in memory
MOST_REFUSED = 10  # files of an archive that are named


@dataclass
class Taken:
    """What was collected of one student.

    Attributes:
        student: the id.
        source: where it lay in the download; "" if nothing could be taken.
        notes: what a person should know.
        problem: why there is nothing that could be graded, in words.
    """

    student: str
    source: str = ""
    notes: list[str] = field(default_factory=list)
    problem: str = ""


@dataclass
class Collection:
    """What became of a download: by student, what belongs to nobody, and how it was
    read."""

    taken: list[Taken]
    strangers: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing needs a person."""
        return not self.strangers and not any(one.problem for one in self.taken)


def collect(
    name: str,
    download: Path,
    root: Path = Path(),
    students: Path | None = None,
    pattern: str = "",
    timezone: str = "UTC",
    table: Path | None = None,
    platform: str = "",
    timestamps: bool = False,
) -> Collection:
    """Put the notebooks of a download where the grader looks for them."""
    zone = _zone(timezone)
    names = FileNameCollectorPlugin(named_regexp=_checked(pattern)) if pattern else None
    courses = CourseDirectory(config=course_settings(root))
    files, strangers = contents(download)
    with Gradebook(courses.db_url, courses.course_id) as gradebook:
        if students is not None:
            enter(gradebook, students)
        roster = class_of(gradebook)
    known_times, faults = times(table, roster, zone) if table is not None else ({}, [])
    strangers += faults
    places = [file.place for file in files]
    about: list[str] = []
    if names:
        read_names = [_by_pattern(names, place) for place in places]
    else:
        read_names, about = labels(
            places, name, roster.knows if roster.students else None, platform
        )
    by_student: dict[str, list[tuple[Label, File]]] = {}
    notes: dict[str, list[str]] = {}
    for told, file in zip(read_names, files, strict=True):
        if told is None:
            strangers.append(
                f"{file.place} is left out: its name says nothing about a student."
            )
            continue
        student, words = roster.find(told)
        if NAME.fullmatch(student) is None:
            strangers.append(f"{file.place} is left out: {words or student}")
            continue
        by_student.setdefault(student, []).append((told, file))
        if words and words not in notes.setdefault(student, []):
            notes[student].append(words)
    taken = []
    for student in sorted(by_student):
        if (
            len(
                people := {
                    told.identity: told.name or told.ids[-1]
                    for told, _ in by_student[student]
                }
            )
            > 1
        ):
            strangers.append(
                f"{student} is meant by several people of the download:"
                f" {', '.join(people.values())}."
            )
            continue
        one = Taken(student, notes=[f"{words}." for words in notes.get(student, [])])
        folder = Path(courses.format_path(courses.submitted_directory, student, name))
        _take(
            one,
            by_student[student],
            name,
            folder,
            zone,
            known_times.get(student),
            timestamps,
        )
        taken.append(one)
    with Reader({"readable": readable}) as reader:
        for one in taken:
            if one.source:
                folder = Path(
                    courses.format_path(courses.submitted_directory, one.student, name)
                )
                one.problem = read(
                    one.student, folder, name, partial(reader.ask, "readable")
                ).problem
    # here, and nowhere before, a stranger's words are made fit to be read
    taken = [
        replace(
            one,
            source=shown(one.source),
            notes=[*map(shown, one.notes)],
            problem=shown(one.problem),
        )
        for one in taken
    ]
    return Collection(
        taken,
        [shown(words) for words in dict.fromkeys(strangers)],
        [*map(shown, about)],
    )


def _zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"There is no time zone {timezone!r}. Name one as Europe/Berlin or UTC."
        ) from error


def _checked(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise ValueError(f"The pattern is no regular expression: {error}.") from error
    if not {"student_id", "file_id"} <= set(groups):
        raise ValueError(
            "The pattern needs the groups (?P<student_id>...) and (?P<file_id>...)."
        )
    return pattern


def _by_pattern(names: FileNameCollectorPlugin, place: PurePosixPath) -> Label | None:
    found = names.collect(place.as_posix())
    if not found:
        return None
    file = PurePosixPath(found["file_id"])
    when = "-".join(re.findall(r"\d+", found.get("timestamp") or ""))
    return Label(
        (found["student_id"],),
        when=when,
        file=file.with_suffix(file.suffix or ".ipynb"),
        identity=found["student_id"],
    )


def _take(
    one: Taken,
    handed_in: list[tuple[Label, File]],
    assignment: str,
    folder: Path,
    zone: ZoneInfo,
    when: datetime | None,
    timestamps: bool,
) -> None:
    """Choose the notebook of one student, write it, and say in words whatever was not
    plain."""
    archives = [each for each in handed_in if each[0].file.suffix.lower() == ".zip"]
    opened = [each for each in handed_in if each[0].file.suffix.lower() != ".zip"]
    opened += [
        inner for each in archives[-MOST_ARCHIVES:] for inner in _opened(one, *each)
    ]
    if len(archives) > MOST_ARCHIVES:
        one.notes.append(
            f"{len(archives) - MOST_ARCHIVES} more archives stay closed; the last"
            f" {MOST_ARCHIVES} count."
        )
    found = [(told, file) for told, file in opened if _is_notebook(told.file)]
    if not found:
        names = (
            ", ".join(sorted(str(told.file) for told, _ in opened))
            or "nothing that can be read"
        )
        one.problem = f"There is no notebook. Handed in: {names}."
        return
    latest = max(told.when for told, _ in found)
    now = [(told, file) for told, file in found if told.when == latest]
    if len(now) < len(found):
        one.notes.append(
            f"{len(found) - len(now)} earlier notebooks are left out; the latest"
            " attempt counts."
        )
    chosen = _chosen(now, assignment)
    if chosen is None:
        names = ", ".join(sorted(str(told.file) for told, _ in now))
        one.problem = (
            f"There are several notebooks and none is called {assignment}.ipynb:"
            f" {names}."
        )
        return
    told, file = chosen
    if len(now) > 1:
        others = sorted(str(other.file) for other, at in now if at is not file)
        one.notes.append(f"{told.file} was taken; left out: {', '.join(others)}.")
    elif told.file.name != f"{assignment}.ipynb":
        one.notes.append(
            f"{told.file.name} should be called {assignment}.ipynb; the only notebook"
            " was taken."
        )
    try:
        data = file.read()
    except CannotUnpack as error:
        one.problem = f"{file.place}: {error}."
        return
    one.source = str(file.place)
    when = when or _time(told, handed_in, zone, one, timestamps)
    _write(one, data, when, folder, assignment)


def _opened(one: Taken, told: Label, file: File) -> list[tuple[Label, File]]:
    """Look into a zip that a student handed in; a zip in it stays closed."""
    try:
        inside, refused = inner_zip(file.read())
    except CannotUnpack as error:
        one.notes.append(f"{told.file} stays closed: {error}.")
        return []
    one.notes += [f"In {told.file}, {words}" for words in refused[:MOST_REFUSED]]
    if len(refused) > MOST_REFUSED:
        one.notes.append(
            f"In {told.file}, {len(refused) - MOST_REFUSED} more are refused."
        )
    one.notes.append(
        f"{told.file} is an archive of the student's own; it was looked into."
    )
    return [
        (replace(told, file=each.place), File(file.place / each.place, each.read))
        for each in inside
    ]


def _is_notebook(file: PurePosixPath) -> bool:
    """Whether a name is a notebook's; browsers append .txt or .json to a name that they
    do not know."""
    return re.search(r"\.ipynb(\.txt|\.json)?$", file.name, re.IGNORECASE) is not None


def _chosen(
    found: list[tuple[Label, File]], assignment: str
) -> tuple[Label, File] | None:
    """The notebook with the right name; of numbered copies, as Canvas and browsers make
    them, the last."""
    numbered = re.compile(
        re.escape(assignment) + r"(?:-(\d+)| ?\((\d+)\))?\.ipynb(\.txt|\.json)?",
        re.IGNORECASE,
    )
    named = [
        (int(match[1] or match[2] or 0), -len(told.file.parts), told, file)
        for told, file in found
        if (match := numbered.fullmatch(told.file.name))
    ]
    if named:
        best = max(each[:2] for each in named)
        return next(
            (told, file)
            for number, depth, told, file in named
            if (number, depth) == best
        )
    return found[0] if len(found) == 1 else None


def _time(
    told: Label,
    handed_in: list[tuple[Label, File]],
    zone: ZoneInfo,
    one: Taken,
    timestamps: bool,
) -> datetime | None:
    """When it was handed in, in UTC, if the download says so: in the name, or in
    nbgrader's file."""
    if told.when:
        try:
            digits = "-".join([*told.when.split("-"), "00", "00", "00"][:6])
            return (
                datetime.strptime(digits, "%Y-%m-%d-%H-%M-%S")
                .replace(tzinfo=zone)
                .astimezone(UTC)
            )
        except ValueError:
            one.notes.append(f"{told.when} is no time; it is left out.")
            return None
    stamps = [
        file
        for other, file in handed_in
        if other.platform == "folders" and other.file.as_posix() == TIMESTAMP
    ]
    if stamps and not timestamps:
        one.notes.append(
            f"{TIMESTAMP} is left out, as the student could have written it: see course"
            " collect --help."
        )
    elif stamps:
        try:
            return parse_utc(stamps[0].read()[:100].decode().strip()).replace(
                tzinfo=UTC
            )
        except (CannotUnpack, UnicodeDecodeError, ValueError, OverflowError):
            one.notes.append(f"{TIMESTAMP} holds no time; it is left out.")
    if told.late:
        one.notes.append(
            f"{told.platform} says that it is late, not how much. Write the time into"
            f" {TIMESTAMP}."
        )
    return None


def _write(
    one: Taken, data: bytes, when: datetime | None, folder: Path, assignment: str
) -> None:
    notebook, stamp = folder / f"{assignment}.ipynb", folder / TIMESTAMP
    before = (
        notebook.read_bytes()
        if notebook.is_file() and not notebook.is_symlink()
        else None
    )
    if before is not None and before != data:
        if when and stamp.is_file() and (old := _old(stamp)) and old > when:
            one.notes.append("What was collected before is later; it stays.")
            return
        one.notes.append("It replaces what was collected before.")
    folder.mkdir(parents=True, exist_ok=True)
    if before != data:
        write_whole(notebook, lambda place: place.write_bytes(data))
        stamp.unlink(missing_ok=True)
    if when:
        write_whole(stamp, f"{when:%Y-%m-%d %H:%M:%S} UTC\n")


def _old(stamp: Path) -> datetime | None:
    try:
        return parse_utc(stamp.read_text(encoding="utf-8").strip()).replace(tzinfo=UTC)
    except (UnicodeDecodeError, ValueError, OverflowError):
        return None
