"""Late work costs what the configuration declares, and the penalty stands where stock
nbgrader puts it."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from classroom import Classroom
from mini_assignment import released_notebook
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import CsvExportPlugin
from nbgrader.preprocessors import AssignLatePenalties

from course_tools.grading.assignments.release import course_settings
from course_tools.grading.collect.late import LatePolicy, LateWork
from course_tools.grading.run.grade import course_of

DUE = datetime(2026, 11, 22, 23, 59)
LATE = {
    "early": -60,
    "grace": 14 * 60,
    "hour": 3600,
    "days": 2 * 86400,
    "week": 7 * 86400,
}


@pytest.fixture
def late_class(course):
    """Five students with 5 of 7 points each, handed in at other times."""
    with (course / "nbgrader_config.py").open("a") as config:
        config.write("\nc.LatePolicy.percent_per_day = 10.0\n")
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.add_assignment("mini", duedate=DUE)
        gradebook.add_notebook("mini", "mini")
        gradebook.add_grade_cell(
            "margin-tests", "mini", "mini", max_score=7, cell_type="code"
        )
        for student, seconds in LATE.items():
            gradebook.add_student(student)
            gradebook.add_submission("mini", student)
            gradebook.find_submission_notebook("mini", "mini", student).grades[
                0
            ].auto_score = 5.0
            classroom = Classroom(course)
            classroom.submit("mini", student, released_notebook())
            (course / "submitted" / student / "mini" / "timestamp.txt").write_text(
                f"{DUE + timedelta(seconds=seconds)} UTC"
            )
        gradebook.db.commit()
    return course


def work(course: Path) -> LateWork:
    return LateWork(CourseDirectory(config=course_settings(course)), "mini")


def penalties(course: Path) -> dict[str, float]:
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        found = gradebook.assignment_submissions("mini")
        return {each.student.id: each.late_submission_penalty or 0.0 for each in found}


# the week: at most half
EXPECTED = {"early": 0.0, "grace": 0.0, "hour": 0.5, "days": 1.0, "week": 2.5}


def test_each_day_that_has_begun_costs_its_share_up_to_the_most(late_class):
    told = work(late_class).assign()
    assert penalties(late_class) == EXPECTED
    assert [str(late) for late in told] == [
        "days: 2 d late, 1 points off",
        "grace: 14 min late, 0 points off",
        "hour: 1 h late, 0.5 points off",
        "week: 7 d late, 2.5 points off",
    ]


def test_stock_nbgrader_takes_the_same_points(late_class):
    work(late_class).assign()  # enters the times as well
    ours = penalties(late_class)
    step = AssignLatePenalties(config=course_settings(late_class))
    for student in LATE:
        place = {"notebook": "mini", "assignment": "mini", "student": student}
        step.preprocess(
            released_notebook(),
            {
                "nbgrader": (
                    place | {"db_url": f"sqlite:///{late_class / 'gradebook.db'}"}
                )
            },
        )
    assert penalties(late_class) == ours == EXPECTED


def test_the_penalty_is_in_what_nbgrader_exports(late_class):
    work(late_class).assign()
    place = late_class / "grades.csv"
    with Gradebook(f"sqlite:///{late_class / 'gradebook.db'}") as gradebook:
        CsvExportPlugin(to=str(place)).export(gradebook)
    with place.open(newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert (
        rows["week"]["raw_score"],
        rows["week"]["late_submission_penalty"],
        rows["week"]["score"],
    ) == ("5.0", "2.5", "2.5")


def test_an_extension_and_a_mark_by_hand_change_the_penalty_at_the_next_run(late_class):
    work(late_class).assign()
    with Gradebook(f"sqlite:///{late_class / 'gradebook.db'}") as gradebook:
        gradebook.find_submission("mini", "week").extension = timedelta(days=6)
        gradebook.find_submission_notebook("mini", "mini", "days").grades[
            0
        ].manual_score = 7.0
        gradebook.db.commit()
    work(late_class).assign()
    assert penalties(late_class) == EXPECTED | {"week": 0.5, "days": 1.4}


def test_the_student_is_told_how_late_it_was_and_what_that_costs(late_class):
    late = work(late_class)
    assert late.words("days") == ["It came 2 d late: 20% of its points are taken off."]
    assert late.words("early") == []


def test_days_are_counted_from_the_end_of_the_grace():
    policy, day = LatePolicy(percent_per_day=10.0, grace_minutes=15.0), 24 * 3600
    ends = (900.0, 901.0, day + 900.0, day + 901.0)
    assert [policy.percent(seconds) for seconds in ends] == [0.0, 10.0, 10.0, 20.0]


def test_who_has_an_extension_is_told_of_the_time_beyond_it(late_class):
    with Gradebook(f"sqlite:///{late_class / 'gradebook.db'}") as gradebook:
        for student in ("days", "hour"):
            submission = gradebook.find_submission("mini", student)
            submission.extension = timedelta(days=1)
        gradebook.db.commit()
    late = work(late_class)
    assert late.words("days") == ["It came 1 d late: 10% of its points are taken off."]
    assert late.words("hour") == []


def test_the_time_is_read_where_the_submissions_lie(late_class, tmp_path):
    (late_class / "submitted").rename(tmp_path / "elsewhere")
    assert LateWork(course_of(late_class), "mini").seconds("hour") == 0.0
    assert (
        LateWork(course_of(late_class, tmp_path / "elsewhere"), "mini").seconds("hour")
        == 3600.0
    )


def test_without_a_due_date_nothing_is_late(late_class):
    with Gradebook(f"sqlite:///{late_class / 'gradebook.db'}") as gradebook:
        gradebook.find_assignment("mini").duedate = None
        gradebook.db.commit()
    assert work(late_class).assign() == []
