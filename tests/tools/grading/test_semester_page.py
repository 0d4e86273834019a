"""The guide's term, from a record made here; and a small term, held."""

from __future__ import annotations

import importlib

import pytest
from classroom import REPOSITORY
from walled import need_a_sandbox
from whole import whole_only

from course_lab import records
from course_tools.site.graders_page import SEMESTER, semester


def line(command: str, says: str, seconds: float) -> dict:
    return {"command": command, "says": says, "for_a_person": [], "seconds": seconds}


ATTENTION = {
    "assignment": "attention",
    "students": 10,
    "submissions": 12,
    "late": 2,
    "marks": 140,
    "points": 250.5,
    "penalties": 12.25,
    "judged_again": ["rows"],
    "exported": {"canvas": 10, "csv": 10},
    "different": [],
    "log": [
        line("course release attention", "released", 5.0),
        line("course grade attention", "10 graded", 55.0),
        line("course grade attention", "0 graded", 5.0),
        line("course grade attention --question rows", "9 marks changed.", 75.0),
    ],
}
COPIED = ATTENTION | {
    "assignment": "bert",
    "judged_again": [],
    "log": [line("course grade bert", "10 graded", 5.0)],
    "copied": [["ada", "bo"], ["cy", "di"]],
    "clusters": [["two", "cy", "di"], ["two", "ada", "bo"]],
}


def page(folder, *rows: dict) -> str:
    settings = {"students": 10}
    made = records.make(SEMESTER, ["python", "x.py"], settings, list(rows))
    records.save(made, folder)
    return " ".join(semester(folder).split())


def test_without_a_record_the_page_says_how_to_make_one(tmp_path):
    assert "`python benchmarks/semester.py --record`" in semester(tmp_path)


def test_the_page_sums_up_the_term(tmp_path):
    told = page(tmp_path, ATTENTION, COPIED)
    assert "10 students handed in 2 assignments, 24 submissions in all: 4 late" in told
    assert "4 for a second time" in told
    assert "280 marks in the gradebook" in told
    assert "tables for canvas, csv, were compared with that; none differs" in told
    # 120 s of grading that grow with the class, for 12 submissions
    assert "| attention | 12 | 140 | 250.5 | 2, 12.25 | 10.0 |" in told
    assert "was mended and judged again: 9 marks changed." in told
    assert "4 copied, in clusters of 2 and 2, and disguised it." in told
    assert "The report names these clusters and nobody else." in told
    # 145 s in all; those 120 s are 30 times as many for 300 students
    assert "300 students in 2 assignments would take 1.0 hours" in told
    assert "$ course grade attention 0 graded $ course grade attention --q" in told


def test_what_differs_is_said(tmp_path):
    wrong = {"different": [["gradebook, bert", "ada", "rows", 3.0, 0.0]]}
    told = page(tmp_path, COPIED | wrong | {"clusters": [["two", "ada", "cy"]]})
    assert "1 differ." in told
    assert "The report names others: [['ada', 'cy']]." in told


@pytest.fixture
def program(monkeypatch):
    """The program, imported from its own folder."""
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    return importlib.import_module("semester")


def test_a_mark_that_is_another_and_a_student_who_is_lost_are_found(program):
    wanted = {"ada": {"rows": 3.0, "edges": 1.0}, "bo": {"rows": 0.0}}
    found = {"ada": {"rows": 3.0, "edges": 0.5}, "cy": {"rows": 0.0}}
    assert program.differences("here", wanted, found) == [
        ["here", "ada", "edges", 1.0, 0.5],
        ["here", "bo", "rows", 0.0, None],
        ["here", "cy", "rows", None, 0.0],
    ]
    assert program.differences("here", wanted, wanted) == []


def test_a_term_that_was_left_goes_on_after_its_last_whole_assignment(
    program, tmp_path, monkeypatch
):
    seen = []

    def teach(term, name, settings):
        seen.append((name, [path.stem for path in term.root.glob("*.mark")]))
        (term.root / f"{len(seen)}.mark").touch()
        if len(seen) == 2:
            raise KeyboardInterrupt
        return {"assignment": name}

    monkeypatch.setattr(program, "teach", teach)
    settings = program.Settings(assignments=("attention", "bert"))
    with pytest.raises(KeyboardInterrupt):
        program.measure(settings, False, str(tmp_path))
    rows = program.measure(settings, False, str(tmp_path))
    assert [row["assignment"] for row in rows] == ["attention", "bert"]
    # the marks of the half that was left are gone
    assert seen == [("attention", []), ("bert", ["1"]), ("bert", ["1"])]


@pytest.mark.slow
@whole_only
def test_in_a_small_term_every_mark_is_that_of_the_answers(program):
    """One of three is late, one hands in twice, two copy; a test is mended."""
    need_a_sandbox()
    rows = program.measure(
        program.Settings(
            students=3,
            assignments=("attention", "wordpiece"),
            copied_in="wordpiece",
            clusters=(2,),
            late=0.3,
            again=0.3,
            absent=0.0,
        ),
        record=False,
    )
    assert [row["different"] for row in rows] == [[], []]
    assert [row["submissions"] for row in rows] == [4, 3]
    assert [len(row["judged_again"]) for row in rows] == [1, 0]
    assert [program.clusters_right(row) for row in rows] == [True, True]
    assert [row["exported"]["moodle"] for row in rows] == [3, 3]
    assert all(row["penalties"] > 0 for row in rows)
