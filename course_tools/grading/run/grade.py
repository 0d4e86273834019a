"""`course grade`: collect, sanitise, execute, judge, record, report; each step is a
module of its own.

Work that is recorded is not done again: a submission whose bytes, and an assignment
whose tests, are those of the log's line has its marks. So the command can be killed at
any moment and started again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from io import TextIOBase
from pathlib import Path
from typing import Any

import typer
from nbgrader.coursedir import CourseDirectory
from tqdm import tqdm

from course_lib._files import write_whole
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.collect.intake import Submission, collect
from course_tools.grading.collect.late import Late, LateWork
from course_tools.grading.run.assignment import Assignment, CannotGrade, load
from course_tools.grading.run.class_run import Elsewhere, on_what_it_asks_for, run_class
from course_tools.grading.run.execute import Steps, Transcript, environment
from course_tools.grading.run.judge import Mark, page
from course_tools.grading.run.plan import flaky_tests
from course_tools.grading.run.reader import CannotRead, Reader
from course_tools.grading.run.reading import reader_of
from course_tools.grading.run.record import Entry, Records, now
from course_tools.grading.run.rounds import Rounds
from course_tools.grading.sandbox.sandbox import Limits, NoIsolation, Warm
from course_tools.grading.shown import shown


@dataclass
class Result:
    """What became of one submission."""

    student: str
    earned: float
    points: float
    problem: str = ""
    notes: list[str] = field(default_factory=list)
    tampering: list[str] = field(default_factory=list)
    seconds: float = 0.0
    again: bool = False


@dataclass
class Report:
    """What became of the class."""

    results: list[Result] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing needs a person."""
        return not self.strangers and not any(
            result.problem or result.tampering for result in self.results
        )


def grade(
    name: str,
    root: Path = Path(),
    submitted: Path | None = None,
    workers: int = 1,
    isolation: str = "bubblewrap",
    limits: Limits | None = None,
    warm: Warm | Elsewhere | None = None,
    say: Callable[[str], None] = lambda words: None,
    expect: Callable[[int], None] = lambda count: None,
) -> Report:
    """Grade every submission of an assignment that is not graded yet."""
    courses = course_of(root, submitted)
    assignment = load(name, root)
    folder = root / courses.submitted_directory
    if not folder.is_dir():
        raise CannotGrade(f"There is no folder {folder} of submissions.")
    records, late = Records(courses, name), LateWork(courses, name)
    before, present = records.done(), records.in_gradebook()
    graded = {
        student: line["submission"]
        for student, line in before.items()
        if line["submission"]
        and line["tests"] == assignment.digest
        and student in present
    }
    kept = Rounds(Path(courses.root), name, assignment.released)
    with ExitStack() as stack:
        reader = stack.enter_context(reader_of(assignment))
        collected = collect(folder, name, partial(reader.ask, "prepared"), graded)
        report = Report(strangers=collected.strangers)
        waiting = []
        for submission in collected.submissions:
            line = before.get(submission.student)
            if (
                line
                and submission.digest
                and submission.digest == graded.get(submission.student)
            ):
                earned = sum(mark or 0.0 for mark in line["marks"].values())
                report.results.append(
                    Result(
                        submission.student,
                        earned,
                        assignment.points,
                        line["problem"],
                        again=True,
                    )
                )
            else:
                waiting.append(submission)
        expect(len(waiting))
        stack.callback(records.close)
        warm = warm or stack.enter_context(Warm(isolation, (limits or Limits()).memory))
        for submission, transcript in executed(
            assignment, waiting, workers, warm, limits or Limits(), kept
        ):
            submission.notes += late.words(submission.student)
            result = _record(
                records,
                assignment,
                submission,
                transcript,
                reader,
                root / courses.feedback_directory,
            )
            report.results.append(result)
            say(
                f"{len(report.results)} of {len(collected.submissions)}:"
                f" {words(result)}"
            )
        report.late = records.patiently("what came late", late.assign)
    report.results.sort(key=lambda result: result.student)
    return report


