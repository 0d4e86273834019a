"""Assignments through `course grade`'s two processes: the reference and the named wrong answers get the marks they got.

The wrong and the right answers of ``tests/assignments/mutants`` have marks by nbgrader's rule, with answers and tests
in one process. Here answers are in another process than tests. Each mark must be the same, and what each test says.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_rounds import two_rounds

from course_lib.grading.check_run import as_graded
from course_lib.grading.execute import Transcript, execute, visible_round
from course_lib.grading.given_objects import defined_names
from course_lib.grading.grade import Assignment, load
from course_lib.grading.mutants import change, load_cases, run_cases
from course_lib.grading.plan import steps
from course_lib.grading.sandbox import Limits, NoIsolation, Worker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WHOLE = os.environ.get("COURSE_TEST_GRADING") == "whole"  # as `make test-grading` sets it
ALL = ("attention", "transformer", "wordpiece", "bert", "pretraining", "fine-tuning", "sentence-bert", "capstone")
GRADED = ALL if WHOLE else ("attention",)
#: Of the many wrong and right answers, so many are graded here: all, or every n-th of the first assignment.
EVERY = 1 if WHOLE else 24
#: Numbers in what a test says, which may be drawn: which ones depends on the tests that ran before.
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
#: Answers whose words are others here, though the marks are the same; and why.
OTHER_WORDS = {"experiment_knows_the_words_by_heart": "it gives the test's model a class of its own, which stays there"}
#: Wrong answers that get less here, and never more; and why.
NO_LIBRARY = "it calls the finished library, which is not there in the student's process"
LESS_HERE = {
    "ready_made_trainer": NO_LIBRARY,
    "ready_made_encoder": NO_LIBRARY,
    "library_s_masking": NO_LIBRARY,
}
SEEN = 1300  # characters of its words; of longer ones the grader shows the beginning and the end


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    try:
        with Worker(Limits()) as worker:
            yield worker
    except NoIsolation as error:
        if "CI" in os.environ:
            raise
        pytest.skip(f"no sandbox on this machine: {error}")


@functools.cache
def assignment(name: str) -> Assignment:
    return load(name, ROOT)


def graded(worker: Worker, name: str) -> Transcript:
    return two_rounds(worker, reference(name), assignment(name).files)


def compared(worker: Worker, name: str, changes: dict) -> Transcript:
    """Run every test that could see a change, whole, in a visible round: it keeps words."""
    here = assignment(name)
    plan = steps(here.instructor, here.released, as_graded(change(here.instructor, changes), here.released))
    first = [one["source"] == other["source"] for one, other in zip(plan, reference(name), strict=True)].index(False)
    before, after = plan[:first], plan[first:]
    used = set().union(*(used_names(step["source"]) for step in after if step["kind"] == "test"))
    kept = []
    for step in reversed(before):
        if step["kind"] != "test" or used & set(defined_names(step["source"])):  # its helpers serve later tests
            kept.append(step)
            used |= used_names(step["source"])
    whole = [step | {"visible": step["source"]} if step["kind"] == "test" else step for step in after]
    return execute(worker, visible_round([*reversed(kept), *whole]), here.files)


def used_names(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


@functools.cache
def reference(name: str) -> list[dict]:
    here = assignment(name)
    return steps(here.instructor, here.released, as_graded(here.instructor, here.released))


def words(said: str) -> str:
    """What a test says, without numbers, the name of its kind of error and the mark that a cell ends in."""
    return NUMBER.sub("#", re.sub(r"Out\[\d+\]: .*\n?$", "", said.removeprefix("AssertionError: ")))[:SEEN].strip()


@pytest.mark.parametrize("name", GRADED)
def test_the_reference_gets_full_marks(worker: Worker, name: str) -> None:
    transcript = graded(worker, name)
    points = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in assignment(name).instructor.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert transcript.trouble == ""
    assert {cell: mark["earned"] for cell, mark in transcript.marks.items()} == points
    assert {cell: test["words"] for cell, test in transcript.tests.items() if test["words"]} == {}


@pytest.mark.parametrize("name", GRADED)
def test_wrong_and_right_answers_get_the_marks_and_the_words_of_one_process(worker: Worker, name: str) -> None:
    mutants, right = load_cases(name, ROOT)
    known = run_cases(name, ROOT)
    differ = {}
    for case in [*mutants, *right][::EVERY]:
        transcript, alone = compared(worker, name, dict(case.changes)), known[case.name]
        for cell, mark in alone.grader.items():
            found, wanted = (mark.points, ""), (mark.max_points, "")
            if (said := transcript.tests.get(cell)) is not None:  # else it stands before the first change
                told = said["printed"] if said["earned"] < mark.max_points else ""
                found = said["earned"], words(said["words"] or told)
                wanted = mark.points, words(mark.words)
            if case.name in LESS_HERE and found[0] <= wanted[0]:
                continue
            if found != wanted and not (found[0] == wanted[0] and case.name in OTHER_WORDS):
                differ[case.name, cell] = {"found": found, "wanted": wanted}
        if transcript.trouble:
            differ[case.name, ""] = transcript.trouble
    assert differ == {}
