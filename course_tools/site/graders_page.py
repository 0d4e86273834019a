"""What the instructor's guide shows of graders: how fast they are, and what the red
team's attacks get from `course grade` and from stock nbgrader.

Nothing in it is typed: it is written from what ``benchmarks/grading.py`` and
``benchmarks/red_team.py`` recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lab import records
from course_tools.grading.assignments.mutants_page import plain

THROUGHPUT = "benchmark-grading"
RED_TEAM = "benchmark-red_team"
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


def throughput(folder: Path = records.RESULTS) -> str:
    """Write how many seconds a submission takes, or how to find out."""
    if not (folder / f"{THROUGHPUT}.json").is_file():
        return (
            "Nobody has recorded yet how fast that is."
            " `python benchmarks/grading.py --record` does it on a machine that is"
            " otherwise idle.\n"
        )
    record = records.load(THROUGHPUT, folder)
    (result,) = record.results
    chosen = record.configuration
    rows = [
        ("`course grade`, with its sandbox", result["seconds_each"], ""),
        (
            "the same through Dask",
            result["seconds_each"] * result["dask_ratio"],
            f"{result['dask_ratio']:.2f}",
        ),
        (
            "`nbgrader autograde`, without any",
            result["peer_seconds_each"],
            f"{result['ratio']:.1f} ({result['low']:.1f} to {result['high']:.1f})",
        ),
    ]
    differ = len(result["different"])
    agree = (
        "All three gave the same marks"
        if differ == 0
        else f"Of the marks, {differ} are not the same for all three"
    )
    settings = (
        f"{chosen['submissions']} submissions to *{chosen['assignment']}*,"
        f" {chosen['workers']} at a time"
    )
    return "\n".join(
        [
            "| command | seconds a submission | times as long as the first |",
            "| --- | --- | --- |",
            *(f"| {name} | {seconds:.2f} | {times} |" for name, seconds, times in rows),
            "",
            (
                f"{settings}; medians over {chosen['rounds']} rounds in turn, start of"
                " the command included."
            ),
            (
                f"{agree} ({result['marks']}). Recorded by `{record.command}`, on"
                f" {record.date[:10]}."
            ),
            "",
        ]
    )


def red_team(folder: Path = records.RESULTS) -> str:
    """Write how many attacks did what, and those that stock nbgrader gives too many
    points."""
    if not (folder / f"{RED_TEAM}.json").is_file():
        return (
            "Nobody has recorded yet what attacks get from stock nbgrader."
            " `python benchmarks/red_team.py --record` does it.\n"
        )
    record = records.load(RED_TEAM, folder)
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
        counts = [str(sum(bool(holds(row)) for row in of[name])) for name in graders]
        lines.append(f"| {fault} | {' | '.join(counts)} |")
    for name in graders[1:]:
        lines += ["", f"Too many points from {NAMES[name]}:", ""]
        lines += ["| the attack … | due | given |", "| --- | --- | --- |"]
        for row in filter(FAULTS["gets too many points"], of[name]):
            lines.append(
                f"| {plain(row['tries'].rstrip('.'))} | {row['due']:g} |"
                f" {row['points']:g} |"
            )
    return "\n".join(lines) + "\n"
