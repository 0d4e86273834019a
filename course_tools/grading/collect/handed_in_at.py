"""When work was handed in, from a table of a platform's or your own.

A platform that does not write times into the names of its download has them in a table.
Its rows are found as those of any table of a platform
(:func:`course_tools.grading.reports.export.known`).
"""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from dateutil import parser

from course_tools.grading.collect.roster import Roster
from course_tools.grading.reports.export import KEYS, known, read_table

#: What the column is called: by Moodle, or by you.
COLUMNS = ("last modified (submission)", "time", "timestamp")


def times(
    table: Path, roster: Roster, zone: ZoneInfo
) -> tuple[dict[str, datetime], list[str]]:
    """Read the times of a table."""
    cells = read_table(table)
    head = [cell.strip().casefold() for cell in cells[0]]
    columns = [head.index(name) for name in COLUMNS if name in head]
    keys = [(key, head.index(key)) for key in KEYS if key in head]
    if not columns or not keys:
        needs = f"{table} needs a column {COLUMNS[0]!r} or {COLUMNS[1]!r}"
        raise ValueError(f"{needs}, and one that says whose it is.")
    found: dict[str, datetime] = {}
    notes = []
    for number, row in enumerate(cells[1:], start=2):
        said = row[columns[0]].strip() if len(row) == len(head) else ""
        if said in ("", "-"):
            continue  # nothing was handed in
        student = known(keys, row, roster)
        if student is None:
            notes.append(f"{table.name}, line {number} is no student of the gradebook.")
            continue
        try:
            when = parser.parse(said)
        except (ValueError, OverflowError):
            notes.append(f"{table.name}, line {number}: {said!r} is no time.")
            continue
        when = when if when.tzinfo else when.replace(tzinfo=zone)
        found[student] = when.astimezone(UTC)
    return found, notes
