"""What late work costs: a policy of the configuration, as nbgrader's plugin.

Stock ``nbgrader autograde`` and ``course grade`` apply the same plugin, and the penalty
stands where nbgrader keeps it, so ``nbgrader export`` and the formgrader show it. Late
is what came after the due date in the gradebook (``nbgrader db assignment add NAME
--duedate=...``, with a student's extension), by the time in ``timestamp.txt``. Without
a due date or a time nothing is late.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

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
        late = f"{self.student}: {_span(self.seconds)} late"
        return f"{late}, {self.penalty:g} points off"


class LateWork:
    """The due date of one assignment, and the policy of the course."""

    def __init__(self, courses: CourseDirectory, assignment: str) -> None:
        self.courses, self.assignment = courses, assignment
        step = AssignLatePenalties(config=courses.config)
        step.init_plugin()
        self.policy = step.plugin_inst
        with Gradebook(courses.db_url, courses.course_id) as gradebook:
            self.due = gradebook.find_assignment(assignment).duedate
            handed_in = gradebook.assignment_submissions(assignment)
            self.extensions = {each.student.id: each.extension for each in handed_in}

    def _handed_in_at(self, student: str) -> datetime | None:
        where = self.courses.submitted_directory
        place = self.courses.format_path(where, student, self.assignment)
        return self.courses.get_existing_timestamp(place)

    def seconds(self, student: str) -> float:
        """Say by how much a submission came late; 0 if not, or unknown."""
        when = self._handed_in_at(student)
        if when is None or self.due is None:
            return 0.0
        late = when - self.due - (self.extensions.get(student) or timedelta())
        return max(0.0, late.total_seconds())

    def words(self, student: str) -> list[str]:
        """Tell a late student how late and what the policy takes."""
        seconds = self.seconds(student)
        if not seconds:
            return []
        taken = ""
        if isinstance(self.policy, LatePolicy):
            share = f"{self.policy.percent(seconds):g}%"
            taken = f": {share} of its points are taken off"
        return [f"It came {_span(seconds)} late{taken}."]

    def assign(self) -> list[Late]:
        """Enter every penalty in one transaction: dates and marks may be new."""
        found = []
        with Gradebook(self.courses.db_url, self.courses.course_id) as gradebook:
            for submission in gradebook.assignment_submissions(self.assignment):
                if when := self._handed_in_at(submission.student.id):
                    submission.timestamp = when
                seconds, total = submission.total_seconds_late, 0.0
                for notebook in submission.notebooks:
                    penalty = self._penalty(submission, notebook)
                    notebook.late_submission_penalty = penalty
                    total += penalty or 0.0
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
        student, score = submission.student.id, notebook.score
        said = self.policy.late_submission_penalty(student, score, seconds)
        return None if said is None else min(max(0.0, said), score)

    def outdated(self, gradebook: Gradebook) -> list[str]:
        """Name students whose penalty is not what the policy gives now."""
        return sorted(
            submission.student.id
            for submission in gradebook.assignment_submissions(self.assignment)
            for notebook in submission.notebooks
            for now in [self._penalty(submission, notebook) or 0.0]
            if abs(now - (notebook.late_submission_penalty or 0.0)) > 1e-9
        )


def _span(seconds: float) -> str:
    """Write a time for people, rounded down to minutes."""
    minutes = int(seconds // 60)
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 min"
