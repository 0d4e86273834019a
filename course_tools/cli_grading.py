"""The instructor's commands of `course`; as in `course_tools.cli`, one thin function a
command."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from course_tools.grading.sandbox.cluster import Cluster
    from course_tools.grading.sandbox.sandbox import Warm

from course_tools.grading.shown import shown
from course_tools.options import argument, flag, in_words, option

grading_app = typer.Typer()
Feedback = Literal["words", "outputs", "code"]
Name = Annotated[str, typer.Argument(help="The assignment, e.g. attention.")]
# What every command says that runs submissions.
SUBMITTED: Any = option(
    "Folder of STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb; nbgrader's by default.",
    resolve_path=True,
)
COURSE_DIR: Any = option(
    "The folder of the course, which may be any nbgrader course.",
    show_default="this one",
)
WORKERS: Any = option(
    "Submissions at a time; each takes about a core.",
    min=1,
    show_default="one a core",
    default=os.cpu_count() or 1,
)
ISOLATION: Any = option(
    "The sandbox: bubblewrap, or container, by Podman or Docker.", default="bubblewrap"
)


def say(words: object, err: bool = False) -> None:
    """Print a line in which a student's own words may stand."""
    typer.echo(shown(words, 2000), err=err)


def stop_outside_a_course(folder: Path | None = None) -> None:
    """End a command in words where no course is: all that it reads and writes lies
    beside ``nbgrader_config.py``. Go there first, if another folder is named."""
    if folder is not None:
        with in_words(OSError):
            os.chdir(folder)
    if not Path("nbgrader_config.py").is_file():
        go = "Go to the folder that holds it, beside solutions/ and submitted/"
        no = f"{Path.cwd()} is no course folder: it holds no nbgrader_config.py"
        typer.echo(f"{no}. {go}, and run this there.", err=True)
        raise typer.Exit(code=1)


def stay_with_the_edition() -> None:
    """End a command in words where the class keeps to another edition."""
    from course_tools.grading.assignments import editions

    with in_words(editions.OtherEdition, code=1):
        editions.stay_with_the_edition()


@grading_app.command()
def init(
    edition: str = option(
        "Keep it to an edition for its term, e.g. 2026.12.", default=""
    ),
) -> None:
    """Begin a class: give it hidden inputs of its own, course-secret.txt, which git
    ignores, and with --edition keep it to one, edition.txt, which release, publish and
    grade heed.

    Release each assignment after it. Keep the secret as long as the class's marks.
    """
    stop_outside_a_course()
    from course_tools.grading.assignments.comparisons import SECRET, make_secret
    from course_tools.grading.assignments.editions import OtherEdition, pin

    if edition:
        with in_words(OtherEdition, code=1):
            typer.echo(f"wrote {pin(edition)}; commit it")
    then = ("is there and stays.", "is written. Release each assignment again.")
    typer.echo(f"{SECRET} {then[make_secret(Path())]}")


@grading_app.command()
def collect(
    name: Name,
    download: Path = argument(
        "A zip or folder of Moodle, Canvas, Blackboard, or yours."
    ),
    students: Path | None = option(
        "A class list: id, first_name, last_name, email, lms_user_id."
    ),
    pattern: str = option(
        "For other platforms: a pattern as `nbgrader zip_collect` takes it.", default=""
    ),
    timezone: str = option("In which the platform writes times.", default="UTC"),
    times: Path | None = option(
        "Times, e.g. Moodle's grading worksheet, where the names have none."
    ),
    platform: str = option(
        "moodle, canvas, blackboard or folders.",
        show_default="told from the names",
        default="",
    ),
    timestamps: bool = flag(
        "Believe timestamp.txt in folders that no student can write in.", "--timestamps"
    ),
) -> None:
    """Put the notebooks of a download into submitted/, and say what is not plain about
    any of them.

    Exit status: 0, or 1 if something needs a person, or 2 if nothing could be
    collected.
    """
    stop_outside_a_course()
    from course_tools.grading.collect.collect import collect as collect_download
    from course_tools.grading.collect.roster import CannotReadRoster
    from course_tools.grading.collect.unpack import CannotUnpack
    from course_tools.grading.reports.export import CannotExport

    with in_words(CannotUnpack, CannotReadRoster, CannotExport, ValueError):
        how = platform, timestamps
        collection = collect_download(
            name, download, Path(), students, pattern, timezone, times, *how
        )
    for words in collection.notes:
        say(words)
    for one in collection.taken:
        for words in one.notes:
            say(f"{one.student}: {words}")
        if one.problem:
            say(f"{one.student}: {one.problem}", err=True)
    for stranger in collection.strangers:
        say(stranger, err=True)
    taken = [one for one in collection.taken if one.source]
    typer.echo(
        f"{len(taken)} collected, {len(collection.taken) - len(taken)} without a"
        " notebook."
    )
    if not collection.ok:
        raise typer.Exit(code=1)


