"""nbgrader's own tests of autograding, as installed, with our kernel that is shut in in
place of its own.

They are upstream's, unchanged, but for what is added to the configuration that each
gets; and the two that upstream skips run too. `make test` takes those that say most
about what executes, `make test-grading` all.
"""

from __future__ import annotations

import os
import shutil
import types
from pathlib import Path
from typing import Any

import pytest
from nbgrader.tests.apps import conftest as upstream_fixtures
from nbgrader.tests.apps import test_nbgrader_autograde as upstream
from whole import WHOLE, some, whole_only

from course_tools.grading.nbgrader.stock_nbgrader import bring_back

pytestmark = pytest.mark.slow

course_dir = upstream_fixtures.course_dir
ON = """
from course_tools.grading.nbgrader.stock_nbgrader import shut_in
c.Autograde.autograde_preprocessors = shut_in()
c.ShutInExecute.memory_mib = 512
c.GiveBack.feedback = "code"
"""
CHOSEN = {
    "test_grade",
    "test_side_effects",
    "test_incorrect_submitted_kernelspec",
    "test_infinite_loop",
}
SKIPPED_UPSTREAM = ("test_many_students", "test_infinite_loop_with_output")
POSTGRES = "postgresql://localhost:5432/gradebook"


@pytest.fixture
def db(tmp_path_factory, empty_gradebook):
    """Where upstream's is empty, so that each test makes its tables, for seconds, ours
    has them already."""
    path = tmp_path_factory.mktemp("db") / "nbgrader_test.db"
    return f"sqlite:///{shutil.copy(empty_gradebook, path)}"


@pytest.fixture
def temp_cwd(tmp_path, course_dir, monkeypatch):
    """An empty folder to work in, whose configuration shuts kernels in."""
    if shutil.which("bwrap") is None and "CI" not in os.environ:
        pytest.skip("no sandbox on this machine: there is no program bwrap")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.CourseDirectory.root = {course_dir!r}\n{ON}"
    )
    return str(tmp_path)


class TestNbGraderAutograde(upstream.TestNbGraderAutograde):
    """Upstream's class, found and run from here."""


UPSTREAM = [name for name in dir(TestNbGraderAutograde) if name.startswith("test_")]
KEPT = CHOSEN | {*some(*UPSTREAM)} if WHOLE else CHOSEN
for name in {*UPSTREAM} - KEPT | {*SKIPPED_UPSTREAM}:
    setattr(TestNbGraderAutograde, name, None)


@pytest.fixture
def unskipped(monkeypatch, db):
    """Runs one of upstream's tests past its ``pytest.skip``, on SQLite where it asks
    for PostgreSQL.

    One of them was never run with today's argparse: its date stands apart from the
    option that it belongs to.
    """
    run_nbgrader = upstream.run_nbgrader

    def on_sqlite(args: list[str], **options: Any) -> str:
        args = [db if arg == POSTGRES else arg for arg in args]
        if "--duedate" in args and args[args.index("--duedate") + 1].startswith("--"):
            args.insert(args.index("--duedate") + 1, args.pop())
        return run_nbgrader(args, **options)

    monkeypatch.setattr(upstream, "run_nbgrader", on_sqlite)
    # of its 50 students, each with a kernel, ten
    monkeypatch.setattr(upstream, "range", lambda most: range(most // 5), raising=False)
    monkeypatch.setattr(
        upstream, "pytest", types.SimpleNamespace(skip=lambda reason: None)
    )
    return lambda name, **fixtures: getattr(upstream.TestNbGraderAutograde(), name)(
        **fixtures
    )


@whole_only
def test_many_students_that_upstream_skips(temp_cwd, unskipped, course_dir):
    unskipped("test_many_students", course_dir=course_dir)
    assert len(list(Path(course_dir, "autograded").glob("student*/ps1/p1.ipynb"))) == 10


def test_infinite_loop_with_output_that_upstream_skips(
    temp_cwd, unskipped, db, course_dir
):
    """Its loop fills memory: the kernel is given up when it has what it may have, and
    the submission is not graded."""
    unskipped("test_infinite_loop_with_output", db=db, course_dir=course_dir)


def test_files_come_back_but_no_links_notebooks_or_what_would_go_through_a_link(
    tmp_path,
):
    work = tmp_path / "work"
    there = tmp_path / "there"
    elsewhere = tmp_path / "elsewhere"
    for folder in (work / "new", work / "linked", there, elsewhere):
        folder.mkdir(parents=True)
    (there / "linked").symlink_to(elsewhere)
    (there / "target.txt").symlink_to(elsewhere / "target.txt")
    (there / "same.txt").write_text("as it was")
    for name in (
        "new/made.txt",
        "linked/through.txt",
        "target.txt",
        "same.txt",
        "p1.ipynb",
    ):
        (work / name).write_text(name)
    (work / "link.txt").symlink_to("/etc/passwd")
    os.mkfifo(work / "pipe")
    bring_back(work, there)
    assert (there / "new/made.txt").read_text() == "new/made.txt"
    assert (there / "same.txt").read_text() == "same.txt"
    assert sorted(path.name for path in there.iterdir()) == [
        "linked",
        "new",
        "same.txt",
        "target.txt",
    ]
    assert list(elsewhere.iterdir()) == []
