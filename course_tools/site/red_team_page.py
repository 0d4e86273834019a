"""The part of the instructor's guide that shows the red team's attacks on `course
grade` and on stock nbgrader.

Nothing in it is typed: it is written from what ``benchmarks/red_team.py`` recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lab import records
from course_tools.grading.assignments.mutants_page import plain

RECORD = "benchmark-red_team"
COMMAND = "python benchmarks/red_team.py --record"
Row = dict[str, Any]
OURS = "course grade"
#: What can go wrong with an attack, and when it does.
FAULTS: dict[str, Callable[[Row], object]] = {
    "gets too many points": lambda row: row["too_many"],
    "gets too few points": lambda row: row["too_few"],
    "reads words of hidden tests in the feedback": lambda row: row["leaks"],
    "stops the class, kills the grader or outlasts it": (
        lambda row: row["state"] != "done"
    ),
    "changes or takes the mark of an honest student": lambda row: row["others"],
    "leaves a process": lambda row: row["processes"],
    "leaves a file outside its own folders": lambda row: row["files"],
}
NAMES = {
    OURS: "`course grade`",
    "nbgrader, stock": "stock nbgrader",
    "nbgrader, course": "nbgrader with this course's settings",
}


def red_team(folder: Path = records.RESULTS) -> str:
    """Write how many attacks did what, and those that stock nbgrader gives too many
    points."""
    if not (folder / f"{RECORD}.json").is_file():
        return (
            f"Nobody has recorded yet what attacks get from stock nbgrader. `{COMMAND}`"
            " does it.\n"
        )
    record = records.load(RECORD, folder)
    graders = list(dict.fromkeys(row["grader"] for row in record.results))
    of = {
        name: [row for row in record.results if row["grader"] == name]
        for name in graders
    }
    lines = [
        records.recorded_note(record, "The next two tables were"),
        "",
        (
            f"{len(of[OURS])} hostile or broken submissions of the red team"
            " (`tests/tools/grading/attacks/`) have met each"
        ),
        (
            "grader, beside honest ones. `course grade` grades all of them as one"
            " class. Stock nbgrader runs hostile code"
        ),
        (
            "beside the gradebook, so it met each attack in a cage: without a network,"
            " with limits on memory, processes"
        ),
        (
            f"and disk, and {record.configuration['seconds']:g} seconds for the"
            " attacker and one honest student."
        ),
        "",
        (
            f"| of {len(of[OURS])} attacks, one … |"
            f" {' | '.join(NAMES[name] for name in graders)} |"
        ),
        f"| --- |{' --- |' * len(graders)}",
    ]
    for fault, holds in FAULTS.items():
        lines.append(
            f"| {fault} |"
            f" {' | '.join(str(sum(bool(holds(row)) for row in of[name])) for name in graders)} |"  # noqa: E501
        )
    for name in graders[1:]:
        lines += ["", f"Too many points from {NAMES[name]}:", ""]
        lines += ["| the attack … | due | given |", "| --- | --- | --- |"]
        for row in filter(FAULTS["gets too many points"], of[name]):
            lines.append(
                f"| {plain(row['tries'].rstrip('.'))} | {row['due']:g} |"
                f" {row['points']:g} |"
            )
    return "\n".join(lines) + "\n"