def course_of(root: Path, submitted: Path | None = None) -> CourseDirectory:
    """The course as nbgrader sees it, with another folder of submissions if one is
    named; times lie there too."""
    courses = CourseDirectory(config=course_settings(root))
    if submitted is not None:  # nbgrader joins it to the course's folder
        courses.submitted_directory = os.path.relpath(
            submitted.resolve(), root.resolve()
        )
    return courses


def words(result: Result) -> str:
    """One line about a result."""
    what = f"{result.student}: {result.earned:g} of {result.points:g}"
    return " ".join(
        [what, *([result.problem] if result.problem else []), *result.tampering]
    )


def executed(
    assignment: Assignment,
    submissions: list[Submission],
    workers: int,
    warm: Warm | Elsewhere,
    limits: Limits,
    kept: Rounds,
) -> Iterator[tuple[Submission, Transcript | None]]:
    """Run submissions to an assignment, as
    :func:`course_tools.grading.run.class_run.run_class` does."""
    plan, chancy = _plan, flaky_tests(assignment.instructor)
    wish = (
        assignment.device
        if any(not submission.problem for submission in submissions)
        else ""
    )
    with on_what_it_asks_for(wish, warm, limits.memory) as runs:
        yield from run_class(
            submissions, plan, assignment.files, workers, runs, limits, chancy, kept
        )


def _plan(submission: Submission) -> Steps:
    """Which cells of a submission run where, and in which order."""
    plan: Steps = submission.content["steps"]
    return plan


def _record(
    records: Records,
    assignment: Assignment,
    submission: Submission,
    transcript: Transcript | None,
    reader: Reader,
    feedback: Path,
) -> Result:
    """Judge, record and report one submission."""
    student, told = submission.student, transcript or Transcript()
    judged: dict[str, Any] | None = None
    if transcript is not None:
        notes = [*submission.notes, *submission.content["notes"]]
        try:
            judged = reader.ask(
                "judged", student, submission.content["notebook"], asdict(told), notes
            )
        except CannotRead as error:
            submission.problem = str(error)
    if judged is not None:
        notes = judged["notes"]
        marks = [Mark(**mark) for mark in judged["marks"]]
        text = judged["page"]
    else:
        notes = submission.notes
        questions = {
            str(grade_id(cell)): float(cell.metadata.nbgrader.points)
            for cell in assignment.tests
        }
        marks = [
            Mark(name, points, 0.0, submission.problem)
            for name, points in questions.items()
        ]
        text = page(assignment.name, student, marks, [submission.problem, *notes])
    tampering = [
        shown(said["tampering"]) for said in told.marks.values() if said["tampering"]
    ]
    entry = Entry(
        time=now(), assignment=assignment.name, student=student, submission=submission.digest,  # noqa: E501
        tests=assignment.digest, environment=environment(), marks={mark.cell: mark.earned for mark in marks},  # noqa: E501
        problem=submission.problem, notes=notes, tampering=tampering, cells=assignment.cells,  # noqa: E501
    )  # fmt: skip
    write_page(feedback, student, assignment.name, text)
    notebook, unanswered = (
        (judged["notebook"], judged["unanswered"]) if judged else (None, [])
    )
    records.write(entry, notebook, marks, unanswered)
    earned = sum(mark.earned or 0.0 for mark in marks)
    points = sum(mark.points for mark in marks)
    return Result(
        student, earned, points, submission.problem, notes, tampering, told.seconds
    )


def write_page(feedback: Path, student: str, assignment: str, text: str) -> None:
    """Write what a student gets to read."""
    place = feedback / student / assignment / f"{assignment}.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, text)


__all__ = [
    "Assignment",
    "CannotGrade",
    "NoIsolation",
    "Report",
    "Result",
    "grade",
    "load",
    "words",
]


MOST = 2000  # letters of a line on the terminal


@contextmanager
def progress(
    stream: TextIOBase | None = None,
) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """Show a bar with the time that is left while submissions are graded."""
    with tqdm(
        file=stream or sys.stderr,
        disable=None,
        unit="submission",
        dynamic_ncols=True,
        smoothing=0.1,
    ) as bar:

        def expect(count: int) -> None:
            bar.reset(total=count)

        def say(words: str) -> None:
            words = shown(words, MOST)
            if bar.disable:
                typer.echo(words)
            else:
                bar.write(words)
                bar.update()

        yield say, expect
