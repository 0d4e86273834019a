"""Assignments through the grader's two processes: the reference and the named wrong
answers get the marks they got."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mutants_across
import pytest
from known_answers import known_answers, representatives, run_known
from two_rounds import two_rounds
from walled import need_a_sandbox
from whole import WHOLE

from course_tools.grading.assignments.mutants import Changes, Mark, load_across
from course_tools.grading.assignments.mutants_run import REFERENCE
from course_tools.grading.assignments.release import assignments
from course_tools.grading.run.assignment import Assignment, load
from course_tools.grading.run.execute import Transcript
from course_tools.grading.sandbox.sandbox import Limits, Worker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
GRADED = assignments(ROOT) if WHOLE else ("attention",)
WALLED = [name for name in GRADED if name == GRADED[0] or load_across(name, ROOT)]
#: Numbers in what a test says, which may be drawn, or differ in a digit on another
#: machine.
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
# characters of its words; of longer ones the grader shows the beginning and the end
SEEN = 1300


@pytest.fixture(scope="module")
def worker():
    need_a_sandbox()
    with Worker(Limits()) as worker:
        yield worker


@functools.cache
def assignment(name: str) -> Assignment:
    return load(name, ROOT)


def graded(worker: Worker, name: str, changes: Changes) -> Transcript:
    return two_rounds(
        worker, mutants_across.plan(assignment(name), changes), assignment(name).files
    )


def words(said: str) -> str:
    """What a test says, without numbers, the name of its kind of error and the mark
    that a cell ends in."""
    return NUMBER.sub(
        "#", re.sub(r"Out\[\d+\]: .*\n?$", "", said.removeprefix("AssertionError: "))
    )[:SEEN].strip()


def agree(found: Mark, wanted: Mark, across: str | None) -> bool:
    """Whether a mark across the bridge is that of one process, or, with the words
    stated for there, no higher."""
    if across is not None:
        return found.points <= wanted.points and across in found.words
    return (found.points, words(found.words)) == (wanted.points, words(wanted.words))


@pytest.mark.parametrize("name", GRADED)
def test_the_reference_gets_full_marks(worker, name):
    transcript = graded(worker, name, {})
    points = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in assignment(name).instructor.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert transcript.trouble == ""
    assert {cell: mark["earned"] for cell, mark in transcript.marks.items()} == points
    assert {
        cell: test["words"] for cell, test in transcript.tests.items() if test["words"]
    } == {}


@pytest.mark.parametrize("name", GRADED)
def test_wrong_and_right_answers_get_the_marks_and_the_words_of_one_process(
    name, tmp_path
):
    """In this order: the reference, then in both processes what differs from it and all
    that follows. Of each test cell one mistake, in turn one that a visible test catches
    and one that a hidden test does, those of which words are stated, and of the
    right answers that run every fourth."""
    known, stated = run_known(name), load_across(name, ROOT)
    mutants, right = known_answers(name)
    wrong, _ = representatives(mutants, right)
    crossing = {case.name for case in [*wrong, *right[::4]]} | known.keys() & stated
    command = [sys.executable, mutants_across.__file__, name, str(ROOT), "1", *crossing]
    # Texts have the hashes that they have in run_cases: an answer that leans on the
    # order of a set gives the same one.
    settings = {
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "",
    }
    (folder := tmp_path / "referee").mkdir()
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert outcomes.keys() == crossing | {REFERENCE}
    assert {
        (case, cell)
        for case, cells in stated.items()
        for cell in cells
        if case in known
    } <= {
        (case, cell) for case, outcome in outcomes.items() for cell in outcome["grader"]
    }
    differ = {
        (case, cell): {"found": found, "wanted": known[case].grader[cell]}
        for case, outcome in outcomes.items()
        for cell, mark in outcome["grader"].items()
        if not agree(
            found := Mark(**mark),
            known[case].grader[cell],
            stated.get(case, {}).get(cell),
        )
    }
    assert differ == {}


@pytest.mark.parametrize("name", WALLED)
def test_behind_the_wall_they_get_the_same_marks_and_students_the_same_words(
    worker, name
):
    """Of the first assignment the first mistake and the first right answer: the wall
    is the same for all. Of each, those of which words are stated."""
    mutants, right = known_answers(name)
    known, stated = run_known(name), load_across(name, ROOT)
    both = (mutants[0], right[0]) if name == GRADED[0] else ()
    differ = {}
    for case in [*mutants, *right]:
        if case not in both and case.name not in stated:
            continue
        transcript, alone = graded(worker, name, case.changes), known[case.name]
        for cell, wanted in alone.grader.items():
            across = stated.get(case.name, {}).get(cell)
            said, visible = transcript.tests[cell], alone.student[cell]
            told = said["printed"] if said["earned"] < visible.max_points else ""
            found = Mark(said["earned"], visible.max_points, said["words"] or told)
            earned = transcript.marks[cell]["earned"]
            same = agree(found, visible, None) or (
                across is not None and agree(found, visible, across)
            )
            if not same or (
                earned > wanted.points if across else earned != wanted.points
            ):
                differ[case.name, cell] = {
                    "found": found,
                    "earned": earned,
                    "visible": visible,
                    "whole": wanted,
                }
        if transcript.trouble:
            differ[case.name, ""] = transcript.trouble
    assert differ == {}
    tests = {cell.source for cell in assignment(name).instructor.cells}
    asked = [sources for sources in worker.expected if not tests.isdisjoint(sources)]
    assert len(asked) == 1, "what references give is told once for all submissions"
