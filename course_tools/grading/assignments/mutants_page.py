"""The instructor's page on which mistakes an assignment's tests catch.

Nothing on it is typed: the mistakes come from ``tests/assignments/mutants/<name>.py``,
and who caught them from a run of all of them, which `course mutants` keeps beside that
file. `make test` repeats some of each kind, `make test-grading` more, the workflow all,
and they compare.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_lib.files import write_whole
from course_tools.grading.assignments.mutants import (
    Mark,
    Mutant,
    Outcome,
    RightAnswer,
    cases_key,
    load_cases,
    run_cases,
)
from course_tools.grading.assignments.source import AssignmentError

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|$#~])")
STALE = """\
:::{warning}
This table is out of date: the assignment or its list of wrong answers has changed since
all of them were last run. `course mutants` brings it up to date.
:::
"""
PAGE = """\
# What the tests of “{name}” catch

{stale}{count} wrong answers have met these tests, each with one mistake that people
make. The tests refuse {refused} of {count}. The visible ones, which students run
themselves, refuse {visible}; the others fall to the tests that only the grader has.
This page is written from a recorded run of all of them. `make test-grading` repeats a
part of it, and `COURSE_TESTS=every make test` all.

A mistake in one part can cost points in a later part that builds on it. The last column
names the other cells that fail with it.
{parts}
## Right answers written differently

These must get full marks, or the tests would demand our way of writing.

| the answer … | points |
| --- | --- |
{right}
"""
PART = """
## `{cell}` ({points:g} points)

| the answer … | caught by | which says | also fails |
| --- | --- | --- | --- |
{rows}
"""
BY = {"visible": "visible test", "hidden": "hidden test", "nobody": "nobody"}


def what_caught(
    mutants: list[Mutant], right: list[RightAnswer], outcomes: Mapping[str, Outcome]
) -> dict[str, dict[str, Any]]:
    """Sum up a run of an assignment's wrong and right answers."""
    reference = outcomes["reference"].grader
    full = {answer.name: outcomes[answer.name].grader.values() for answer in right}
    return {
        "points": {cell: mark.max_points for cell, mark in reference.items()},
        "wrong": {one.name: _fate(one, outcomes[one.name]) for one in mutants},
        "right": {name: sum(mark.points for mark in of) for name, of in full.items()},
    }


def _fate(mutant: Mutant, outcome: Outcome) -> dict[str, Any]:
    seen = _caught(outcome.student, mutant.cell)
    caught = _caught(outcome.grader, mutant.cell)
    said = (outcome.student if seen else outcome.grader)[mutant.cell].words
    failing = [cell for cell in outcome.grader if _caught(outcome.grader, cell)]
    return {
        "caught": "visible" if seen else "hidden" if caught else "nobody",
        "says": _first_complaint(said) if caught else "",
        "also_fails": [cell for cell in failing if cell != mutant.cell],
    }


def record_path(name: str, root: Path = Path()) -> Path:
    """Return where the outcome of an assignment's known answers is kept."""
    return root / "tests" / "assignments" / "mutants" / f"{name}.json"


def record_mutants(name: str, root: Path = Path()) -> Path:
    """Run an assignment's known wrong and right answers, and keep what caught them."""
    found = what_caught(*load_cases(name, root), run_cases(name, root))
    kept = {"made_from": cases_key(name, root), **found}
    path = record_path(name, root)
    write_whole(path, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    return path


def mutants_page(name: str, root: Path = Path()) -> str:
    """Write the page on one assignment, from the last recorded run."""
    path = record_path(name, root)
    if not path.is_file():
        raise AssignmentError(f"{path} does not exist; run: course mutants {name}")
    found = json.loads(path.read_text(encoding="utf-8"))
    mutants, right = load_cases(name, root)
    mutants = [mutant for mutant in mutants if mutant.name in found["wrong"]]
    fates = [found["wrong"][mutant.name]["caught"] for mutant in mutants]
    parts: dict[str, list[str]] = {}
    for mutant in mutants:
        parts.setdefault(mutant.cell, []).append(
            _row(mutant, found["wrong"][mutant.name])
        )
    most, points = sum(found["points"].values()), found["right"]
    return PAGE.format(
        name=name,
        stale=f"{STALE}\n" if found["made_from"] != cases_key(name, root) else "",
        count=len(mutants),
        refused=len(mutants) - fates.count("nobody"),
        visible=fates.count("visible"),
        parts="".join(
            PART.format(cell=cell, points=found["points"][cell], rows="\n".join(rows))
            for cell, rows in parts.items()
        ),
        right="\n".join(
            f"| {plain(answer.idea)} | {points[answer.name]:g} of {most:g} |"
            for answer in right
            if answer.name in points
        ),
    )


def _row(mutant: Mutant, fate: dict[str, Any]) -> str:
    others = ", ".join(f"`{other}`" for other in fate["also_fails"])
    cells = [plain(mutant.mistake), BY[fate["caught"]], plain(fate["says"]), others]
    return f"| {' | '.join(cells)} |"


def _caught(marks: dict[str, Mark], cell: str) -> bool:
    return marks[cell].points < marks[cell].max_points


def _first_complaint(words: str) -> str:
    """The message without Python's name, or the first line that denies a point."""
    denied = [line for line in words.splitlines() if "not yet" in line]
    return [*denied, *words.removeprefix("AssertionError: ").splitlines()][0]


def plain(text: str) -> str:
    """Write a text so that Markdown takes no sign in it for one of its own."""
    return SPECIAL.sub(r"\\\1", text)
