"""What *Operating the grader* shows: how fast they are, what attacks get from them.

Nothing in it is typed: it is written from what ``benchmarks/grading.py`` and
``benchmarks/red_team.py`` recorded.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lab import records
from course_tools.grading.assignments.mutants_page import plain

THROUGHPUT = "benchmark-grading"
RED_TEAM = "benchmark-red_team"
Row = dict[str, Any]
SPEEDS = """\
| command | seconds a submission | times as long as the first |
| --- | --- | --- |
| `course grade`, with its sandbox | {seconds_each:.2f} |  |
| the same through Dask | {dask_seconds:.2f} | {dask_ratio:.2f} |
| `nbgrader autograde`, without any | {peer_seconds_each:.2f} | {ratio:.1f} ({low:.1f} \
to {high:.1f}) |

{submissions} submissions to *{assignment}*, {workers} at a time; medians over \
{rounds} rounds in turn, start of the command included.
{agree} ({marks}). Recorded by `{command}`, on {date}.
"""
MET = """\
{note}

{count} hostile or broken submissions of the red team (`tests/tools/grading/attacks/`)
have met each grader, beside honest ones. `course grade` grades all of them as one
class. Stock nbgrader runs hostile code beside the gradebook, so it met each attack in a
cage: without a network, with limits on memory, processes and disk, and {seconds:g}
seconds for the attacker and one honest student.
"""
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
    agree = "All three gave the same marks"
    if differ := len(result["different"]):
        agree = f"Of the marks, {differ} are not the same for all three"
    return SPEEDS.format(
        **record.configuration,
        **result,
        dask_seconds=result["seconds_each"] * result["dask_ratio"],
        agree=agree,
        command=record.command,
        date=record.date[:10],
    )


def red_team(folder: Path = records.RESULTS) -> str:
    """Write how many attacks did what, and those that fool stock nbgrader."""
    if not (folder / f"{RED_TEAM}.json").is_file():
        return (
            "Nobody has recorded yet what attacks get from stock nbgrader."
            " `python benchmarks/red_team.py --record` does it.\n"
        )
    record = records.load(RED_TEAM, folder)
    of: dict[str, list[Row]] = {}
    for row in record.results:
        of.setdefault(row["grader"], []).append(row)
    graders, count = list(of), len(of[OURS])
    note = records.recorded_note(record, "The next two tables were")
    seconds = record.configuration["seconds"]
    lines = [
        MET.format(note=note, count=count, seconds=seconds),
        f"| of {count} attacks, one … | {' | '.join(NAMES[one] for one in graders)} |",
        f"| --- |{' --- |' * len(graders)}",
    ]
    for fault, holds in FAULTS.items():
        counts = [str(sum(bool(holds(row)) for row in of[name])) for name in graders]
        lines.append(f"| {fault} | {' | '.join(counts)} |")
    for name in graders[1:]:
        lines += ["", f"Too many points from {NAMES[name]}:", ""]
        lines += ["| the attack … | due | given |", "| --- | --- | --- |"]
        for row in filter(FAULTS["gets too many points"], of[name]):
            tries = plain(row["tries"].rstrip("."))
            lines.append(f"| {tries} | {row['due']:g} | {row['points']:g} |")
    return "\n".join(lines) + "\n"
