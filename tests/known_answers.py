"""Which known answers of an assignment the tests run."""

from itertools import cycle
from pathlib import Path

from whole import EVERY, WHOLE

from course_tools.grading.assignments.mutants import (
    Mutant,
    Outcome,
    RightAnswer,
    load_cases,
    run_cases,
)

ROOT = Path(__file__).resolve().parents[1]
Cases = tuple[list[Mutant], list[RightAnswer]]
#: Mistakes of an assignment that `make test-grading` makes, and a few more.
WRONG = 40


def known_answers(name: str) -> Cases:
    """Those that `make test` or `make test-grading` runs. What became of all of them
    `course mutants` has recorded; what it ran on is named in the record, which is
    outdated when a test or an answer changes."""
    mutants, right = load_cases(name, ROOT)
    if EVERY:
        return mutants, right
    few = representatives(mutants, right)
    return probes(mutants, right, few) if WHOLE else few


def probes(mutants: list[Mutant], right: list[RightAnswer], few: Cases) -> Cases:
    """A share of a recorded run that shows whether it still holds: some forty mistakes,
    evenly chosen, every second right answer, and those of `make test`."""
    wrong, [answer] = few
    each = max(1, len(mutants) // WRONG)
    told = {case.name for case in [*wrong, answer, *mutants[::each], *right[::2]]}
    return (
        [case for case in mutants if case.name in told],
        [case for case in right if case.name in told],
    )


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
    return run_cases(name, ROOT, only=None if EVERY else cases)
