"""`course grade NAME --question ID`: judge one mended question of the class again.

A submission is run whole, because later cells stand on earlier ones; of what comes out
only the question's mark is kept. All other marks stay as they were, be it that a run
today would give others. Who has the new mark already is not run again, so this command,
too, can be killed at any moment.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from course_tools.grading.collect.intake import Submission
from course_tools.grading.collect.late import Late
from course_tools.grading.run.assignment import Assignment, CannotGrade
from course_tools.grading.run.class_run import Elsewhere
from course_tools.grading.run.execute import Transcript, environment
from course_tools.grading.run.grade import Cohort
from course_tools.grading.run.judge import written
from course_tools.grading.run.reader import CannotRead, Reader
from course_tools.grading.run.record import Entry, now
from course_tools.grading.sandbox.sandbox import Limits, Warm


@dataclass(frozen=True)
class Change:
    """One student's mark of the question, before and after."""

    student: str
    before: float | None
    after: float | None

    def __str__(self) -> str:
        before, after = written(self.before), written(self.after)
        change = f"{before} -> {after}" if self.before != self.after else None
        return f"{self.student}: {change or f'stays {after}'}"


@dataclass
class Regraded:
    """What became of the class."""

    changes: list[Change] = field(default_factory=list)  # marks that differ now
    same: list[str] = field(default_factory=list)  # who keep their mark
    already: list[str] = field(default_factory=list)  # judged so before
    left: list[str] = field(default_factory=list)  # who was left out and why
    others: set[str] = field(default_factory=set)  # questions with other tests, too
    late: list[Late] = field(default_factory=list)  # with their new penalty


def regrade(
    name: str,
    question: str,
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
) -> Regraded:
    """Judge one question of every graded submission again."""
    them, limits = Cohort(name, root, submitted, feedback, notebook), limits or Limits()
    them.split(isolation, limits, warm)
    assignment = them.assignment
    tests = [part for part in assignment.cells if part]
    if question not in tests:
        raise CannotGrade(f"{name} has no test {question}. It has: {', '.join(tests)}.")
    lines = them.records.done()
    found, waiting = Regraded(), []
    with ExitStack() as stack:
        reader, collected = stack.enter_context(them.read())
        for one in collected.submissions:
            line = lines.get(one.student)
            if not line or line["submission"] != one.digest or not one.digest:
                new = f"{one.student} is not graded yet, or handed in again."
                found.left.append(f"{new} Run: course grade {name}")
            elif line["problem"]:
                found.left.append(f"{one.student} keeps 0: {line['problem']}")
            elif line.get("cells", {}).get(question) == assignment.cells[question]:
                found.already.append(one.student)
            else:
                found.others |= _changed(line, assignment) - {question}
                waiting.append(one)
        expect(len(waiting))
        warm = warm or stack.enter_context(Warm(isolation, limits.memory))
        for one, transcript in them.executed(waiting, workers, warm, limits):
            assert transcript is not None, one.problem
            line = lines[one.student]
            try:
                change = _record(them, question, one, transcript, line, reader)
            except CannotRead as error:
                found.left.append(f"{one.student} keeps the mark: {error}")
                continue
            if change.before == change.after:
                found.same.append(one.student)
            else:
                found.changes.append(change)
            say(str(change))
        found.late = them.records.patiently("what came late", them.late.assign)
    found.changes.sort(key=lambda change: change.student)
    return found


def _changed(line: dict[str, Any], assignment: Assignment) -> set[str]:
    """The parts that differ from what a line was made with; all if it is silent."""
    before = line.get("cells", {})
    return {part for part, now in assignment.cells.items() if before.get(part) != now}


def _record(
    them: Cohort,
    question: str,
    submission: Submission,
    transcript: Transcript,
    line: dict[str, Any],
    reader: Reader,
) -> Change:
    """Judge and record one question of a submission; keep the rest of its line."""
    student, kept, assignment = submission.student, line["marks"], them.assignment
    place = them.records.graded_notebook(student)
    before = place.read_text(encoding="utf-8") if place.is_file() else ""
    ran = submission.content["notebook"], asdict(transcript), line["notes"]
    judged = reader.ask("judged_again", student, *ran, question, kept, before)
    tampering = list(line["tampering"])
    said = transcript.marks.get(question, {}).get("tampering", "")
    if said not in ("", *tampering):
        tampering.append(said)
    only = _changed(line, assignment) <= {question}
    entry = Entry(
        time=now(),
        assignment=assignment.title,
        student=student,
        submission=submission.digest,
        # where other tests changed as well, the old checksum stays, and `course grade`
        # judges everything again
        tests=assignment.digest if only else line["tests"],
        environment=environment(),
        marks=kept | {question: judged["earned"]},
        problem="",
        notes=judged["notes"],
        tampering=tampering,
        cells=line.get("cells", {}) | {question: assignment.cells[question]},
        question=question,
    )
    them.write_page(student, judged["page"])
    them.records.write_question(entry, judged["notebook"], question, judged["earned"])
    return Change(student, kept.get(question), judged["earned"])
