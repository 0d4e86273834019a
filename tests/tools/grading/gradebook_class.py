"""A class in a gradebook, as `course grade` would leave it, without running
anything."""

from __future__ import annotations

from pathlib import Path

import nbformat
from mini_assignment import released_notebook, solve
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from course_tools.grading.assignments.release import course_settings
from course_tools.grading.run.judge import Mark
from course_tools.grading.run.record import Entry, Records

POINTS = {"margin-tests": 3.0, "squares-tests": 4.0, "squares-why": 5.0}


def enter_assignment(course: Path) -> Records:
    """Enter the small assignment into the gradebook of a course folder."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.add_assignment("mini")
        gradebook.add_notebook("mini", "mini")
        for name, points in POINTS.items():
            kind = "markdown" if name == "squares-why" else "code"
            gradebook.add_grade_cell(
                name, "mini", "mini", max_score=points, cell_type=kind
            )
        gradebook.add_solution_cell("squares-why", "mini", "mini")
    return Records(CourseDirectory(config=course_settings(course)), "mini")


def record(
    records: Records,
    student: str,
    margin: float,
    squares: float,
    why: float | None = None,
) -> None:
    """Record the marks of one student as the grader does."""
    marks = dict(zip(POINTS, (margin, squares, why), strict=True))
    entry = Entry(
        "2026-11-22T12:00:00+00:00",
        "mini",
        student,
        "0" * 64,
        "1" * 64,
        "Python",
        marks,
        "",
        [],
        [],
    )
    notebook = nbformat.writes(solve(released_notebook()))
    records.write(
        entry,
        notebook,
        [Mark(name, POINTS[name], earned) for name, earned in marks.items()],
    )
