"""Attacks on stock nbgrader in its cage: what the benchmark says of the red team is
seen on some that are harmless."""

from __future__ import annotations

import importlib
import shutil
import sys
from contextlib import ExitStack
from typing import Any

import pytest
from attack_class import ALL_ATTACKS, HONEST, POINTS
from classroom import REPOSITORY
from expect import refusal
from whole import whole_only


@pytest.fixture(scope="module")
def red_team():
    """The benchmark, imported as Python runs it: from its own folder."""
    sys.path.insert(0, str(REPOSITORY / "benchmarks"))
    yield importlib.import_module("red_team")
    sys.path.remove(str(REPOSITORY / "benchmarks"))


def test_points_are_too_many_or_too_few_question_by_question(red_team):
    due = {"scale-tests": 0.0, "count-tests": 4.0, "why": None}
    assert red_team.judged({"scale-tests": 3.0, "count-tests": 1.0}, due) == {
        "points": 4.0,
        "too_many": ["scale-tests"],
        "too_few": ["count-tests"],
    }
    assert red_team.judged({}, due)["too_few"] == ["count-tests"]


def test_a_cell_of_the_table_says_all_that_is_wrong(red_team):
    fine: dict[str, Any] = {
        "points": 4.0,
        "too_many": [],
        "too_few": [],
        "state": "done",
        "leaks": False,
        "others": [],
        "processes": 0,
        "files": [],
    }
    assert red_team.told(fine) == "4"
    wrong = {
        "too_many": ["why"],
        "state": "did not end",
        "leaks": True,
        "others": ["zoe"],
        "processes": 2,
    }
    assert (
        red_team.told(fine | wrong | {"files": ["x"]})
        == "4+; did not end; leaks; hurts zoe; 2 processes; 1 files"
    )


def test_an_unknown_attack_is_named(red_team, tmp_path):
    settings = red_team.Settings(attacks=("skip_tag", "magic"))
    with refusal(r"magic.*known are attribute_chain, background_thread"):
        list(red_team.runs(settings, tmp_path, ExitStack()))


def test_every_attack_meets_every_grader(red_team, tmp_path):
    met = [
        (key["grader"], key["attack"])
        for key, _ in red_team.runs(red_team.Settings(), tmp_path, ExitStack())
    ]
    graders = ("course grade", "nbgrader, stock", "nbgrader, course")
    assert met == [(grader, path.stem) for grader in graders for path in ALL_ATTACKS]


@pytest.mark.slow
@whole_only
def test_stock_nbgrader_gets_wrong_what_we_say_and_course_grade_does_not(
    red_team, tmp_path
):
    if shutil.which("bwrap") is None:
        pytest.skip("no sandbox on this machine: there is no program bwrap")
    settings = red_team.Settings(
        attacks=("daemon", "duplicated_cells", "skip_tag"), settings_of=("stock",)
    )
    with ExitStack() as until:
        runs = red_team.runs(settings, tmp_path, until)
        rows = {(key["attack"], key["grader"]): key | run() for key, run in runs}
    assert {
        red_team.told(row)
        for (_, grader), row in rows.items()
        if grader == "course grade"
    } == {"7", "4"}
    stock = {
        attack: row
        for (attack, grader), row in rows.items()
        if grader != "course grade"
    }
    assert stock["skip_tag"]["too_many"] == ["scale-tests"]
    assert stock["skip_tag"]["points"] == POINTS["scale-tests"] + POINTS["count-tests"]
    assert stock["skip_tag"]["leaks"]
    assert (stock["daemon"]["processes"], stock["daemon"]["others"]) == (1, [])
    assert stock["duplicated_cells"]["state"] == "stops the class"
    assert stock["duplicated_cells"]["others"] == [HONEST[1]]
