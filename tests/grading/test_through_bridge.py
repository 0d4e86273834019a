"""Assignments through `course grade`'s two processes: the reference and the named wrong answers get the marks they got.

The wrong and the right answers of ``tests/assignments/mutants`` have marks by nbgrader's rule, with answers and tests
in one process. Here answers are in another process than tests, and each mark must be the same.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_lib.grading.check_run import as_graded
from course_lib.grading.execute import Transcript, execute
from course_lib.grading.grade import Assignment, load
from course_lib.grading.inside import INSIDE
from course_lib.grading.mutants import change, load_cases, run_cases
from course_lib.grading.plan import steps
from course_lib.grading.sandbox import Limits, NoIsolation, Worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
WHOLE = os.environ.get("COURSE_TEST_GRADING") == "whole"  # as `make test-grading` sets it
ALL = ("attention", "transformer", "wordpiece", "bert", "pretraining", "fine-tuning", "sentence-bert", "capstone")
#: Assignments whose every test crosses the pipe.
CARRIED = tuple(name for name in ALL if name not in INSIDE)
GRADED = ALL if WHOLE else ("attention",)
#: Of the many wrong and right answers, so many are graded here: every n-th. Where modules cross, each takes seconds.
EVERY = dict.fromkeys(("attention", "wordpiece"), 1) if WHOLE else {"attention": 24}
SELDOM = 8


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
    return execute(worker, steps(here.instructor, here.released, submitted, INSIDE.get(name, {})), here.files)


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


@pytest.mark.parametrize("name", [name for name in CARRIED if name in GRADED])
def test_wrong_and_right_answers_get_the_marks_of_one_process(worker: Worker, name: str) -> None:
    mutants, right = load_cases(name, ROOT)
    known = run_cases(name, ROOT)
    differ = {}
    for case in [*mutants, *right][:: EVERY.get(name, SELDOM)]:
        transcript = graded(worker, name, dict(case.changes))
        wanted = {cell: mark.points for cell, mark in known[case.name].grader.items() if cell in transcript.marks}
        got = {cell: mark["earned"] for cell, mark in transcript.marks.items()}
        if got != wanted:
            differ[case.name] = {cell: (got[cell], wanted.get(cell)) for cell in got if got[cell] != wanted.get(cell)}
    assert differ == {}


def test_cells_that_run_beside_the_students_code_are_test_cells_with_a_reason() -> None:
    for name, cells in INSIDE.items():
        assert name not in CARRIED
        tests = {step["name"] for step in steps(*[assignment(name).instructor] * 3) if step["kind"] == "test"}
        assert cells.keys() <= tests
        assert all(reason.endswith(".") for reason in cells.values())
