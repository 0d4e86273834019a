"""`course grade`: collect, sanitise, execute, judge, record, report.

Work that is recorded is not done again: a submission whose bytes, and an assignment
whose tests, are those of the log's line has its marks. So the command can be killed at
any moment and started again.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from io import TextIOBase
from pathlib import Path
from typing import Any

import typer
from nbgrader.coursedir import CourseDirectory
from tqdm import tqdm

from course_lib.files import write_whole
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.collect.intake import NOBODY, Collected, Submission, collect
from course_tools.grading.collect.late import Late, LateWork
from course_tools.grading.run.assignment import CannotGrade
from course_tools.grading.run.class_run import Elsewhere, on_what_it_asks_for, run_class
from course_tools.grading.run.execute import Steps, Transcript, environment
from course_tools.grading.run.judge import Mark, page
from course_tools.grading.run.plain_course import load_notebook
from course_tools.grading.run.plan import flaky_tests
from course_tools.grading.run.reader import CannotRead, Reader
from course_tools.grading.run.reading import reader_of
from course_tools.grading.run.record import Entry, Records, now
from course_tools.grading.run.rounds import Rounds
from course_tools.grading.run.split import with_split
from course_tools.grading.sandbox.sandbox import Limits, Warm
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
    notebook: str = ""  # of an assignment that has several
    again: bool = False


@dataclass
class Report:
    """What became of the class."""

    results: list[Result] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    there: list[str] = field(default_factory=list)  # tests in students' own processes

    def add(self, more: "Report") -> None:
        """Add what became of another notebook of the assignment."""
        self.results += more.results
        self.strangers += [one for one in more.strangers if one not in self.strangers]
        self.late, self.there = more.late, self.there + more.there

    @property
    def ok(self) -> bool:
        """Whether nothing needs a person."""
        faulty = [one for one in self.results if one.problem or one.tampering]
        return not self.strangers and not faulty


Reading = tuple[Reader, Collected]


class Cohort:
    """The submissions to an assignment that lie in a course folder."""

    def __init__(
        self,
        name: str,
        root: Path,
        submitted: Path | None,
        feedback: str,
        notebook: str = "",
    ) -> None:
        courses = course_of(root, submitted)
        told = feedback or courses.config.GiveBack.get("feedback", "words")
        one = load_notebook(name, notebook, root)
        self.assignment, self.root = replace(one, feedback=told), root
        self.folder = root / courses.submitted_directory
        if not self.folder.is_dir():
            raise CannotGrade(f"There is no folder {self.folder} of submissions.")
        self.feedback = root / courses.feedback_directory
        self.records = Records(courses, name, notebook)
        self.late = LateWork(courses, name)
        self.kept = Rounds(Path(courses.root), one.title, one.released)

    def split(
        self, isolation: str, limits: Limits, warm: Warm | Elsewhere | None
    ) -> None:
        """Decide where the tests of a plain course run."""
        about = self.assignment, self.root, isolation, limits, warm
        self.assignment = with_split(*about)

    @contextmanager
    def read(self, graded: Mapping[str, str] = NOBODY) -> Iterator[Reading]:
        """Read all that is not graded yet, and let go of what was opened for it."""
        with reader_of(self.assignment) as reader, closing(self.records):
            ask = partial(reader.ask, "prepared")
            about = self.folder, self.assignment.name, ask, graded
            yield reader, collect(*about, self.assignment.notebook)

    def executed(
        self,
        submissions: list[Submission],
        workers: int,
        warm: Warm | Elsewhere,
        limits: Limits,
    ) -> Iterator[tuple[Submission, Transcript | None]]:
        """Run submissions, as :func:`run_class` does."""
        assignment = self.assignment
        runnable = any(not submission.problem for submission in submissions)
        files, chancy = assignment.files, flaky_tests(assignment.instructor)
        wish = assignment.device if runnable else ""
        with on_what_it_asks_for(wish, warm, limits.memory) as runs:
            yield from run_class(
                submissions, _plan, files, workers, runs, limits, chancy, self.kept
            )

    def write_page(self, student: str, text: str) -> None:
        """Write what a student gets to read."""
        name = self.assignment.name
        notebook = self.assignment.notebook or name
        place = self.feedback / student / name / f"{notebook}.html"
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, text)
        # what nbgrader's exchange asks for when it hands the page back
        for beside in ("timestamp.txt", "submission_secret.txt"):
            kept = self.folder / student / name / beside
            if kept.is_file() and not kept.is_symlink():
                shutil.copyfile(kept, place.with_name(beside))


def grade(
    name: str,
    root: Path = Path(),
    submitted: Path | None = None,
    workers: int = 1,
    isolation: str = "bubblewrap",
    feedback: str = "",
    limits: Limits | None = None,
    warm: Warm | Elsewhere | None = None,
    say: Callable[[str], None] = lambda words: None,
    expect: Callable[[int], None] = lambda count: None,
    notebook: str = "",
) -> Report:
    """Grade every submission of an assignment that is not graded yet; of one with
    several notebooks, one of them."""
    them, limits = Cohort(name, root, submitted, feedback, notebook), limits or Limits()
    them.split(isolation, limits, warm)
    before, present = them.records.done(), them.records.in_gradebook()
    graded = {
        student: line["submission"]
        for student, line in before.items()
        if line["tests"] == them.assignment.digest and student in present
    }
    with ExitStack() as stack:
        reader, collected = stack.enter_context(them.read(graded))
        split = them.assignment.split
        there = [*split.there] if split else []
        report = Report(strangers=collected.strangers, there=there)
        waiting = []
        for one in collected.submissions:
            if one.digest and one.digest == graded.get(one.student):
                line, points = before[one.student], them.assignment.points
                earned = sum(mark or 0.0 for mark in line["marks"].values())
                report.results.append(
                    Result(one.student, earned, points, line["problem"], again=True)
                )
            else:
                waiting.append(one)
        expect(len(waiting))
        warm = warm or stack.enter_context(Warm(isolation, limits.memory))
        for one, transcript in them.executed(waiting, workers, warm, limits):
            one.notes += them.late.words(one.student)
            result = _record(them, one, transcript, reader)
            report.results.append(result)
            count = f"{len(report.results)} of {len(collected.submissions)}"
            say(f"{count}: {words(result)}")
        report.late = them.records.patiently("what came late", them.late.assign)
    report.results.sort(key=lambda result: result.student)
    return report


def course_of(root: Path, submitted: Path | None = None) -> CourseDirectory:
    """The course as nbgrader sees it, with another folder of submissions if named."""
    courses = CourseDirectory(config=course_settings(root))
    if submitted is not None:  # nbgrader joins it to the course's folder
        there = os.path.relpath(submitted.resolve(), root.resolve())
        courses.submitted_directory = there
    return courses


def words(result: Result) -> str:
    """One line about a result."""
    what = f"{result.student}: {result.earned:g} of {result.points:g}"
    what += f" in {result.notebook}" if result.notebook else ""
    return " ".join(filter(None, [what, result.problem, *result.tampering]))


def _plan(submission: Submission) -> Steps:
    """Which cells of a submission run where, and in which order."""
    plan: Steps = submission.content["steps"]
    return plan


def _record(
    them: Cohort, submission: Submission, transcript: Transcript | None, reader: Reader
) -> Result:
    """Judge, record and report one submission."""
    assignment, student = them.assignment, submission.student
    told = transcript or Transcript()
    judged: dict[str, Any] = {}
    if transcript is not None:
        content = submission.content
        notes = [*submission.notes, *content["notes"]]
        try:
            judged = reader.ask(
                "judged", student, content["notebook"], asdict(told), notes
            )
        except CannotRead as error:
            submission.problem = str(error)
    if judged:
        notes = judged["notes"]
        marks = [Mark(**mark) for mark in judged["marks"]]
        text = judged["page"]
    else:
        notes, problem = submission.notes, submission.problem
        points_of = [
            (grade_id(c), c.metadata.nbgrader.points) for c in assignment.tests
        ]
        marks = [Mark(str(name), float(p), 0.0, problem) for name, p in points_of]
        text = page(assignment, student, marks, [problem, *notes])
    suspect = [said["tampering"] for said in told.marks.values() if said["tampering"]]
    tampering = [*map(shown, suspect)]
    entry = Entry(
        time=now(),
        assignment=assignment.title,
        student=student,
        submission=submission.digest,
        tests=assignment.digest,
        environment=environment(),
        marks={mark.cell: mark.earned for mark in marks},
        problem=submission.problem,
        notes=notes,
        tampering=tampering,
        cells=assignment.cells,
    )
    them.write_page(student, text)
    unanswered = judged.get("unanswered", [])
    them.records.write(entry, judged.get("notebook"), marks, unanswered)
    earned = sum(mark.earned or 0.0 for mark in marks)
    points = sum(mark.points for mark in marks)
    return Result(
        student,
        earned,
        points,
        submission.problem,
        notes,
        tampering,
        told.seconds,
        assignment.notebook,
    )


MOST = 2000  # letters of a line on the terminal


@contextmanager
def progress(
    stream: TextIOBase | None = None,
) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """Show a bar with the time that is left while submissions are graded."""
    look: dict[str, Any] = {"disable": None, "dynamic_ncols": True, "smoothing": 0.1}
    with tqdm(file=stream or sys.stderr, unit="submission", **look) as bar:

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
