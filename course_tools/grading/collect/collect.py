"""`course collect`: from a platform's download to the folder ``submitted``.

Each file of the download is taken, or named with the reason why not. Of several
attempts the latest counts. What the notebook is worth, nobody asks here:
:mod:`course_tools.grading.collect.intake` reads it when it is graded.
"""

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

from course_lib.files import write_whole
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.collect.download_names import Label, labels
from course_tools.grading.collect.handed_in_at import times
from course_tools.grading.collect.intake import NAME, read
from course_tools.grading.collect.roster import class_of, enter
from course_tools.grading.collect.unpack import CannotUnpack, File, contents, inner_zip
from course_tools.grading.run.reader import Reader
from course_tools.grading.run.reading import readable
from course_tools.grading.shown import shown

Handed = tuple[Label, File]
TIMESTAMP = "timestamp.txt"
MOST_ARCHIVES = 10  # of one student: each that is looked into is held in memory
MOST_REFUSED = 10  # files of an archive that are named


@dataclass
class Taken:
    """What was collected of one student."""

    student: str  # the id
    source: str = ""  # where it lay in the download; "" if nothing could be taken
    notes: list[str] = field(default_factory=list)  # what a person should know
    problem: str = ""  # why there is nothing that could be graded, in words


@dataclass
class Collection:
    """What became of a download: by student, what is nobody's, how it was read."""

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
        is_student = roster.knows if roster.students else None
        read_names, about = labels(places, name, is_student, platform)
    by_student: dict[str, list[Handed]] = {}
    notes: dict[str, list[str]] = {}
    for told, file in zip(read_names, files, strict=True):
        student, words = "", "its name says nothing about a student."
        if told is not None:
            student, words = roster.find(told)
        if told is None or NAME.fullmatch(student) is None:
            strangers.append(f"{file.place} is left out: {words or student}")
            continue
        by_student.setdefault(student, []).append((told, file))
        if words not in ("", *notes.setdefault(student, [])):
            notes[student].append(words)
    submitted, taken = courses.submitted_directory, []
    with Reader({"readable": readable}) as reader:
        for student, handed_in in sorted(by_student.items()):
            people = {told.identity: told.name or told.ids[-1] for told, _ in handed_in}
            if len(people) > 1:
                strangers.append(
                    f"{student} is meant by several people of the download:"
                    f" {', '.join(people.values())}."
                )
                continue
            one = Taken(student, notes=[f"{words}." for words in notes[student]])
            folder = Path(courses.format_path(submitted, student, name))
            when = known_times.get(student)
            _take(one, handed_in, name, folder, zone, when, timestamps)
            if one.source:
                ask = partial(reader.ask, "readable")
                one.problem = read(student, folder, name, ask).problem
            taken.append(one)
    for one in taken:  # here alone a stranger's words are made fit to be read
        one.source, one.problem = shown(one.source), shown(one.problem)
        one.notes = [*map(shown, one.notes)]
    nobodys = [*map(shown, dict.fromkeys(strangers))]
    return Collection(taken, nobodys, [*map(shown, about)])


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
    file, student = PurePosixPath(found["file_id"]), found["student_id"]
    when = "-".join(re.findall(r"\d+", found.get("timestamp") or ""))
    file = file.with_suffix(file.suffix or ".ipynb")
    return Label((student,), when=when, file=file, identity=student)


def _take(
    one: Taken,
    handed_in: list[Handed],
    assignment: str,
    folder: Path,
    zone: ZoneInfo,
    when: datetime | None,
    timestamps: bool,
) -> None:
    """Choose and write a student's notebook, and say what was not plain."""
    archives: list[Handed] = []
    opened: list[Handed] = []
    for each in handed_in:
        zipped = each[0].file.suffix.lower() == ".zip"
        (archives if zipped else opened).append(each)
    for each in archives[-MOST_ARCHIVES:]:
        opened += _opened(one, *each)
    if (more := len(archives) - MOST_ARCHIVES) > 0:
        one.notes.append(
            f"{more} more archives stay closed; the last {MOST_ARCHIVES} count."
        )
    found = [(told, file) for told, file in opened if _is_notebook(told.file)]
    if not found:
        names = _names(opened) or "nothing that can be read"
        one.problem = f"There is no notebook. Handed in: {names}."
        return
    latest = max(told.when for told, _ in found)
    now = [(told, file) for told, file in found if told.when == latest]
    if earlier := len(found) - len(now):
        one.notes.append(
            f"{earlier} earlier notebooks are left out; the latest attempt counts."
        )
    right = f"{assignment}.ipynb"
    chosen = _chosen(now, assignment)
    if chosen is None:
        several = f"There are several notebooks and none is called {right}"
        one.problem = f"{several}: {_names(now)}."
        return
    told, file = chosen
    if len(now) > 1:
        others = _names([each for each in now if each[1] is not file])
        one.notes.append(f"{told.file} was taken; left out: {others}.")
    elif told.file.name != right:
        wrong = f"{told.file.name} should be called {right}"
        one.notes.append(f"{wrong}; the only notebook was taken.")
    try:
        data = file.read()
    except CannotUnpack as error:
        one.problem = f"{file.place}: {error}."
        return
    one.source = str(file.place)
    when = when or _time(told, handed_in, zone, one, timestamps)
    _write(one, data, when, folder, assignment)


