"""What names in a download say: whose file, which attempt, when, called how.

Whoever hands in names files and folders too, so only what the platform itself wrote is
read: the names at the top of the download, and in those what stands to the left of the
student's own words. A download is of one platform, the one in whose form most of its
top names are; what has another form there is an odd name and nobody's. What the
platform wrote is a claim all the same: `course_tools.grading.collect.roster` says
whether there is such a student.

- Moodle: ``Full Name_12345_assignsubmission_file_/x.ipynb``, or without the folder.
- Canvas: ``lastfirst_LATE_123_456_x-1.ipynb``, LATE only where it is late, the user's
  number, the submission's.
- Blackboard: ``Title_user_attempt_2026-11-22-10-15-00_x.ipynb``, and a text file about
  the attempt.
- Folders: one for each student, ``ada/x.ipynb`` or ``ada/attention/x.ipynb``, also as
  nbgrader's ``submitted``.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from course_tools.grading.shown import shown

MARK = re.compile(r"_attempt_(?P<when>\d{4}(?:-\d\d){5})", re.ASCII)
#: Each stops at the first mark of the platform's: the same mark in the name of a
#: student's file comes later.
NAMED = r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)"
NUMBERED = r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<user>\d+)_(?P<number>\d+)"
ATTEMPT = rf"(?P<before>.+?){MARK.pattern}"
HOW = re.ASCII | re.DOTALL
FORMS = {
    "Moodle": re.compile(rf"{NAMED}(?:_(?P<file>.*))?", HOW),
    "Canvas": re.compile(rf"{NUMBERED}_(?P<file>.*)", HOW),
    "Blackboard": re.compile(rf"{ATTEMPT}(?:_(?P<file>.*)|\.txt)", HOW),
}
PLATFORMS = (*FORMS, "Folders")
Top = tuple[str, bool]


@dataclass(frozen=True)
class Label:
    """What a place in a download says."""

    ids: tuple[str, ...] = ()  # what may be the student's id, the likeliest first
    name: str = ""  # as far as the platform writes it
    number: str = ""  # the student's number on the platform; "" if it says none
    when: str = ""  # digits that sort by time; "" if it says none
    late: bool = False  # the platform calls it late
    file: PurePosixPath = field(default_factory=PurePosixPath)
    platform: str = "folders"  # which one writes names so
    identity: str = ""  # what differs between two people of one name


def labels(
    places: Sequence[PurePosixPath],
    assignment: str,
    is_student: Callable[[str], bool] | None = None,
    platform: str = "",
) -> tuple[list[Label | None], list[str]]:
    """Read the names of a whole download."""
    parts, notes = [place.parts for place in places], []
    while _is_wrapped(parts, assignment, is_student):
        who = "who handed in is read from the names in it"
        notes.append(f"All lies in the folder {parts[0][0]}; {who}.")
        parts = [part[1:] for part in parts]
    top = {(part[0], len(part) > 1) for part in parts}
    names = {name for name, _ in top}
    platform = platform.capitalize() or _platform(names)
    if platform not in PLATFORMS:
        raise ValueError(
            f"There is no platform {platform}. Choose one of {', '.join(PLATFORMS)}."
        )
    if platform == "Folders":
        return [_in_folder(part, assignment) for part in parts], notes
    found = {one: _match(platform, one) for one in top}
    board = platform == "Blackboard"
    befores = [match["before"] for match in found.values() if match and board]
    users = _users(befores) if board else {}
    texts = {
        name
        for name in names
        if (mark := MARK.search(name)) and name[mark.end() :] == ".txt"
    }
    read: list[Label | None] = []
    for part in parts:
        match = found[part[0], len(part) > 1]
        if match is None or (board and not _is_certain(part[0], names, texts)):
            read.append(None)
            continue
        said = match.groupdict()
        one = Label(
            users[said["before"]] if board else (),
            name=said.get("name", ""),
            number=said["user"] if platform == "Canvas" else "",
            when=said.get("when", ""),
            late=bool(said.get("late")),
            file=PurePosixPath(said["file"] or "about.txt" * board, *part[1:]),
            platform=platform,
            identity=said.get("before") or said.get("user") or said["number"],
        )
        read.append(one)
    return read, notes


def _match(platform: str, top: Top) -> re.Match[str] | None:
    """Match a name at the top; of a folder, only if Moodle made all of it."""
    name, is_folder = top
    match = FORMS[platform].fullmatch(name)
    if match and is_folder and (platform != "Moodle" or match["file"]):
        return None
    return match


def _platform(names: set[str]) -> str:
    """Say in whose form most names are."""
    forms = {key: set(filter(form.fullmatch, names)) for key, form in FORMS.items()}
    most = max(len(those) for those in forms.values())
    if not most or len(names - set().union(*forms.values())) > most:
        return "Folders"
    likely = [platform for platform, those in forms.items() if len(those) == most]
    if len(likely) > 1:
        which = f"Say which: --platform {likely[0].lower()}"
        raise ValueError(f"The download could be of {' or '.join(likely)}. {which}")
    return likely[0]


def _users(names: list[str]) -> dict[str, tuple[str, ...]]:
    """By what stands before the attempt (title, user), what the user may be."""
    pieces = [name.split("_") for name in names]
    shortest = min((len(one) for one in pieces), default=0)
    columns = enumerate(zip(*pieces, strict=False))
    differ = (n for n, each in columns if len(set(each)) > 1)
    starts = range(min(next(differ, shortest), shortest - 1) + 1)
    return {"_".join(one): tuple("_".join(one[n:]) for n in starts) for one in pieces}


def _is_certain(name: str, names: set[str], texts: set[str]) -> bool:
    """Say whether a name of Blackboard's tells its attempt, of two times in it."""
    first, *later = [name[: mark.end()] + ".txt" for mark in MARK.finditer(name)]
    return not later or ((not texts or first in texts) and names.isdisjoint(later))


def _in_folder(parts: tuple[str, ...], assignment: str) -> Label | None:
    if len(parts) > 1:
        rest = parts[2:] if parts[1] == assignment and len(parts) > 2 else parts[1:]
        name, file, platform = parts[0], PurePosixPath(*rest), "folders"
    else:
        file, platform = PurePosixPath(parts[0]), "files"
        name = file.stem.removeprefix(assignment).removesuffix(assignment).strip("_- ")
    if len(parts) == 1 and not name:
        return None
    return Label((name,), name, file=file, platform=platform, identity=name)


def _is_wrapped(
    parts: list[tuple[str, ...]],
    assignment: str,
    is_student: Callable[[str], bool] | None,
) -> bool:
    """Say whether one folder stands around all students', as in most zips."""
    if len({part[0] for part in parts}) != 1 or any(len(part) == 1 for part in parts):
        return False
    name = parts[0][0]
    if _match("Moodle", (name, True)) or (is_student and is_student(name)):
        return False
    inside = {(part[1], len(part) > 2) for part in parts}
    folders = [one for one, is_folder in inside if is_folder]
    students = is_student and any(map(is_student, folders))
    platforms = any(_match(platform, one) for platform in FORMS for one in inside)
    if is_student and (students or platforms):
        return True
    if platforms or all(is_folder and one != assignment for one, is_folder in inside):
        raise ValueError(
            f"All lies in the folder {shown(name)}, which may be one student's or hold"
            " everybody's. List the class, with --students students.csv, or name the"
            " folder that the students' names stand in."
        )
    return False
