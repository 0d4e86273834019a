"""The instructor's commands of `course` once there are marks; as in
`course_tools.cli_grading`, one thin function a command."""

from pathlib import Path

import typer

from course_tools.cli_grading import (
    COURSE_DIR,
    ISOLATION,
    SUBMITTED,
    WORKERS,
    Name,
    grade,
    grading_app,
    say,
    stop_outside_a_course,
)
from course_tools.options import in_words, option


@grading_app.command()
def export(
    name: Name,
    to: str = option("canvas, moodle, blackboard, csv or gradescope.", default="csv"),
    into: Path | None = option(
        "A platform's own table, whose column of this assignment is filled.",
        resolve_path=True,
    ),
    course_dir: Path | None = COURSE_DIR,
) -> None:
    """Write the marks into exports/, in the form that a learning platform takes."""
    stop_outside_a_course(course_dir)
    from course_tools.grading.reports.export import CannotExport
    from course_tools.grading.reports.export import export as write_export
    from course_tools.grading.run.record import CannotRecord

    with in_words(CannotExport, CannotRecord):
        exported = write_export(name, to, Path(), into)
    for note in exported.notes:
        say(note, err=True)
    typer.echo(exported.place)


@grading_app.command()
def replay(name: Name, course_dir: Path | None = COURSE_DIR) -> None:
    """Build the marks again from grading-log.jsonl alone, and say whether gradebook.db
    holds the same.

    Exit status: 0 if log and gradebook hold, 1 if one does not, 2 if there is nothing
    to compare.
    """
    stop_outside_a_course(course_dir)
    from course_tools.grading.run.assignment import CannotGrade
    from course_tools.grading.run.plain_course import notebooks
    from course_tools.grading.run.record import CannotRecord, Replay
    from course_tools.grading.run.record import replay as replay_log

    found = Replay()
    with in_words(CannotRecord, CannotGrade):
        for notebook in notebooks(name, Path()):
            found.add(replay_log(name, notebook=notebook))
    for words in [*found.faults, *found.differences]:
        say(words, err=True)
    differ = f"{len(found.differences)} differ from the gradebook"
    held = differ if found.differences else "as in the gradebook"
    typer.echo(f"{found.count} lines, {len(found.marks)} students, marks {held}.")
    if not found.ok:
        raise typer.Exit(code=1)


@grading_app.command()
def report(
    name: Name,
    earlier: list[Path] | None = option(
        "A folder of an earlier class, STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb, to look"
        " for copies from; may be given more than once.",
        resolve_path=True,
    ),
    course_dir: Path | None = COURSE_DIR,
) -> None:
    """Write a page on how the class did, question by question, and on what a person
    should look at."""
    stop_outside_a_course(course_dir)
    from course_tools.grading.check.check import CannotCheck
    from course_tools.grading.reports.class_report import report as write_report
    from course_tools.grading.run.assignment import CannotGrade
    from course_tools.grading.run.record import CannotRecord

    with in_words(CannotRecord, CannotCheck, CannotGrade):
        typer.echo(write_report(name, earlier=earlier or ()))


@grading_app.command()
def viva(
    name: Name,
    submitted: Path | None = SUBMITTED,
    workers: int = WORKERS,
    isolation: str = ISOLATION,
    course_dir: Path | None = COURSE_DIR,
) -> None:
    """Write into viva/NAME/, for each submission, a sheet of questions on the student's
    own code, and its key.

    Exit status: 0, or 1 if a submission has fewer than three questions, or 2 if nothing
    could be run.
    """
    stop_outside_a_course(course_dir)
    from course_tools.grading.assignments.source import AssignmentError
    from course_tools.grading.run.assignment import CannotGrade
    from course_tools.grading.run.plain_course import notebooks
    from course_tools.grading.sandbox.sandbox import NoIsolation
    from course_tools.grading.viva.viva import viva as write_sheets

    lacking, run = 0, (Path(), submitted, workers, isolation)
    with in_words(CannotGrade, NoIsolation, AssignmentError):
        for notebook in notebooks(name, Path()):
            for one in write_sheets(name, *run, notebook):
                lacking += bool(one.problem)
                words = f"{one.student}: {len(one.questions)} questions. {one.problem}"
                say(words.strip(), err=bool(one.problem))
    if lacking:
        raise typer.Exit(code=1)


#: The command `course-grade`, for those who have another course and none of ours.
course_grade = typer.Typer(no_args_is_help=True)
for command in (grade, report, viva, replay, export):
    course_grade.command()(command)
