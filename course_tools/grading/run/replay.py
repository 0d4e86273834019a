"""`course replay`: build the marks again from the audit log alone, and say whether the
gradebook holds the same.

What a person marked by hand is in the gradebook and not in the log, so the marks of the
tests are compared. A gradebook that differs was written by something else than `course
grade`: by stock nbgrader, by hand, or by somebody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from course_tools.grading.assignments.release import course_settings
from course_tools.grading.run.record import Records, lines

Marks = dict[str, dict[str, float | None]]


@dataclass
class Replay:
    """What the log says.

    Attributes:
        marks: by student and question, as the log leaves them; None where a person
        marks.
        count: lines of this assignment.
        faults: where the log contradicts itself.
        differences: where the gradebook says something else.
    """

    marks: Marks = field(default_factory=dict)
    count: int = 0
    faults: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether log and gradebook hold."""
        return not self.faults and not self.differences


def replay(name: str, root: Path = Path()) -> Replay:
    """Rebuild the marks of an assignment from the log, and compare."""
    courses = CourseDirectory(config=course_settings(root))
    found = Replay()
    for line in lines(Records(courses, name).log):
        if line["assignment"] != name:
            continue
        found.count += 1
        student, before = line["student"], found.marks.get(line["student"], {})
        if question := line.get("question"):
            kept = {part: mark for part, mark in before.items() if part != question}
            if kept != {
                part: mark for part, mark in line["marks"].items() if part != question
            }:
                found.faults.append(
                    f"{student}, {line['time']}: judging {question} again changed other"
                    " marks too."
                )
        found.marks[student] = line["marks"]
    found.differences = _differences(found.marks, _in_gradebook(courses, name))
    return found


def _in_gradebook(courses: CourseDirectory, name: str) -> Marks:
    with Gradebook(courses.db_url, courses.course_id) as gradebook:
        return {
            submission.student.id: {
                grade.name: grade.auto_score
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in gradebook.assignment_submissions(name)
        }


def _differences(log: Marks, gradebook: Marks) -> list[str]:
    found = []
    for student in sorted(log.keys() | gradebook.keys()):
        if student not in log:
            found.append(f"{student} is in the gradebook and not in the log.")
        elif student not in gradebook:
            found.append(f"{student} is in the log and not in the gradebook.")
        else:
            for part, mark in gradebook[student].items():
                if (said := log[student].get(part, 0.0)) != mark:
                    found.append(
                        f"{student}, {part}: {_points(said)} in the log,"
                        f" {_points(mark)} in the gradebook."
                    )
    return found


def _points(mark: float | None) -> str:
    return "by hand" if mark is None else f"{mark:g}"
