"""`course grade`: collect, sanitise, execute, judge, record, report; each step is a module of its own.

Work that is recorded is not done again: a submission whose bytes, and an assignment whose tests, are those of the
log's line has its marks. So the command can be killed at any moment and started again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import is_grade

from course_lib.grading import flaky
from course_lib.grading.check import read_released
from course_lib.grading.check_run import as_graded
from course_lib.grading.check_structure import grade_id, structure_problems
from course_lib.grading.class_run import Elsewhere, run_class
from course_lib.grading.device_run import on_what_it_asks_for
from course_lib.grading.environment import environment
from course_lib.grading.execute import Transcript
from course_lib.grading.feedback import page
from course_lib.grading.intake import Submission, collect
from course_lib.grading.judge import Mark, judge
from course_lib.grading.late import Late, LateWork
from course_lib.grading.plan import flaky_tests, steps
from course_lib.grading.record import Entry, Records, now
from course_lib.grading.release import course_settings
from course_lib.grading.sandbox import Limits, NoIsolation, Warm
from course_lib.grading.source import read_source
from course_lib.whole_file import write_whole

#: What the restored notebook makes good, and a person should know of.
TOLD = ("deleted", "duplicated", "retyped", "altered", "tampered", "moved", "tagged", "unknown", "unmarked")
#: Python 3.11's ast.parse fails now and then when two threads are in it ("AST constructor recursion depth mismatch").
PARSING = threading.Lock()
VERSION = "1"  # of the rules by which marks are made; a new one grades everybody again


class CannotGrade(Exception):
    """There is nothing to grade, or nothing to grade it with; the text says why and what to do."""


@dataclass(frozen=True)
class Assignment:
    """The instructor's notebook, the released one, the files beside it, and a checksum of all, and of each test."""

    name: str
    instructor: NotebookNode
    released: NotebookNode
    files: dict[str, bytes]
    digest: str
    cells: dict[str, str] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """What its header asks for (:mod:`course_lib.grading.device_run`)."""
        return str(self.instructor.metadata.get("course", {}).get("device", ""))

    @property
    def tests(self) -> list[NotebookNode]:
        """Its graded cells, as released."""
        return [cell for cell in self.released.cells if is_grade(cell)]


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
        return not self.strangers and not any(result.problem or result.tampering for result in self.results)


def load(name: str, root: Path) -> Assignment:
    """Read an assignment as the grader needs it.

    Raises:
        CannotGrade: its source or its release is missing.
    """
    source, released = root / "solutions" / name / f"{name}.py", root / "exercises" / name / f"{name}.ipynb"
    notebook = source.with_suffix(".ipynb")
    if not released.is_file() or not (source.is_file() or notebook.is_file()):
        raise CannotGrade(f"There is no assignment {name} that was released here. Run: course release {name}")
    instructor = read_source(source) if source.is_file() else nbformat.read(notebook, as_version=4)
    files = {
        path.name: path.read_bytes()
        for path in sorted(released.parent.iterdir())
        if path.is_file() and path.suffix not in (".ipynb", ".py")
    }
    digest = hashlib.sha256(VERSION.encode())
    digest.update(json.dumps([instructor.cells, read_released(released).cells], sort_keys=True).encode())
    for file in sorted(files):
        digest.update(file.encode() + hashlib.sha256(files[file]).digest())
    cells = _checksums(instructor, read_released(released), files)
    return Assignment(name, instructor, read_released(released), files, digest.hexdigest(), cells)


def _checksums(instructor: NotebookNode, released: NotebookNode, files: dict[str, bytes]) -> dict[str, str]:
    """By question, a checksum of its test; under "" one of all that every mark depends on."""
    tests = {grade_id(cell) for cell in released.cells if is_grade(cell) and not cell.metadata.nbgrader.get("solution")}
    parts: dict[str, Any] = {"": [VERSION, *(hashlib.sha256(files[file]).hexdigest() for file in sorted(files))]}
    for cell in [*instructor.cells, *released.cells]:
        name = grade_id(cell)
        parts.setdefault(name if name in tests and name is not None else "", []).append(cell)
    return {
        name: hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16] for name, part in parts.items()
    }


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
    """Grade every submission of an assignment that is not graded yet.

    Args:
        name: the assignment.
        root: the course folder, where ``nbgrader_config.py`` stands.
        submitted: the folder of submissions; nbgrader's by default.
        workers: submissions at a time.
        isolation: the name of a rung of :mod:`course_lib.grading.isolation`, or "unsafe" for none at all.
        limits: what a submission may use.
        warm: a process that imports torch already, or a cluster; a process is started if there is none.
        say: hears a line for each submission.
        expect: hears first how many there will be.

    Returns:
        What became of each.

    Raises:
        CannotGrade: there is no such assignment, or no folder of submissions.
        CannotRecord: the gradebook does not know the assignment, or cannot be written.
        NoIsolation: this machine cannot shut submissions in.
    """
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
        if line["submission"] and line["tests"] == assignment.digest and student in present
    }
    collected = collect(folder, name, graded)
    report = Report(strangers=collected.strangers)
    waiting = []
    for submission in collected.submissions:
        line = before.get(submission.student)
        if line and submission.digest and submission.digest == graded.get(submission.student):
            earned = sum(mark or 0.0 for mark in line["marks"].values())
            report.results.append(Result(submission.student, earned, _most(assignment), line["problem"], again=True))
        else:
            waiting.append(submission)
    expect(len(waiting))
    with ExitStack() as stack:
        stack.callback(records.close)
        warm = warm or stack.enter_context(Warm(isolation, (limits or Limits()).memory))
        for submission, transcript in executed(assignment, waiting, workers, warm, limits or Limits()):
            submission.notes += late.words(submission.student)
            result = _record(records, assignment, submission, transcript, root / courses.feedback_directory)
            report.results.append(result)
            say(f"{len(report.results)} of {len(collected.submissions)}: {words(result)}")
        report.late = records.patiently("what came late", late.assign)
    report.results.sort(key=lambda result: result.student)
    return report


