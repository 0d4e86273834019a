"""The instructor's page on an assignment's tests: which mistakes they catch, where, and
in which words.

Nothing on it is typed: the mistakes come from ``tests/assignments/mutants/<name>.py``,
and who caught them from a run of all of them, which `course mutants` keeps beside that
file. `make test` runs them all and compares.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_lib._files import write_whole
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
This table is out of date: the assignment or its list of wrong answers has changed since all of them were last run.
`course mutants` brings it up to date.
:::
"""  # noqa: E501


def what_caught(
    mutants: list[Mutant], right: list[RightAnswer], outcomes: Mapping[str, Outcome]
) -> dict[str, dict[str, Any]]:
    """Sum up a run of an assignment's wrong and right answers."""
    return {
        "points": {
            cell: mark.max_points for cell, mark in outcomes["reference"].grader.items()
        },
        "wrong": {
            mutant.name: _fate(mutant, outcomes[mutant.name]) for mutant in mutants
        },
        "right": {
            answer.name: sum(
                mark.points for mark in outcomes[answer.name].grader.values()
            )
            for answer in right
        },
    }


def _fate(mutant: Mutant, outcome: Outcome) -> dict[str, Any]:
    seen = _caught(outcome.student, mutant.cell)
    caught = _caught(outcome.grader, mutant.cell)
    said = (outcome.student if seen else outcome.grader)[mutant.cell].words
    return {
        "caught": "visible" if seen else "hidden" if caught else "nobody",
        "says": _first_complaint(said) if caught else "",
        "also_fails": [
            cell
            for cell in outcome.grader
            if cell != mutant.cell and _caught(outcome.grader, cell)
        ],
    }


def record_path(name: str, root: Path = Path()) -> Path:
    """Return where the outcome of an assignment's known answers is kept."""
    return root / "tests" / "assignments" / "mutants" / f"{name}.json"


def record_mutants(name: str, root: Path = Path()) -> Path:
    """Run an assignment's known wrong and right answers, and keep what caught them."""
    found = what_caught(*load_cases(name, root), run_cases(name, root))
    kept = {"made_from": cases_key(name, root), **found}
    write_whole(
        record_path(name, root), json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    )
    return record_path(name, root)


def mutants_page(name: str, root: Path = Path()) -> str:
    """Write the page on one assignment, from the last recorded run of all its known
    wrong and right answers."""
    path = record_path(name, root)
    if not path.is_file():
        raise AssignmentError(f"{path} does not exist; run: course mutants {name}")
    found = json.loads(path.read_text(encoding="utf-8"))
    mutants, right = load_cases(name, root)
    mutants = [mutant for mutant in mutants if mutant.name in found["wrong"]]
    fates = [found["wrong"][mutant.name]["caught"] for mutant in mutants]
    parts: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        parts.setdefault(mutant.cell, []).append(mutant)
    lines = [
        f"# What the tests of “{name}” catch",
        "",
        *([STALE] if found["made_from"] != cases_key(name, root) else []),
        (
            f"{len(mutants)} wrong answers have met these tests, each with one mistake"
            " that people make. The tests"
        ),
        (
            f"refuse {len(mutants) - fates.count('nobody')} of {len(mutants)}. The"
            " visible ones, which students run"
        ),
        (
            f"themselves, refuse {fates.count('visible')}; the others fall to the tests"
            " that only the grader has. This"
        ),
        (
            "page is written from a recorded run of all of them, which every run of"
            " `make test` repeats."
        ),
        "",
        (
            "A mistake in one part can cost points in a later part that builds on it."
            " The last column names the other"
        ),
        "cells that fail with it.",
    ]
    for cell, group in parts.items():
        lines += ["", f"## `{cell}` ({found['points'][cell]:g} points)", ""]
        lines += [
            "| the answer … | caught by | which says | also fails |",
            "| --- | --- | --- | --- |",
        ]
        lines += [_row(mutant, found["wrong"][mutant.name]) for mutant in group]
    lines += [
        "",
        "## Right answers written differently",
        "",
        "These must get full marks, or the tests would demand our way of writing.",
        "",
        "| the answer … | points |",
        "| --- | --- |",
    ]
    most = sum(found["points"].values())
    lines += [
        f"| {plain(answer.idea)} | {found['right'][answer.name]:g} of {most:g} |"
        for answer in right
        if answer.name in found["right"]
    ]
    return "\n".join(lines) + "\n"


def _row(mutant: Mutant, fate: dict[str, Any]) -> str:
    by = {"visible": "visible test", "hidden": "hidden test", "nobody": "nobody"}[
        fate["caught"]
    ]
    others = ", ".join(f"`{other}`" for other in fate["also_fails"])
    return f"| {' | '.join([plain(mutant.mistake), by, plain(fate['says']), others])} |"


def _caught(marks: dict[str, Mark], cell: str) -> bool:
    return marks[cell].points < marks[cell].max_points


def _first_complaint(words: str) -> str:
    """The message without Python's name for it; of a cell with partial credit, the
    first line that denies a point."""
    denied = [line for line in words.splitlines() if "not yet" in line]
    return (
        denied[0] if denied else words.removeprefix("AssertionError: ").splitlines()[0]
    )


def plain(text: str) -> str:
    """Write a text so that Markdown takes no sign in it for one of its own."""
    return SPECIAL.sub(r"\\\1", text)
