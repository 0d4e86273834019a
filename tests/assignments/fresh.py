"""Say which fresh wrong answers get full marks: ``python tests/assignments/fresh.py
attention [case ...]``.

``mutants/fresh/<name>.py`` lists mistakes that no test was written for: ``MUTANTS``,
each a :class:`Fresh`, and ``RIGHT_ANSWERS``. They are marked as the catalogue is, and
move there once they are refused. Fails where a right answer loses a point.
"""

import os
import runpy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from course_tools.grading.assignments import mutants_run
from course_tools.grading.assignments.mutants import Changes, RightAnswer

ROOT = Path(__file__).resolve().parents[2]
KINDS = "cut-off, legal input, hard-wired, gradient, numerics, leak, chance, state"


class Fresh(NamedTuple):
    """A wrong answer: the mistake, its class, and the cell that should refuse it."""

    name: str
    mistake: str
    kind: str
    cell: str
    changes: Changes


def fresh(
    kind: str, test: str, cell: str, *rows: tuple[str, str, str, str]
) -> list[Fresh]:
    """Mistakes in one answer cell: name, mistake, text in the reference, text to put
    there."""
    return [
        Fresh(name, mistake, kind, test, {cell: (old, new)})
        for name, mistake, old, new in rows
    ]


def one_by_one(graded: Mapping[str, str]) -> Callable[..., Fresh]:
    """Mistakes one at a time, where `graded` names the test of each answer cell."""

    def wrong(
        name: str, mistake: str, kind: str, cell: str, old: str, new: str, by: str = ""
    ) -> Fresh:
        return Fresh(name, mistake, kind, by or graded[cell], {cell: (old, new)})

    return wrong


def load(name: str) -> tuple[list[Fresh], list[RightAnswer]]:
    """Read the fresh answers to an assignment."""
    sys.modules["fresh"] = sys.modules[__name__]  # they import the class from here
    path = ROOT / "tests" / "assignments" / "mutants" / "fresh" / f"{name}.py"
    told = runpy.run_path(str(path))
    unknown = {mutant.kind for mutant in told["MUTANTS"]} - {*KINDS.split(", ")}
    assert not unknown, f"{unknown}: the classes are {KINDS}"
    return told["MUTANTS"], told["RIGHT_ANSWERS"]


def main(name: str, *only: str) -> int:
    """Mark the answers; print who survives, and every unjust mark."""
    mutants, right = (
        [case for case in cases if not only or case.name in only]
        for cases in load(name)
    )
    mutants_run.load_cases = lambda *_: (mutants, right)  # type: ignore[assignment]
    outcomes = mutants_run._run_all(name, ROOT, 2)
    lost = {
        case: {
            cell: mark["words"]
            for cell, mark in outcome["grader"].items()
            if mark["points"] < mark["max_points"]
        }
        for case, outcome in outcomes.items()
    }
    for case in mutants if only else ():
        print(f"{case.name}: {lost[case.name] or 'full marks'}")
    survivors = [case for case in mutants if not lost[case.name]]
    for case in sorted(survivors, key=lambda case: KINDS.index(case.kind)):
        print(f"{case.kind:12} {case.cell:28} {case.name}: {case.mistake}")
    print(f"{name}: {len(survivors)} of {len(mutants)} wrong answers survive")
    unjust = {case.name: lost[case.name] for case in right if lost[case.name]}
    for case_name, words in unjust.items():
        print(f"right, but loses points: {case_name}: {words}")
    print(f"right answers: {len(right)}, {len(unjust)} of them lose points")
    return bool(unjust)


if __name__ == "__main__":
    # as `run_cases` does: no GPU, and sets in the same order each time
    settings = {"CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "agg", "PYTHONHASHSEED": "0"}
    if any(os.environ.get(key) != value for key, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)
    sys.exit(main(*sys.argv[1:]))