def course_of(root: Path, submitted: Path | None = None) -> CourseDirectory:
    """The course as nbgrader sees it, with another folder of submissions if one is named; times lie there too."""
    courses = CourseDirectory(config=course_settings(root))
    if submitted is not None:  # nbgrader joins it to the course's folder
        courses.submitted_directory = os.path.relpath(submitted.resolve(), root.resolve())
    return courses


def words(result: Result) -> str:
    """One line about a result."""
    what = f"{result.student}: {result.earned:g} of {result.points:g}"
    return " ".join([what, *([result.problem] if result.problem else []), *result.tampering])


def _most(assignment: Assignment) -> float:
    return float(sum(cell.metadata.nbgrader.points for cell in assignment.tests))


def executed(
    assignment: Assignment, submissions: list[Submission], workers: int, warm: Warm | Elsewhere, limits: Limits
) -> Iterator[tuple[Submission, Transcript | None]]:
    """Run submissions to an assignment, as :func:`course_lib.grading.class_run.run_class` does."""
    plan, chancy = partial(plan_of, assignment), flaky_tests(assignment.instructor)
    wish = assignment.device if any(not submission.problem for submission in submissions) else ""
    with on_what_it_asks_for(wish, warm, limits.memory) as runs:
        yield from run_class(submissions, plan, assignment.files, workers, runs, limits, chancy)


def plan_of(assignment: Assignment, submission: Submission) -> list[dict[str, Any]]:
    """Say which cells of a submission run where, and in which order."""
    notebook = submission.notebook
    assert notebook is not None, submission.problem
    with PARSING:
        restored = as_graded(notebook, assignment.released)
        return steps(assignment.instructor, assignment.released, restored)


def _record(
    records: Records,
    assignment: Assignment,
    submission: Submission,
    transcript: Transcript | None,
    feedback: Path,
) -> Result:
    """Judge, record and report one submission."""
    notes, tampering, judged = list(submission.notes), [], None
    notebook = submission.notebook
    if notebook is None or transcript is None:
        marks = [
            Mark(str(grade_id(cell)), float(cell.metadata.nbgrader.points), 0.0, submission.problem)
            for cell in assignment.tests
        ]
    else:
        with PARSING:
            problems = structure_problems(notebook, assignment.released)
            restored = as_graded(notebook, assignment.released)
        notes += [problem.message for problem in problems if problem.kind in TOLD]
        judged, marks = judge(restored, transcript)
        tampering = [said["tampering"] for said in transcript.marks.values() if said["tampering"]]
        notes += flaky.words(transcript)
        if transcript.trouble:
            notes.append(transcript.trouble)
        if transcript.over:
            notes.append(f"The submission's processes took together {transcript.over}, and were ended.")
    entry = Entry(
        time=now(), assignment=assignment.name, student=submission.student, submission=submission.digest,
        tests=assignment.digest, environment=environment(), marks={mark.cell: mark.earned for mark in marks},
        problem=submission.problem, notes=notes, tampering=tampering, cells=assignment.cells,
    )  # fmt: skip
    told = [*([submission.problem] if submission.problem else []), *notes]
    place = feedback / submission.student / assignment.name / f"{assignment.name}.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, page(assignment.name, submission.student, marks, told))
    records.write(entry, judged, marks)
    earned, points = sum(mark.earned or 0.0 for mark in marks), sum(mark.points for mark in marks)
    seconds = transcript.seconds if transcript else 0.0
    return Result(submission.student, earned, points, submission.problem, notes, tampering, seconds)


__all__ = ["Assignment", "CannotGrade", "NoIsolation", "Report", "Result", "grade", "load", "words"]
