"""`course replay`: the log alone gives the marks, and whatever does not fit the
gradebook is named."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import nbformat
import pytest
from gradebook_class import enter_assignment, record
from mini_assignment import released_notebook, solve
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from typer.testing import CliRunner

from course_tools.cli import app
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.run.record import Entry, Records, append, lines, replay


@pytest.fixture
def graded(course):
    records = enter_assignment(course)
    record(records, "ada", 3.0, 2.0)
    record(records, "bo", 0.0, 0.0)
    record(records, "ada", 3.0, 4.0)  # handed in again
    return course


def test_the_last_line_of_each_student_gives_the_marks_of_the_gradebook(graded):
    found = replay("mini", graded)
    assert found.ok
    assert found.count == 3
    assert found.marks["ada"] == {
        "margin-tests": 3.0,
        "squares-tests": 4.0,
        "squares-why": None,
    }


def records_of(course: Path) -> Records:
    return Records(CourseDirectory(config=course_settings(course)), "mini")


def test_what_is_done_is_the_last_that_the_log_says_of_a_student(graded):
    done = records_of(graded).done()
    marks = {student: line["marks"]["squares-tests"] for student, line in done.items()}
    assert marks == {"ada": 4.0, "bo": 0.0}


def test_a_mark_by_hand_is_looked_at_again_when_its_answer_changes(graded):
    database = f"sqlite:///{graded / 'gradebook.db'}"
    with Gradebook(database) as gradebook:
        grade = gradebook.find_grade("squares-tests", "mini", "mini", "ada")
        grade.manual_score = 1.0
        gradebook.db.commit()
    record(records_of(graded), "ada", 3.0, 2.0)
    with Gradebook(database) as gradebook:
        submitted = gradebook.find_submission_notebook("mini", "mini", "ada")
        asked = {grade.name for grade in submitted.grades if grade.needs_manual_grade}
        assert asked == {"squares-tests", "squares-why"}  # and the written answer


def test_a_mark_that_something_else_wrote_is_named(graded):
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}") as gradebook:
        gradebook.find_grade("margin-tests", "mini", "mini", "bo").auto_score = 3.0
        gradebook.add_student("eve")
        gradebook.add_submission("mini", "eve")
        gradebook.find_grade(
            "squares-tests", "mini", "mini", "ada"
        ).manual_score = 1.0  # by hand: no matter
        gradebook.db.commit()
    found = replay("mini", graded)
    assert found.differences == [
        "bo, margin-tests: 0 in the log, 3 in the gradebook.",
        "eve is in the gradebook and not in the log.",
    ]


def test_a_log_that_older_versions_wrote_with_seals_is_read(graded):
    log = graded / "grading-log.jsonl"
    sealed = [
        line[:-1] + f', "chain": "{"0" * 64}"}}'
        for line in log.read_text().splitlines()
    ]
    log.write_text("\n".join(sealed) + "\n")
    record(
        Records(CourseDirectory(config=course_settings(graded)), "mini"), "cy", 3.0, 4.0
    )
    found = replay("mini", graded)
    assert (found.ok, found.count, sorted(found.marks)) == (
        True,
        4,
        ["ada", "bo", "cy"],
    )


def test_a_question_judged_again_may_change_no_other_mark(graded):
    last = list(lines(graded / "grading-log.jsonl"))[-1]
    entry = Entry(
        **last
        | {"question": "margin-tests", "marks": last["marks"] | {"squares-tests": 0.0}}
    )
    append(graded / "grading-log.jsonl", asdict(entry))
    assert (
        "judging margin-tests again changed other marks too"
        in replay("mini", graded).faults[0]
    )


def test_one_question_is_written_and_the_rest_stays(graded):
    records = Records(CourseDirectory(config=course_settings(graded)), "mini")
    last = records.done()["bo"]
    entry = Entry(
        **last
        | {"question": "squares-tests", "marks": last["marks"] | {"squares-tests": 2.0}}
    )
    records.write_question(
        entry, nbformat.writes(solve(released_notebook())), "squares-tests", 2.0
    )
    found = replay("mini", graded)
    assert found.ok
    assert found.marks["bo"] == {
        "margin-tests": 0.0,
        "squares-tests": 2.0,
        "squares-why": None,
    }


def test_the_command_says_whether_log_and_gradebook_hold(graded, monkeypatch):
    monkeypatch.chdir(graded)
    told = CliRunner().invoke(app, ["replay", "mini"])
    assert told.exit_code == 0
    assert "3 lines, 2 students, marks as in the gradebook." in told.stdout
    (graded / "grading-log.jsonl").unlink()
    told = CliRunner().invoke(app, ["replay", "mini"])
    assert told.exit_code == 1
    assert "ada is in the gradebook and not in the log." in told.stderr
