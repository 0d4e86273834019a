"""`course grade NAME --question ID`: after a test was mended, judge that question of
the class again, and no other.

A submission is run whole, because later cells stand on earlier ones; of what comes out
only the question's mark is kept. All other marks stay as they were, be it that a run
today would give others. Who has the new mark already is not run again, so this command,
too, can be killed at any moment.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from course_tools.grading.collect.intake import Submission, collect
from course_tools.grading.collect.late import Late, LateWork
from course_tools.grading.run.assignment import Assignment, CannotGrade, load
from course_tools.grading.run.class_run import Elsewhere
from course_tools.grading.run.execute import Transcript, environment
from course_tools.grading.run.grade import course_of, executed, write_page
from course_tools.grading.run.reader import CannotRead, Reader
from course_tools.grading.run.reading import reader_of
from course_tools.grading.run.record import Entry, Records, now
from course_tools.grading.run.rounds import Rounds
from course_tools.grading.sandbox.sandbox import Limits, Warm


@dataclass(frozen=True)
class Change:
    """One student's mark of the question, before and after."""

    student: str
    before: float | None
    after: float | None

    def __str__(self) -> str:
        if self.before == self.after:
            return f"{self.student}: stays {_points(self.after)}"
        return f"{self.student}: {_points(self.before)} -> {_points(self.after)}"


@dataclass
class Regraded:
    """What became of the class.

    Attributes:
        changes: of students whose mark differs now.
        same: students who were judged again and keep their mark.
        already: students who had been judged by the mended test before.
        left: in words, who was left out and why.
        others: other questions whose tests differ from the ones that the marks were
        made with.
        late: what came late, whose penalty follows the new mark.
    """

    changes: list[Change] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    late: list[Late] = field(default_factory=list)


def regrade(
    name: str,
    question: str,
    root: Path = Path(),
    submitted: Path | None = None,
    workers: int = 1,
    isolation: str = "bubblewrap",
    limits: Limits | None = None,
    warm: Warm | Elsewhere | None = None,
    say: Callable[[str], None] = lambda words: None,
    expect: Callable[[int], None] = lambda count: None,
) -> Regraded:
    """Judge one question of every graded submission again."""
    courses = course_of(root, submitted)
    assignment = load(name, root)
    tests = [part for part in assignment.cells if part]
    if question not in tests:
        raise CannotGrade(f"{name} has no test {question}. It has: {', '.join(tests)}.")
    folder = root / courses.submitted_directory
    if not folder.is_dir():
        raise CannotGrade(f"There is no folder {folder} of submissions.")
    records = Records(courses, name)
    lines = records.done()
    found, waiting = Regraded(), []
    kept = Rounds(Path(courses.root), name, assignment.released)
    with ExitStack() as stack:
        reader = stack.enter_context(reader_of(assignment))
        for submission in collect(
            folder, name, partial(reader.ask, "prepared")
        ).submissions:
            line = lines.get(submission.student)
            if (
                line is None
                or line["submission"] != submission.digest
                or not submission.digest
            ):
                found.left.append(
                    f"{submission.student} is not graded yet, or handed in again. Run:"
                    f" course grade {name}"
                )
            elif line["problem"]:
                found.left.append(f"{submission.student} keeps 0: {line['problem']}")
            elif line.get("cells", {}).get(question) == assignment.cells[question]:
                found.already.append(submission.student)
            else:
                found.others |= _changed(line, assignment) - {question}
                waiting.append(submission)
        expect(len(waiting))
        stack.callback(records.close)
        warm = warm or stack.enter_context(Warm(isolation, (limits or Limits()).memory))
        for submission, transcript in executed(
            assignment, waiting, workers, warm, limits or Limits(), kept
        ):
            assert transcript is not None, submission.problem
            line = lines[submission.student]
            feedback = root / courses.feedback_directory
            try:
                change = _record(
                    records,
                    assignment,
                    question,
                    submission,
                    transcript,
                    line,
                    reader,
                    feedback,
                )
            except CannotRead as error:
                found.left.append(f"{submission.student} keeps the mark: {error}")
                continue
            if change.before == change.after:
                found.same.append(submission.student)
            else:
                found.changes.append(change)
            say(str(change))
        found.late = records.patiently("what came late", LateWork(courses, name).assign)
    found.changes.sort(key=lambda change: change.student)
    return found


def _changed(line: dict[str, Any], assignment: Assignment) -> set[str]:
    """The parts of an assignment that differ from what a line of the log was made with;
    all if it does not say."""
    return {
        part
        for part, digest in assignment.cells.items()
        if line.get("cells", {}).get(part) != digest
    }


def _record(
    records: Records,
    assignment: Assignment,
    question: str,
    submission: Submission,
    transcript: Transcript,
    line: dict[str, Any],
    reader: Reader,
    feedback: Path,
) -> Change:
    """Judge and record the question of one submission, and keep the rest of its
    line."""
    student, kept = submission.student, line["marks"]
    place = records.graded_notebook(student)
    before = place.read_text(encoding="utf-8") if place.is_file() else ""
    judged = reader.ask(
        "judged_again",
        student,
        submission.content["notebook"],
        asdict(transcript),
        line["notes"],
        question,
        kept,
        before,
    )
    said = transcript.marks.get(question, {}).get("tampering", "")
    only = _changed(line, assignment) <= {question}
    entry = Entry(
        time=now(), assignment=assignment.name, student=student, submission=submission.digest,  # noqa: E501
        # where other tests changed as well, the old checksum stays, and `course grade`
        # judges everything again
        tests=assignment.digest if only else line["tests"], environment=environment(),
        marks=kept | {question: judged["earned"]}, problem="", notes=judged["notes"],
        tampering=[*line["tampering"], *([said] if said and said not in line["tampering"] else [])],  # noqa: E501
        cells=line.get("cells", {}) | {question: assignment.cells[question]}, question=question,  # noqa: E501
    )  # fmt: skip
    write_page(feedback, student, assignment.name, judged["page"])
    records.write_question(entry, judged["notebook"], question, judged["earned"])
    return Change(student, kept.get(question), judged["earned"])


def _points(earned: float | None) -> str:
    return "by hand" if earned is None else f"{earned:g}"
