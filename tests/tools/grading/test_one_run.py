"""Finding F13: of two runs in one course folder the second is told; a killed one keeps
nobody out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from classroom import REPOSITORY
from typer.testing import CliRunner

from course_tools.cli import app
from course_tools.grading.run.one_run import LOCK, AnotherRun, only_run

HOLD = """
import sys
from pathlib import Path
from course_tools.grading.run.one_run import only_run
with only_run(Path(sys.argv[1]), "course grade mini"):
    print("held", flush=True)
    sys.stdin.read()
"""
WITHOUT_LOCKS = """
import sys
from pathlib import Path
sys.modules["fcntl"] = None  # as on Windows: to import it is an ImportError
from typer.testing import CliRunner
from course_tools.cli import app
from course_tools.grading.check import check_run
from course_tools.grading.run import one_run
done = CliRunner().invoke(app, ["check", "nothing.ipynb"])
assert "There is no file" in done.stderr, done
try:
    with one_run.only_run(Path(), "course grade mini"):
        raise SystemExit("held")
except one_run.AnotherRun as error:
    print(error)
"""


def started(program: str, *arguments: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def other(course):
    """Another process that grades in the course folder."""
    with started(HOLD, str(course), folder=course) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize(
    "more", [[], ["--question", "margin-tests"], ["--unsafe"]], ids=" ".join
)
def test_a_second_run_is_told_who_grades_where(course, other, more, monkeypatch):
    monkeypatch.chdir(course)
    told = CliRunner().invoke(app, ["grade", "mini", *more])
    assert told.exit_code == 2
    assert (
        f"Another run is going on in {course}: course grade mini, process"
        f" {other.pid} on " in told.stderr
    )
    assert "Wait until it is over" in told.stderr
    assert [
        path.name for path in course.iterdir() if path.name.endswith(".jsonl")
    ] == []


def test_a_run_that_was_killed_keeps_nobody_out(course, other):
    with pytest.raises(AnotherRun), only_run(course, "course grade mini"):
        pass
    other.kill()
    other.wait()
    with only_run(course, "course grade mini"):
        assert f"process {os.getpid()} on " in (course / LOCK).read_text()


def test_after_a_run_the_next_begins_and_another_course_is_free(course, tmp_path):
    with only_run(course, "one"), only_run(tmp_path, "other"):
        pass
    with only_run(course, "two"):
        assert (course / LOCK).read_text().startswith("two, ")


def test_where_there_are_no_locks_a_student_can_check_and_grading_says_so(tmp_path):
    with started(WITHOUT_LOCKS, folder=tmp_path) as process:
        told, _ = process.communicate()
    assert process.returncode == 0
    assert (
        told
        == "This system has no file locks (fcntl): grade on Linux, on Windows in WSL.\n"
    )
