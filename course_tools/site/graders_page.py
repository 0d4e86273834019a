"""What *Operating the grader* shows: how fast they are, what attacks get from them.

Nothing in it is typed: it is written from what ``benchmarks/grading.py`` and
``benchmarks/red_team.py`` recorded, and ``benchmarks/semester.py`` of a whole term.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lab import records
from course_tools.grading.assignments.mutants_page import plain

THROUGHPUT = "benchmark-grading"
RED_TEAM = "benchmark-red_team"
SEMESTER, FULL = "benchmark-semester", 300  # students of a large class
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
TERM = """\
{students} students handed in {assignments} assignments, {submissions} submissions in
all: {late} late, {again} for a second time. Each is an answer of which is known what it
earns, because our tests are tested with it. {marks} marks in the gradebook, and the
tables for {forms}, were compared with that; {differ}.

| assignment | submissions | marks | points | late, points off | seconds a submission |
| --- | --- | --- | --- | --- | --- |
{rows}

{noticed}
The commands took {minutes:.0f} minutes by the clock, whatever else the machine did
meanwhile; the last column has what grows with the class.{projected}
Recorded by `{command}`, on {date}.

What an instructor typed for *{shown}*, and the last line that each command said:

```text
{log}
```
"""
PROJECTED = (
    " At this pace {full} students in {assignments} assignments would take {hours:.1f}"
    " hours."
)
MENDED = """\
- The hidden test `{question}` of *{assignment}* was wrong and refused everybody. It
  was mended and judged again: {says}
"""
COPIED = """\
- In *{assignment}*, {count} copied, in clusters of {sizes}, and disguised it. The
  report names {named}.
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


UNRECORDED = (
    "Nobody has recorded {what} yet. `python benchmarks/{program}.py --record` does it"
    " on a machine that is otherwise idle.\n"
)


def throughput(folder: Path = records.RESULTS) -> str:
    """Write how many seconds a submission takes, or how to find out."""
    if not (folder / f"{THROUGHPUT}.json").is_file():
        return UNRECORDED.format(what="how fast that is", program="grading")
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
        return UNRECORDED.format(
            what="what attacks get from stock nbgrader", program="red_team"
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


def semester(folder: Path = records.RESULTS) -> str:
    """Write how a whole term went, and the log of one of its assignments."""
    if not (folder / f"{SEMESTER}.json").is_file():
        return UNRECORDED.format(what="a term", program="semester")
    record = records.load(SEMESTER, folder)
    rows: list[Row] = record.results
    students = record.configuration["students"]
    commands = [line for row in rows for line in row["log"]]
    used = sum(line["seconds"] for line in commands)
    grows = sum(_seconds_each(row) * row["submissions"] for row in rows)
    hours = (used + grows * (FULL / students - 1)) / 3600
    more = PROJECTED.format(full=FULL, assignments=len(rows), hours=hours)
    differ = sum(len(row["different"]) for row in rows)
    shown = next((row for row in rows if row["judged_again"]), rows[0])
    log = [
        "\n".join(filter(None, [f"$ {line['command']}", line["says"]]))
        for line in shown["log"]
    ]
    return TERM.format(
        students=students,
        assignments=len(rows),
        submissions=sum(row["submissions"] for row in rows),
        late=sum(row["late"] for row in rows),
        again=sum(row["submissions"] - row["students"] for row in rows),
        marks=f"{sum(row['marks'] for row in rows):,}",
        forms=", ".join(rows[0]["exported"]),
        differ=f"{differ} differ" if differ else "none differs",
        rows="\n".join(map(_of_assignment, rows)),
        noticed="".join(map(_noticed, rows)),
        minutes=used / 60,
        projected=more if students < FULL else "",
        command=record.command,
        date=record.date[:10],
        shown=shown["assignment"],
        log="\n".join(log),
    )


def _seconds_each(row: Row) -> float:
    """What grading takes a submission, without what the command takes that has
    nobody to grade."""
    grading = [
        line for line in row["log"] if line["command"].startswith("course grade")
    ]
    spent = [line["seconds"] for line in grading]
    return float(sum(spent) - len(spent) * min(spent)) / row["submissions"]


def _of_assignment(row: Row) -> str:
    off = f"{row['late']}, {row['penalties']:g}"
    cells = [f"{row['submissions']}", f"{row['marks']}", f"{row['points']:g}", off]
    return f"| {' | '.join([row['assignment'], *cells, f'{_seconds_each(row):.1f}'])} |"


def _noticed(row: Row) -> str:
    said = ""
    for question in row["judged_again"]:
        [line] = [one for one in row["log"] if "--question" in one["command"]]
        said += MENDED.format(question=question, says=line["says"], **row)
    if copied := row.get("copied"):
        named = [sorted(students) for _, *students in row["clusters"]]
        right = "these clusters and nobody else"
        sizes = " and ".join(f"{len(members)}" for members in copied)
        said += COPIED.format(
            assignment=row["assignment"],
            count=sum(map(len, copied)),
            sizes=sizes,
            named=right if sorted(named) == sorted(copied) else f"others: {named}",
        )
    return said
