"""Assignments through `course grade`'s two processes: the reference and the named wrong answers get the marks they got.

The wrong and the right answers of ``tests/assignments/mutants`` have marks by nbgrader's rule, with answers and tests
in one process. Here answers are in another process than tests. Each mark must be the same, and what each test says.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_lib.grading.check_run import as_graded
from course_lib.grading.execute import Transcript, execute
from course_lib.grading.grade import Assignment, load
from course_lib.grading.mutants import change, load_cases, run_cases
from course_lib.grading.plan import steps
from course_lib.grading.sandbox import Limits, NoIsolation, Worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
WHOLE = os.environ.get("COURSE_TEST_GRADING") == "whole"  # as `make test-grading` sets it
ALL = ("attention", "transformer", "wordpiece", "bert", "pretraining", "fine-tuning", "sentence-bert", "capstone")
GRADED = ALL if WHOLE else ("attention",)
#: Of the many wrong and right answers, so many are graded here: all, or every n-th of the first assignment.
EVERY = 1 if WHOLE else 24
#: Numbers in what a test says, which may be drawn: which ones depends on the tests that ran before.
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
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


def graded(worker: Worker, name: str, changes: dict) -> Transcript:
    here = assignment(name)
    submitted = as_graded(change(here.instructor, changes), here.released)
    plan = steps(here.instructor, here.released, submitted)
    same = [one["source"] == other["source"] for one, other in zip(plan, reference(name), strict=True)]
    first = same.index(False) if changes else 0  # tests before the first change see nothing of it
    return execute(worker, [step for i, step in enumerate(plan) if i >= first or step["kind"] != "test"], here.files)


@functools.cache
def reference(name: str) -> list[dict]:
    here = assignment(name)
    return steps(here.instructor, here.released, as_graded(here.instructor, here.released))


def words(said: str) -> str:
    """What a test says, without numbers and without the name that an error of its own kind has in one process."""
    return NUMBER.sub("#", said.removeprefix("AssertionError: "))[:SEEN]


@pytest.mark.parametrize("name", GRADED)
def test_the_reference_gets_full_marks(worker: Worker, name: str) -> None:
    transcript = graded(worker, name, {})
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
        transcript, alone = graded(worker, name, dict(case.changes)), known[case.name]
        for cell, mark in alone.grader.items():
            if cell not in transcript.marks:  # it stands before the first change
                found: tuple = (mark.points, "")
                wanted: tuple = (mark.max_points, "")
            else:
                found = transcript.marks[cell]["earned"], words(transcript.tests[cell]["words"])
                wanted = mark.points, words(alone.student[cell].words)
            if found != wanted:
                differ[case.name, cell] = {"found": found, "wanted": wanted}
        if transcript.trouble:
            differ[case.name, ""] = transcript.trouble
    assert differ == {}
