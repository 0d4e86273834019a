"""What the names in a download say: whose file it is, which attempt, when, and how the student called it.

Each platform writes this in its own way. What is read here is what the student's browser and the platform wrote, so it
is a claim: `course_lib.grading.roster` says whether there is such a student.

- Moodle: ``Full Name_12345_assignsubmission_file_/x.ipynb``, or without the folder.
- Canvas: ``lastfirst_LATE_123_456_x-1.ipynb``, LATE only where it is late, the user's number, the submission's.
- Blackboard: ``Title_user_attempt_2026-11-22-10-15-00_x.ipynb``, and a text file about the attempt.
- None: a folder for each student, ``ada/x.ipynb`` or ``ada/attention/x.ipynb``, also as nbgrader's ``submitted``.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import PurePosixPath

MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_(?P<kind>file|onlinetext)(?:_(?P<file>.*))?")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<user>\d+)_(?P<number>\d+)_(?P<file>.+)")
BLACKBOARD = re.compile(r"(?P<before>.+)_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_(?P<file>.+)|\.txt)")


@dataclass(frozen=True)
class Label:
    """What a place in a download says.

    Attributes:
        ids: what may be the student's id, the likeliest first.
        name: the student's name, as far as the platform writes it.
        number: the student's number on the platform; "" if it says none.
        when: the attempt's time, as digits that sort by time; "" if it says none.
        late: the platform calls it late.
        file: the name that the student gave.
        identity: what differs between two people of one name.
        platform: which one writes names so.
    """

    ids: tuple[str, ...] = ()
    name: str = ""
    number: str = ""
    when: str = ""
    late: bool = False
    file: PurePosixPath = field(default_factory=PurePosixPath)
    platform: str = "folders"
    identity: str = ""


def label(place: PurePosixPath, assignment: str, wrappers: int = 0) -> Label | None:
    """Read the name of one file.

    Args:
        place: where it lies in the download.
        assignment: its name; a folder of that name stands inside the student's.
        wrappers: folders around all students' (:func:`wrappers`).

    Returns:
        What it says; None if it says nothing about a student.

    >>> label(PurePosixPath("Zoë Bö_77_assignsubmission_file_/a.ipynb"), "attention").name
    'Zoë Bö'
    >>> label(PurePosixPath("boezoe_LATE_91_8_attention-2.ipynb"), "attention").number
    '91'
    >>> label(PurePosixPath("A1_ada_attempt_2026-11-22-10-15-00_x.ipynb"), "attention").ids
    ('A1_ada', 'ada')
    >>> label(PurePosixPath("ada/attention/x.ipynb"), "attention").ids
    ('ada',)
    """
    for index, part in enumerate(place.parts):
        if found := MOODLE.fullmatch(part):
            rest = PurePosixPath(found["file"] or "", *place.parts[index + 1 :])
            return Label(name=found["name"], file=rest, platform="Moodle", identity=found["number"])
    if found := CANVAS.fullmatch(place.name):
        return Label(
            name=found["name"], number=found["user"], late=bool(found["late"]), file=PurePosixPath(found["file"]),
            platform="Canvas", identity=found["user"],
        )  # fmt: skip
    if found := BLACKBOARD.fullmatch(place.name):
        pieces = found["before"].split("_")
        ids = tuple("_".join(pieces[start:]) for start in range(len(pieces)))
        return Label(
            ids, when=found["when"], file=PurePosixPath(found["file"] or "about.txt"), platform="Blackboard",
            identity=found["before"],
        )  # fmt: skip
    folders = place.parts[:-1]
    if assignment in folders[1:]:
        index = folders.index(assignment, 1)
        return _folder(folders[index - 1], PurePosixPath(*place.parts[index + 1 :]))
    folders = folders[wrappers:]
    if folders:
        return _folder(folders[0], PurePosixPath(*place.parts[wrappers + 1 :]))
    stem = place.stem.removeprefix(assignment).removesuffix(assignment).strip("_- ")
    return Label((stem,), stem, file=PurePosixPath(place.name), platform="files", identity=stem) if stem else None


def _folder(name: str, file: PurePosixPath) -> Label:
    return Label((name,), name, file=file, identity=name)


def wrappers(places: Collection[PurePosixPath], known: Collection[str]) -> int:
    """Count the folders that stand around all students', as zips and nbgrader's ``submitted`` have one.

    Args:
        places: all files.
        known: what may be a student's folder.

    >>> wrappers([PurePosixPath("term/ada/x.ipynb"), PurePosixPath("term/bo/x.ipynb")], [])
    1
    """
    depth = 0
    while True:
        here = {place.parts[depth] for place in places if len(place.parts) > depth + 1}
        inside = {place.parts[depth + 1] for place in places if len(place.parts) > depth + 2}
        deep = places and all(len(place.parts) > depth + 2 for place in places)
        if not deep or len(here) != 1 or here & set(known) or not (len(inside) > 1 or inside & set(known)):
            return depth
        depth += 1
