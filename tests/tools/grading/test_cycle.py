"""The page on nbgrader's own commands, carried out: in its order, on a class of four,
and every mark compared.

nbgrader starts a kernel for each submission, so each of the four has several of the
things that go wrong in a class. It runs once; the tests read what it left.
"""

from __future__ import annotations

import copy
import csv
from dataclasses import dataclass

import nbformat
import pytest
from classroom import REPOSITORY, Classroom
from guide import commands
from sample_class import (
    ASSIGNMENT,
    BEAM_TESTS,
    WRITTEN,
    Sample,
    cell_of,
    delete,
    samples,
)
from stock import compare_only

from course_tools.grading.assignments.source import answered, copy_idle

pytestmark = [pytest.mark.slow]

Marks = dict[str, dict[str, float | None]]


STUDENTS = ["ada", "partly-right", "blank", "deleted-test"]


@dataclass(frozen=True)
class Term:
    """What the commands of the page left behind."""

    classroom: Classroom
    samples: list[Sample]
    max_scores: dict[str, float]
    marks: Marks
    marks_of_second_run: Marks
    marks_of_resubmission: dict[str, float | None]
    released_by_course: bytes
    released_by_nbgrader: bytes


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    classroom = Classroom.create(tmp_path_factory.mktemp("term") / "course")
    # The cells that take most of its time and give no mark do nothing.
    copy_idle(ASSIGNMENT, REPOSITORY, classroom.root)
    source = classroom.root / "solutions" / ASSIGNMENT / f"{ASSIGNMENT}.py"
    compare_only(source, "masked_softmax_edges")
    released_path = classroom.root / "exercises" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"

    release, generate, autograde, feedback, export, autograde_again, feedback_again = (
        commands("operating-nbgrader")
    )
    classroom.run(release)
    released_by_course = released_path.read_bytes()
    classroom.run(generate)
    released = classroom.released(ASSIGNMENT)
    instructor = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    solved = answered(released, instructor)
    the_class = samples(released)
    for sample in the_class:
        submission = copy.deepcopy(solved)
        sample.change(submission)
        classroom.submit(ASSIGNMENT, sample.student, submission)

    classroom.run(autograde)
    marks = {
        sample.student: classroom.scores(ASSIGNMENT, sample.student)
        for sample in the_class
    }
    classroom.run(feedback)
    classroom.run(export)
    classroom.run(f"{autograde} --student=p*")  # partly-right once more
    second = {
        sample.student: classroom.scores(ASSIGNMENT, sample.student)
        for sample in the_class
    }

    # this time the answers are gone, too
    delete(solved, *BEAM_TESTS, "beam-search", WRITTEN)
    classroom.submit(ASSIGNMENT, "ada", solved)
    classroom.run(autograde_again)
    classroom.run(feedback_again)
    return Term(
        classroom,
        the_class,
        classroom.max_scores(ASSIGNMENT),
        marks,
        second,
        classroom.scores(ASSIGNMENT, "ada"),
        released_by_course,
        released_path.read_bytes(),
    )


def expected_marks(
    sample: Sample, max_scores: dict[str, float]
) -> dict[str, float | None]:
    marks: dict[str, float | None] = {
        name: 0.0 if name in sample.lost else most for name, most in max_scores.items()
    }
    marks[WRITTEN] = None if sample.answered else 0.0
    return marks


@pytest.mark.parametrize("student", STUDENTS)
def test_every_question_of_every_submission_gets_its_mark(term, student):
    sample = next(sample for sample in term.samples if sample.student == student)
    assert term.marks[student] == expected_marks(sample, term.max_scores)


def test_the_class_has_the_students_that_it_should(term):
    assert [sample.student for sample in term.samples] == STUDENTS


def test_most_marks_in_the_gradebook_are_the_points_in_the_source(term):
    source = nbformat.read(
        term.classroom.root / "solutions" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb",
        as_version=4,
    )
    roles = [
        cell.metadata.nbgrader for cell in source.cells if "nbgrader" in cell.metadata
    ]
    assert term.max_scores == {
        role.grade_id: role.points for role in roles if role.grade
    }


def test_stock_command_releases_the_same_bytes_as_course_release(term):
    assert term.released_by_nbgrader == term.released_by_course


def test_release_copies_no_source_file_beside_the_notebook(term):
    beside = sorted(
        path.name for path in (term.classroom.root / "exercises" / ASSIGNMENT).iterdir()
    )
    assert beside == [f"{ASSIGNMENT}.ipynb"]


def test_second_autograding_changes_no_mark(term):
    assert term.marks_of_second_run == term.marks


@pytest.mark.parametrize("student", STUDENTS)
def test_every_student_gets_feedback_with_the_score(term, student):
    page = (
        term.classroom.root / "feedback" / student / ASSIGNMENT / f"{ASSIGNMENT}.html"
    ).read_text(encoding="utf-8")
    marks = term.marks_of_resubmission if student == "ada" else term.marks[student]
    total = sum(mark or 0.0 for mark in marks.values())
    most = sum(term.max_scores.values())
    assert f"(Score: {total} / {most})" in page


def test_exported_table_has_every_student_once_with_the_sum(term):
    with (term.classroom.root / "grades.csv").open(
        newline="", encoding="utf-8"
    ) as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["student_id"] for row in rows) == sorted(STUDENTS)
    for row in rows:
        assert row["assignment"] == ASSIGNMENT
        assert float(row["max_score"]) == sum(term.max_scores.values())
        assert float(row["score"]) == sum(
            mark or 0.0 for mark in term.marks[row["student_id"]].values()
        )


def test_resubmission_without_tests_and_answers_keeps_none_of_its_old_marks(term):
    assert term.marks_of_resubmission == term.max_scores | dict.fromkeys(
        [*BEAM_TESTS, WRITTEN], 0.0
    )


def test_feedback_says_that_a_deleted_test_was_put_back(term):
    graded = nbformat.read(
        term.classroom.root
        / "autograded"
        / "deleted-test"
        / ASSIGNMENT
        / f"{ASSIGNMENT}.ipynb",
        as_version=4,
    )
    for name in BEAM_TESTS:
        assert cell_of(graded, name).source.startswith(
            f"# This cell (id:{name}) was missing from the submission."
        )
