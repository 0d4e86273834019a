"""`course grade` from end to end on a small class: killed and started again, handed in
again, beside stock nbgrader."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

import pytest
from attack_class import COUNT, POINTS, SCALE, answered, open_class
from classroom import REPOSITORY, Classroom
from walled import need_a_sandbox

from course_tools.grading.run.grade import CannotGrade, grade
from course_tools.grading.run.record import CannotRecord
from course_tools.grading.sandbox import isolation
from course_tools.grading.sandbox.sandbox import Limits, NoIsolation, Worker

pytestmark = pytest.mark.slow

STUDENTS = [f"student-{number}" for number in range(6)]
FULL = POINTS | {"why": 0.0}
HALF = FULL | {"scale-tests": 0.0}


@pytest.fixture(autouse=True)
def _walled():
    need_a_sandbox()


@dataclass(frozen=True)
class Term:
    """A class whose grading was killed after two students, and started again."""

    classroom: Classroom
    told_before: list[str]
    log_before: list[str]
    told_after: str


def log_of(classroom: Classroom) -> list[dict]:
    return [
        json.loads(line)
        for line in (classroom.root / "grading-log.jsonl").read_text().splitlines()
    ]


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    classroom = open_class(tmp_path_factory.mktemp("term") / "course")
    # each a text of its own: equal ones would be graded together
    for number, student in enumerate(STUDENTS):
        scale = SCALE if number % 2 else "def scale(x):\n    return x"
        classroom.submit("mini", student, answered(classroom, f"# {student}\n{scale}"))
    command = [sys.executable, "-u", "-m", "course_tools.cli", "grade", "mini"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    told = []
    with subprocess.Popen(
        command, cwd=classroom.root, env=environment, stdout=subprocess.PIPE, text=True
    ) as grader:
        assert grader.stdout is not None
        for line in grader.stdout:
            told.append(line)
            if len(told) == 2:
                grader.kill()
    before = [line["student"] for line in log_of(classroom)]
    with (classroom.root / "grading-log.jsonl").open("a") as log:
        log.write('{"time": "cut o')  # as a power cut would leave it
    return Term(classroom, told, before, classroom.run("course grade mini"))


def test_it_was_killed_half_way(term):
    assert 2 <= len(term.log_before) < len(STUDENTS)


def test_after_a_kill_every_student_is_graded_once_and_none_twice(term):
    lines = (term.classroom.root / "grading-log.jsonl").read_text().splitlines()
    whole = [json.loads(line)["student"] for line in lines if line.endswith("}")]
    assert Counter(whole) == Counter(STUDENTS)
    assert len(lines) == len(STUDENTS) + 1  # the line that was cut off stands alone


def test_marks_after_a_kill_are_those_of_the_answers(term):
    for number, student in enumerate(STUDENTS):
        assert term.classroom.scores("mini", student) == (FULL if number % 2 else HALF)


def test_the_report_says_how_the_class_did(term):
    term.classroom.run("course report mini")
    text = (term.classroom.root / "reports" / "mini.html").read_text(encoding="utf-8")
    # 7 or 4; the written answer is blank
    assert "6 submissions, 9 points. Mean 5.5, median 5.5." in text
    assert (
        '<th scope="row">scale-tests</th><td>3</td><td>6</td><td>50%</td><td>50%</td>'
        in text
    )
    assert "never varies" in text


def test_stock_nbgrader_goes_on_with_what_was_recorded(term):
    term.classroom.run("nbgrader generate_feedback mini --force")
    page = term.classroom.root / "feedback" / STUDENTS[1] / "mini" / "mini.html"
    assert "(Score: 7.0 / 9.0)" in page.read_text()
    assert "never-to-be-seen" not in page.read_text()
    term.classroom.run("nbgrader export")
    with (term.classroom.root / "grades.csv").open(newline="") as file:
        scores = {
            row["student_id"]: float(row["score"]) for row in csv.DictReader(file)
        }
    assert scores == {
        student: 7.0 if number % 2 else 4.0 for number, student in enumerate(STUDENTS)
    }


def test_a_resubmission_is_graded_and_a_broken_one_keeps_no_old_mark(term):
    first, second = STUDENTS[0], STUDENTS[1]
    term.classroom.submit(
        "mini", first, answered(term.classroom, f"# again\n{SCALE}", COUNT)
    )
    (term.classroom.root / "submitted" / second / "mini" / "mini.ipynb").write_text(
        "no notebook"
    )
    report = grade("mini", term.classroom.root)
    assert [result.student for result in report.results if not result.again] == [
        first,
        second,
    ]
    assert term.classroom.scores("mini", first) == FULL
    assert term.classroom.scores("mini", second) == dict.fromkeys(POINTS, 0.0)


def test_equal_answers_are_run_once_and_recorded_for_each(term, monkeypatch):
    started = []
    start = Worker.start
    monkeypatch.setattr(
        Worker,
        "start",
        lambda self, role, pipes: started.append(role) or start(self, role, pipes),
    )
    for student in ("twin", "other-twin"):
        term.classroom.submit("mini", student, answered(term.classroom))
    report = grade("mini", term.classroom.root, limits=Limits(cell_seconds=20.0))
    assert {r.student: r.earned for r in report.results if not r.again} == {
        "twin": 7.0,
        "other-twin": 7.0,
    }
    assert started.count("referee") == 2  # one for each round


def test_without_bubblewrap_nothing_is_run(term, monkeypatch):
    monkeypatch.setattr(isolation.shutil, "which", lambda name: None)
    term.classroom.submit("mini", "late", answered(term.classroom, f"# late\n{SCALE}"))
    with pytest.raises(NoIsolation, match="Install bubblewrap"):
        grade("mini", term.classroom.root)
    assert not (term.classroom.root / "autograded" / "late").exists()


def test_an_assignment_that_was_never_released_is_refused_in_words(term, tmp_path):
    with pytest.raises(CannotGrade, match="course release nothing"):
        grade("nothing", term.classroom.root)
    bare = Classroom.create(tmp_path / "bare")
    for name in ("solutions", "exercises"):
        shutil.copytree(term.classroom.root / name, bare.root / name)
    (bare.root / "submitted").mkdir()
    with pytest.raises(CannotRecord, match="Run: course release mini"):
        grade("mini", bare.root)
