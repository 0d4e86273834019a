"""What the instructor's guide says of how fast `course grade` is: the record of
``benchmarks/grading.py``, in words."""

from __future__ import annotations

from pathlib import Path

from course_lab import records

RECORD = "benchmark-grading"
COMMAND = "python benchmarks/grading.py --record"


def throughput(folder: Path = records.RESULTS) -> str:
    """Write the record as Markdown."""
    if not (folder / f"{RECORD}.json").is_file():
        return (
            f"Nobody has recorded yet how fast that is. `{COMMAND}` does it on a"
            " machine that is otherwise idle.\n"
        )
    record = records.load(RECORD, folder)
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
