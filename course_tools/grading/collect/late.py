"""What late work costs: a policy that the configuration declares, as a plugin of
nbgrader's own.

Stock ``nbgrader autograde`` and ``course grade`` apply the same plugin, and the penalty
stands where nbgrader keeps it, so ``nbgrader export`` and the formgrader show it. Late
is what came after the due date in the gradebook (``nbgrader db assignment add NAME
--duedate=...``, with a student's extension), by the time in ``timestamp.txt``. Without
a due date or a time nothing is late.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nbgrader.api import Gradebook, SubmittedAssignment, SubmittedNotebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import Float

DAY = 24 * 60 * 60


class LatePolicy(LateSubmissionPlugin):
    """A share of the marks for each day that has begun, after a time of grace."""

    percent_per_day = Float(
        0.0, min=0.0, max=100.0, help="Taken off for each day that has begun."
    ).tag(config=True)
    grace_minutes = Float(
        0.0, min=0.0, help="So much later costs nothing; a day is counted from here."
    ).tag(config=True)
    most_percent = Float(
        100.0, min=0.0, max=100.0, help="More than this is never taken off."
    ).tag(config=True)

    def percent(self, seconds_late: float) -> float:
        """Say which share of its marks a submission loses, in percent."""
        days = math.ceil(max(0.0, seconds_late - 60 * self.grace_minutes) / DAY)
        return float(min(days * self.percent_per_day, self.most_percent))

    # the names of the arguments are nbgrader's
    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float:
        """Say how many points a submission loses; nbgrader calls this."""
        return score * self.percent(total_seconds_late) / 100


@dataclass(frozen=True)
class Late:
    """A submission that came late, and what it costs in points."""

    student: str
    seconds: float
    penalty: float

    def __str__(self) -> str:
        return (
            f"{self.student}: {_span(self.seconds)} late, {self.penalty:g} points off"
        )


class LateWork:
    """The due date of one assignment, and the policy of the course."""

    def __init__(self, courses: CourseDirectory, assignment: str) -> None:
        self.courses, self.assignment = courses, assignment
        step = AssignLatePenalties(config=courses.config)
        step.init_plugin()
        self.policy = step.plugin_inst
        with Gradebook(courses.db_url, courses.course_id) as gradebook:
            self.due = gradebook.find_assignment(assignment).duedate
            submissions = gradebook.assignment_submissions(assignment)
            self.extensions = {
                each.student.id: each.extension
                for each in submissions
                if each.extension
            }

    def seconds(self, student: str) -> float:
        """Say by how much a student's submission came late; 0 where it did not, or
        where nobody knows."""
        place = Path(
            self.courses.format_path(
                self.courses.submitted_directory, student, self.assignment
            )
        )
        when = self.courses.get_existing_timestamp(str(place))
        if when is None or self.due is None:
            return 0.0
        return max(
            0.0,
            (
                when - self.due - self.extensions.get(student, timedelta())
            ).total_seconds(),
        )

    def words(self, student: str) -> list[str]:
        """Tell the student that it came late and what the policy takes; nothing if it
        came in time."""
        seconds = self.seconds(student)
        if not seconds:
            return []
        taken = (
            f": {self.policy.percent(seconds):g}% of its points are taken off"
            if _ours(self.policy)
            else ""
        )
        return [f"It came {_span(seconds)} late{taken}."]

    def assign(self) -> list[Late]:
        """Enter the penalty of every submission, in one transaction: due dates, times
        and marks by hand may be new."""
        found = []
        with Gradebook(self.courses.db_url, self.courses.course_id) as gradebook:
            for submission in gradebook.assignment_submissions(self.assignment):
                place = self.courses.format_path(
                    self.courses.submitted_directory,
                    submission.student.id,
                    self.assignment,
                )
                if when := self.courses.get_existing_timestamp(place):
                    submission.timestamp = when
                seconds, total = submission.total_seconds_late, 0.0
                for notebook in submission.notebooks:
                    notebook.late_submission_penalty = self._penalty(
                        submission, notebook
                    )
                    total += notebook.late_submission_penalty or 0.0
                if seconds > 0:
                    found.append(Late(submission.student.id, seconds, total))
            gradebook.db.commit()
        return sorted(found, key=lambda late: late.student)

    def _penalty(
        self, submission: SubmittedAssignment, notebook: SubmittedNotebook
    ) -> float | None:
        seconds = submission.total_seconds_late
        if seconds <= 0:
            return None
        said = self.policy.late_submission_penalty(
            submission.student.id, notebook.score, seconds
        )
        return None if said is None else min(max(0.0, said), notebook.score)

    def outdated(self, gradebook: Gradebook) -> list[str]:
        """Name the students whose penalty is not what the policy gives for their marks
        of now."""
        return sorted(
            submission.student.id
            for submission in gradebook.assignment_submissions(self.assignment)
            for notebook in submission.notebooks
            if abs(
                (self._penalty(submission, notebook) or 0.0)
                - (notebook.late_submission_penalty or 0.0)
            )
            > 1e-9
        )


def _ours(policy: LateSubmissionPlugin) -> bool:
    return isinstance(policy, LatePolicy)


def _span(seconds: float) -> str:
    """Write a time for people, rounded down to minutes."""
    minutes = int(seconds // 60)
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 min"
