"""A case of the graded graders that never ends, or ends its process, is named; it does
not stop the machine."""

import sys

import IPython.core.interactiveshell  # noqa: F401  before the fork, as the command does: no case spends time on it
import pytest
import torch  # noqa: F401
from expect import refusal
from mini_assignment import source_notebook

from course_tools.grading.assignments import mutants_run
from course_tools.grading.assignments.source import AssignmentError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="cases run in forked processes"),
]


def run(body):
    margin = f"def margin(high, low):\n    {body}"
    return mutants_run.in_processes(source_notebook(), {"wrong": {"margin": margin}})


def test_a_case_that_computes_for_ever_is_stopped_by_its_processor_time(monkeypatch):
    monkeypatch.setattr(mutants_run, "SECONDS_PER_CASE", 2)
    monkeypatch.setattr(mutants_run, "PATIENCE", 1000)
    with refusal("wrong used more than 2 s of processor time", AssignmentError):
        run("while True: pass")


def test_a_case_that_waits_for_ever_is_stopped_by_the_clock(monkeypatch):
    monkeypatch.setattr(mutants_run, "PATIENCE", 0.1)
    with refusal(r"wrong did not end within 6\.0 s", AssignmentError):
        run("import threading; threading.Event().wait()")


def test_a_case_that_ends_its_process_is_named():
    with refusal("wrong ended its process before it was marked", AssignmentError):
        run("import os; os._exit(0)")


def test_a_wrong_answer_loses_the_marks_of_its_cell_alone():
    margin = "def margin(high, low):\n    return abs(high - low)"
    outcome = mutants_run.in_processes(
        source_notebook(), {"wrong": {"margin": margin}}
    )["wrong"]
    # the hidden test alone sees it
    assert outcome["student"]["margin-tests"]["points"] == 3
    assert outcome["grader"]["margin-tests"]["points"] == 0
    assert outcome["grader"]["squares-tests"]["points"] == 4


def test_an_answer_by_itself_in_a_fresh_shell_gets_the_marks_of_a_forked_case():
    margin = "def margin(high, low):\n    return abs(high - low)"
    outcome = mutants_run.run_from_the_start(source_notebook(), {"margin": margin})
    assert outcome.student["margin-tests"].points == 3
    assert outcome.grader["margin-tests"].points == 0
    assert outcome.grader["squares-tests"].points == 4
