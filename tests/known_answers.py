"""Which known answers of an assignment the tests run."""

from itertools import cycle
from pathlib import Path

from whole import WHOLE

from course_tools.grading.assignments.mutants import (
    Mutant,
    Outcome,
    RightAnswer,
    load_cases,
    run_cases,
)

ROOT = Path(__file__).resolve().parents[1]
Cases = tuple[list[Mutant], list[RightAnswer]]


def known_answers(name: str) -> Cases:
    """`make test-grading`: all of them; `make test`: those that stand for them."""
    mutants, right = load_cases(name, ROOT)
    return (mutants, right) if WHOLE else representatives(mutants, right)


def representatives(mutants: list[Mutant], right: list[RightAnswer]) -> Cases:
    """Of each test cell one mistake, in turn the first that a visible test catches and
    the first that a hidden one does; and the right answer that writes most cells
    otherwise."""
    of_cells: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        of_cells.setdefault(mutant.cell, []).append(mutant)
    wrong = [
        next((one for one in of_it if one.caught == caught), of_it[0])
        for of_it, caught in zip(
            of_cells.values(), cycle(("visible", "hidden")), strict=False
        )
    ]
    return wrong, [max(right, key=lambda answer: len(answer.changes))]


def run_known(name: str) -> dict[str, Outcome]:
    """The marks of the known answers that the tests run, and of the reference."""
    cases = [case.name for answers in known_answers(name) for case in answers]
    return run_cases(name, ROOT, only=None if WHOLE else cases)