@grading_app.command()
def grade(
    name: Name,
    submitted: Path | None = SUBMITTED,
    workers: int = WORKERS,
    question: str | None = option(
        "Judge only this test again, and say whose mark changed."
    ),
    dask: str | None = option(
        "A Dask cluster to run on: its scheduler, tcp://HOST:8786."
    ),
    isolation: str = ISOLATION,
    unsafe: bool = flag("Run students' code WITHOUT a sandbox, as you.", "--unsafe"),
    feedback: Feedback | None = option(
        "What is given back: words alone; what tests printed, too; hidden tests, too.",
        show_default="that of nbgrader_config.py",
    ),
    course_dir: Path | None = COURSE_DIR,
) -> None:
    """Grade every submission of an assignment that is not graded yet, each shut in by
    itself.

    Marks go into gradebook.db, graded notebooks into autograded/, a page for each
    student into feedback/, and a line for each into grading-log.jsonl. Exit status: 0,
    or 1 if something needs a person, or 2 if nothing could be graded.
    """
    stop_outside_a_course(course_dir)
    stay_with_the_edition()
    from course_tools.grading.run.one_run import AnotherRun, only_run

    way = "unsafe" if unsafe else isolation
    with in_words(AnotherRun), only_run(Path(), f"course grade {name}"):
        _grade(name, submitted, workers, question, dask, way, feedback or "")


def _grade(
    name: str,
    submitted: Path | None,
    workers: int,
    question: str | None,
    dask: str | None,
    isolation: str,
    feedback: str,
) -> None:
    from course_tools.grading.sandbox.sandbox import NoIsolation, Warm

    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # a second to import; checks URIs alone
    # imports torch while this one imports nbgrader
    warm = _on_cluster(dask, isolation) if dask else Warm(isolation)
    from course_tools.grading.assignments.source import AssignmentError
    from course_tools.grading.run.assignment import CannotGrade
    from course_tools.grading.run.grade import Report, progress, words
    from course_tools.grading.run.grade import grade as grade_class
    from course_tools.grading.run.plain_course import notebooks
    from course_tools.grading.run.record import CannotRecord
    from course_tools.grading.run.rounds import POINTS_ALONE

    if isolation == "unsafe":
        can = "can read and change all that you can"
        typer.echo(f"NO SANDBOX: students' code runs as you, and {can}.", err=True)
    with in_words(CannotGrade, CannotRecord, NoIsolation, AssignmentError):
        if question is not None:
            _regrade(name, question, submitted, workers, warm, feedback)
            return
        with warm, progress() as (tell, expect):
            run: dict[str, Any] = {"warm": warm, "say": tell, "expect": expect}
            run["feedback"] = feedback
            report = Report()
            for one in notebooks(name, Path()):
                run["notebook"] = one
                report.add(
                    grade_class(name, Path(), submitted, workers, isolation, **run)
                )
                if isinstance(warm, Warm):  # it serves one class of workers
                    run["warm"] = None
    for stranger in report.strangers:
        say(stranger, err=True)
    for result in report.results:
        if result.problem or result.tampering:
            say(words(result), err=True)
    for late in report.late:
        say(late)
    if silent := [
        result.student for result in report.results if POINTS_ALONE in result.notes
    ]:
        say(
            "Points alone, without words, since hidden rounds had begun before:"
            f" {', '.join(silent)}."
        )
    if report.there:
        say(
            "In the students' own processes, so not protected (`course report` says"
            f" why): {', '.join(report.there)}."
        )
    before = sum(result.again for result in report.results)
    typer.echo(
        f"{len(report.results) - before} graded, {before} had their marks already."
    )
    if not report.ok:
        raise typer.Exit(code=1)


def _on_cluster(address: str, isolation: str) -> "Cluster":
    from course_tools.grading.sandbox.cluster import Cluster, NoCluster

    with in_words(NoCluster):
        return Cluster(address, isolation)


def _regrade(
    name: str,
    question: str,
    submitted: Path | None,
    workers: int,
    warm: "Warm | Cluster",
    feedback: str,
) -> None:
    from course_tools.grading.run.grade import progress
    from course_tools.grading.run.plain_course import notebook_of
    from course_tools.grading.run.regrade import regrade

    with warm, progress() as (tell, expect):
        run: dict[str, Any] = {"warm": warm, "say": tell, "expect": expect}
        run |= {"feedback": feedback, "notebook": notebook_of(name, question, Path())}
        found = regrade(name, question, Path(), submitted, workers, **run)
    for words in found.left:
        say(words, err=True)
    if found.others:
        named = ", ".join(
            sorted(part or "cells that are no test" for part in found.others)
        )
        typer.echo(
            f"Changed too, and not judged: {named}. Run: course grade {name}", err=True
        )
    same, before = len(found.same), len(found.already)
    typer.echo(
        f"{len(found.changes)} marks changed, {same} stay, {before} were judged by this"
        " test before."
    )
    if found.left or found.others:
        raise typer.Exit(code=1)


@grading_app.command()
def publish(
    folder: Path = argument(
        "Where to, outside this repository; an earlier one is updated."
    ),
    names: list[str] | None = argument(
        "Assignments that students may have; all if left out.", default=None
    ),
) -> None:
    """Write the repository that students get: exercises and library, no solution, no
    test, no hidden line."""
    stay_with_the_edition()
    from course_tools.grading.assignments.publish import CannotPublish
    from course_tools.grading.assignments.publish import publish as write_repository

    with in_words(CannotPublish, code=1):
        written = write_repository(folder, names or [])
    typer.echo(
        f"{len(written)} files in {folder}. No line of a solution or a hidden test was"
        " found in them."
    )