def _names(files: list[Handed]) -> str:
    return ", ".join(sorted(str(told.file) for told, _ in files))


def _opened(one: Taken, told: Label, file: File) -> list[Handed]:
    """Look into a zip that a student handed in; a zip in it stays closed."""
    try:
        inside, refused = inner_zip(file.read())
    except CannotUnpack as error:
        one.notes.append(f"{told.file} stays closed: {error}.")
        return []
    faults = refused[:MOST_REFUSED]
    if more := len(refused) - len(faults):
        faults.append(f"{more} more are refused.")
    one.notes += [f"In {told.file}, {words}" for words in faults]
    looked = "is an archive of the student's own; it was looked into."
    one.notes.append(f"{told.file} {looked}")
    return [
        (replace(told, file=each.place), File(file.place / each.place, each.read))
        for each in inside
    ]


def _is_notebook(file: PurePosixPath) -> bool:
    """Whether a name is a notebook's, .txt or .json of a browser's behind it."""
    return re.search(r"\.ipynb(\.txt|\.json)?$", file.name, re.IGNORECASE) is not None


def _chosen(found: list[Handed], assignment: str) -> Handed | None:
    """The notebook with the right name; of numbered copies the last."""
    form = re.escape(assignment) + r"(?:-(\d+)| ?\((\d+)\))?\.ipynb(\.txt|\.json)?"
    named = [
        ((int(match[1] or match[2] or 0), -len(told.file.parts)), (told, file))
        for told, file in found
        if (match := re.fullmatch(form, told.file.name, re.IGNORECASE))
    ]
    if named:
        return max(named, key=lambda each: each[0])[1]
    return found[0] if len(found) == 1 else None


def _time(
    told: Label, handed_in: list[Handed], zone: ZoneInfo, one: Taken, timestamps: bool
) -> datetime | None:
    """When it was handed in, in UTC: by the name, or by nbgrader's file."""
    if told.when:
        digits = "-".join([*told.when.split("-"), "00", "00", "00"][:6])
        try:
            local = datetime.strptime(digits, "%Y-%m-%d-%H-%M-%S")
            return local.replace(tzinfo=zone).astimezone(UTC)
        except ValueError:
            one.notes.append(f"{told.when} is no time; it is left out.")
            return None
    folders = [each for each in handed_in if each[0].platform == "folders"]
    stamps = [file for other, file in folders if other.file.as_posix() == TIMESTAMP]
    if stamps and not timestamps:
        one.notes.append(
            f"{TIMESTAMP} is left out, as the student could have written it: see course"
            " collect --help."
        )
    elif stamps:
        try:
            return _utc(stamps[0].read()[:100])
        except (CannotUnpack, ValueError, OverflowError):
            one.notes.append(f"{TIMESTAMP} holds no time; it is left out.")
    if told.late:
        late = f"{told.platform} says that it is late, not how much."
        one.notes.append(f"{late} Write the time into {TIMESTAMP}.")
    return None


def _utc(stamp: bytes) -> datetime:
    return parse_utc(stamp.decode().strip()).replace(tzinfo=UTC)


def _write(
    one: Taken, data: bytes, when: datetime | None, folder: Path, assignment: str
) -> None:
    notebook, stamp = folder / f"{assignment}.ipynb", folder / TIMESTAMP
    plain = notebook.is_file() and not notebook.is_symlink()
    before = notebook.read_bytes() if plain else None
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
        return _utc(stamp.read_bytes())
    except (ValueError, OverflowError):
        return None
