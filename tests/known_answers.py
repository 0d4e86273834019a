"""Which known answers of an assignment the tests run."""

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
    """Of each test cell the first mistake that a visible test catches, and the first
    that a hidden one does; of right answers those that write a cell otherwise that none
    before them did."""
    wrong = {(mutant.cell, mutant.caught): mutant for mutant in reversed(mutants)}
    written, chosen = set[str](), list[RightAnswer]()
    for answer in right:
        if not written >= answer.changes.keys():
            chosen.append(answer)
        written |= answer.changes.keys()
    return [mutant for mutant in mutants if mutant in wrong.values()], chosen


def run_known(name: str) -> dict[str, Outcome]:
    """The marks of the known answers that the tests run, and of the reference."""
    cases = [case.name for answers in known_answers(name) for case in answers]
    return run_cases(name, ROOT, only=None if WHOLE else cases)
