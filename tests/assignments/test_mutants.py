"""The graders graded: every known mistake is refused by the cell that it is about, in
words, and right answers are not.

The cases run once for all tests of this file, in processes of their own
(``course_tools.grading.assignments.mutants``): those of ``known_answers``.
"""

import json
from collections.abc import Callable
from pathlib import Path

import fresh
import pytest
import under_secrets
from cases import for_each
from known_answers import known_answers, representatives, run_known
from whole import EVERY, WHOLE, whole_only

from course_tools.grading.assignments.mutants import (
    Mark,
    Outcome,
    cases_key,
    change,
    load_cases,
)
from course_tools.grading.assignments.mutants_page import record_path, what_caught
from course_tools.grading.assignments.release import assignments
from course_tools.grading.assignments.source import AssignmentError, read_source

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENTS = assignments(ROOT)
#: `make test` grades those that other tests of it grade, too.
GRADED = ASSIGNMENTS if WHOLE else ["attention", "transformer"]
CASES = {name: known_answers(name) for name in GRADED}
MUTANTS = [
    pytest.param(name, mutant, id=f"{name}-{mutant.name}")
    for name in GRADED
    for mutant in CASES[name][0]
]
RIGHT = [
    pytest.param(name, answer, id=f"{name}-{answer.name}")
    for name in GRADED
    for answer in CASES[name][1]
]

pytestmark = pytest.mark.slow


Outcomes = Callable[[str], dict[str, Outcome]]


@pytest.fixture(scope="module")
def outcomes():
    """By assignment, the marks of its cases; those of an assignment whose tests are
    left out are not run."""
    found: dict[str, dict[str, Outcome] | AssignmentError] = {}

    def of(name: str) -> dict[str, Outcome]:
        if name not in found:
            try:
                found[name] = run_known(name)
            # Kept: the next test fails at once, and does not run them all again.
            except AssignmentError as error:
                found[name] = error
        outcome = found[name]
        if isinstance(outcome, AssignmentError):
            raise outcome
        return outcome

    return of


def failed(marks: dict[str, Mark]) -> set[str]:
    return {cell for cell, mark in marks.items() if mark.points < mark.max_points}


@pytest.mark.parametrize(("name", "mutant"), MUTANTS)
def test_this_mistake_is_refused_by_its_own_cell_alone_and_explained_if_it_can_be_seen(
    outcomes, name, mutant
):
    """The student reads the words where a visible test sees it; else the grader."""
    outcome = outcomes(name)[mutant.name]
    assert failed(outcome.grader) == {mutant.cell, *mutant.also_fails}
    assert (mutant.cell in failed(outcome.student)) == (mutant.caught == "visible")
    said = outcome.student if mutant.caught == "visible" else outcome.grader
    assert mutant.words in said[mutant.cell].words


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_this_right_answer_written_differently_gets_full_marks(outcomes, name, answer):
    outcome = outcomes(name)[answer.name]
    complaints = {
        cell: mark.words
        for marks in (outcome.student, outcome.grader)
        for cell, mark in marks.items()
    }
    assert failed(outcome.grader) | failed(outcome.student) == set(), complaints


@for_each("name", GRADED)
def test_the_reference_gets_full_marks(outcomes, name):
    reference = outcomes(name)["reference"]
    assert reference.grader
    assert failed(reference.grader) | failed(reference.student) == set()


@whole_only
@for_each("secret", range(3))
def test_a_class_with_hidden_inputs_of_its_own_gives_the_same_verdicts(
    outcomes, tmp_path, secret
):
    """Under each of three secrets a third of what no visible test catches, and of the
    right answers: hidden inputs decide on no others. Secret 0 drew sentences that tied.
    `under_secrets.py` tries them under twenty."""
    public = outcomes("attention")
    told = [name for name in under_secrets.decided("attention", True) if name in public]
    third = told[secret::3]
    assert under_secrets.changed("attention", [secret], tmp_path, public, third) == []


@whole_only
@pytest.mark.parametrize("name", ["transformer", "fine-tuning", "sentence-bert"])
def test_right_answers_get_full_marks_whatever_a_class_s_hidden_inputs_are(
    outcomes, tmp_path, name
):
    """Inputs that leave a comparison nothing but rounding come up in some classes: in
    each of these three a secret once took points of right answers."""
    told = [case.name for case in CASES[name][1]][:1]
    assert under_secrets.changed(name, [4], tmp_path, outcomes(name), told) == []


@whole_only
@for_each("name", ASSIGNMENTS)
def test_every_fresh_answer_fits_the_model_answers(name):
    """Else `fresh.py` marks none of them."""
    notebook = read_source(ROOT / "solutions" / name / f"{name}.py")
    mutants, right = fresh.load(name)
    assert all(change(notebook, case.changes) for case in (*mutants, *right))


@for_each("name", GRADED)
def test_every_graded_cell_refuses_at_least_one_mistake(outcomes, name):
    aimed_at = {mutant.cell for mutant in CASES[name][0]}
    assert aimed_at == set(outcomes(name)["reference"].grader)


@for_each("name", ASSIGNMENTS)
def test_hidden_tests_are_never_the_only_ones_of_a_cell_that_find_anything(name):
    """A student can find out about a cell before handing in: some mistake in each cell
    is caught by a visible test."""
    mutants, _ = load_cases(name, ROOT)
    assert {mutant.cell for mutant in mutants if mutant.caught == "visible"} == {
        mutant.cell for mutant in mutants
    }


@for_each("name", ASSIGNMENTS)
def test_representatives_are_for_every_test_cell_and_for_both_kinds_of_tests(name):
    mutants, right = load_cases(name, ROOT)
    wrong, [answer] = representatives(mutants, right)
    assert {one.cell for one in wrong} == {one.cell for one in mutants}
    assert {one.caught for one in wrong} == {"visible", "hidden"}
    assert answer in right


@for_each("name", ASSIGNMENTS)
def test_what_the_instructors_page_tells_is_of_the_assignment_as_it_is(name):
    told = json.loads(record_path(name, ROOT).read_text(encoding="utf-8"))
    assert told["made_from"] == cases_key(name, ROOT), f"run: course mutants {name}"


@for_each("name", GRADED)
def test_what_the_instructors_page_tells_is_what_happened_in_this_run(outcomes, name):
    """But for the tests' words, in which another machine may have other digits. `course
    mutants` records anew."""
    told = json.loads(record_path(name, ROOT).read_text(encoding="utf-8"))
    del told["made_from"]
    happened = what_caught(*CASES[name], outcomes(name))
    for kept in (told, happened):
        for fate in kept["wrong"].values():
            del fate["says"]
    if not EVERY:
        for kind in ("wrong", "right"):
            told[kind] = {case: told[kind][case] for case in happened[kind]}
    assert told == happened, f"run: course mutants {name}"
