"""The instructor's page on an assignment's tests: which mistakes they catch, where, and in which words.

Nothing on it is typed: the mistakes come from ``tests/assignments/mutants/<name>.py``, and who caught them from a run.
"""

import re
from pathlib import Path

from course_lib.grading.mutants import Mark, Mutant, Outcome, load_cases, run_cases

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|$#~])")


def mutants_page(name: str, root: Path = Path()) -> str:
    """Write the page on one assignment, from a run of all its known wrong and right answers.

    Args:
        name: the assignment, e.g. ``attention``.
        root: the repository's root.

    Returns:
        The page, in MyST Markdown.

    Raises:
        AssignmentError: a case could not be run; the message names it.

    Chapter: seq2seq-attention
    """
    mutants, right = load_cases(name, root)
    outcomes = run_cases(name, root)
    seen = sum(_caught(outcomes[mutant.name].student, mutant.cell) for mutant in mutants)
    total = sum(_caught(outcomes[mutant.name].grader, mutant.cell) for mutant in mutants)
    parts: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        parts.setdefault(mutant.cell, []).append(mutant)
    lines = [
        f"# What the tests of “{name}” catch",
        "",
        f"{len(mutants)} wrong answers have met these tests, each with one mistake that people make. The tests",
        f"refuse {total} of {len(mutants)}. The visible ones, which students run themselves, refuse {seen}; the others",
        "fall to the tests that only the grader has. This page is written from a run of all of them while the",
        "book is built.",
        "",
        "A mistake in one part can cost points in a later part that builds on it. The last column names the other",
        "cells that fail with it.",
    ]
    for cell, group in parts.items():
        points = outcomes["reference"].grader[cell].max_points
        lines += ["", f"## `{cell}` ({points:g} points)", ""]
        lines += ["| the answer … | caught by | which says | also fails |", "| --- | --- | --- | --- |"]
        lines += [_row(mutant, outcomes[mutant.name]) for mutant in group]
    lines += [
        "",
        "## Right answers written differently",
        "",
        "These must get full marks, or the tests would demand our way of writing.",
        "",
        "| the answer … | points |",
        "| --- | --- |",
    ]
    for answer in right:
        marks = outcomes[answer.name].grader.values()
        earned, most = sum(mark.points for mark in marks), sum(mark.max_points for mark in marks)
        lines.append(f"| {plain(answer.idea)} | {earned:g} of {most:g} |")
    return "\n".join(lines) + "\n"


def _row(mutant: Mutant, outcome: Outcome) -> str:
    visible = _caught(outcome.student, mutant.cell)
    said = (outcome.student if visible else outcome.grader)[mutant.cell].words
    others = [cell for cell in outcome.grader if cell != mutant.cell and _caught(outcome.grader, cell)]
    by = "visible test" if visible else "hidden test"
    cells = [plain(mutant.mistake), by, plain(_first_complaint(said)), ", ".join(f"`{other}`" for other in others)]
    return f"| {' | '.join(cells)} |"


def _caught(marks: dict[str, Mark], cell: str) -> bool:
    return marks[cell].points < marks[cell].max_points


def _first_complaint(words: str) -> str:
    """The message without Python's name for it; of a cell with partial credit, the first line that denies a point."""
    denied = [line for line in words.splitlines() if "not yet" in line]
    return denied[0] if denied else words.removeprefix("AssertionError: ").splitlines()[0]


def plain(text: str) -> str:
    """Write a text so that Markdown takes no sign in it for one of its own."""
    return SPECIAL.sub(r"\\\1", text)
