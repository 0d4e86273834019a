"""Known answers under a class's own hidden inputs: the verdicts are those of the public
ones.

``python tests/assignments/under_secrets.py NAME [--secrets 1 20] [--right | --hidden]``
names each verdict that another secret changes: of all known answers, of the right ones
alone, or of these and of those that no visible test catches, since hidden inputs decide
on no others.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from course_tools.grading.assignments.comparisons import SECRET
from course_tools.grading.assignments.mutants import Outcome, load_cases, run_cases
from course_tools.grading.assignments.mutants_run import REFERENCE

ROOT = Path(__file__).resolve().parents[2]
Verdicts = dict[tuple[str, str], float]


def course(folder: Path, number: int) -> Path:
    """A course folder with the sources of this one and a secret of its own."""
    own = folder / f"secret-{number}"
    own.mkdir()
    for name in ("solutions", "tests"):
        (own / name).symlink_to(ROOT / name)
    (own / SECRET).write_text(f"{number:032x}\n", encoding="ascii")
    return own


def verdicts(outcomes: Mapping[str, Outcome], only: Collection[str] = ()) -> Verdicts:
    """The points of each known answer, or of some, by case and cell."""
    return {
        (case, cell): mark.points
        for case, outcome in outcomes.items()
        for cell, mark in outcome.grader.items()
        if not only or case in only
    }


def changed(
    name: str,
    numbers: Iterable[int],
    folder: Path,
    outcomes: Mapping[str, Outcome],
    only: Collection[str] = (),
) -> list[str]:
    """Where a secret changes a verdict that was given without one, of all known answers
    or of some."""
    public = verdicts(outcomes, {*only, REFERENCE} if only else ())
    assert public
    found = []
    for number in numbers:
        root = course(folder, number)
        own = verdicts(run_cases(name, root, only=only or None))
        found += [
            f"secret {number}: {case}, {cell}: {public.get((case, cell))} -> {points}"
            for (case, cell), points in own.items()
            if public.get((case, cell)) != points
        ]
        assert own.keys() == public.keys()
    return found


def decided(name: str, hidden: bool) -> list[str]:
    """The right answers, and with ``hidden`` the wrong ones that hidden tests catch."""
    wrong, right = load_cases(name, ROOT)
    caught = [case.name for case in wrong if hidden and case.caught == "hidden"]
    return [case.name for case in right] + caught


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--secrets", type=int, nargs=2, default=(1, 20))
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--right", action="store_true")
    some.add_argument("--hidden", action="store_true")
    asked = parser.parse_args()
    only = []
    if asked.right or asked.hidden:
        only = decided(asked.name, hidden=asked.hidden)
    first, last = asked.secrets
    public = run_cases(asked.name, ROOT, only=only or None)
    with tempfile.TemporaryDirectory() as place:
        numbers = range(first, last + 1)
        found = changed(asked.name, numbers, Path(place), public, only)
    says = f"{asked.name}: {len(found)} differ under secrets {first} to {last}"
    print(*found, says, sep="\n")
