"""`course start`: a student works in copies, which nothing overwrites, and `course
check` compares them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from classroom import REPOSITORY, write_notebook
from mini_assignment import released_notebook
from typer.testing import CliRunner

from course_tools.cli import app
from course_tools.grading.assignments import start
from course_tools.grading.check import check


@pytest.fixture
def released(tmp_path, monkeypatch):
    """A folder of released assignments, as an installed wheel has it."""
    folder = tmp_path / "installed" / "course_lib" / "exercises"
    write_notebook(released_notebook(), folder / "mini" / "mini.ipynb")
    (folder / "mini" / "weights.safetensors").write_bytes(b"weights")
    monkeypatch.setattr(check, "EXERCISES", folder)
    return folder


def test_copies_are_made_once_and_work_in_them_stays(released, tmp_path):
    mine = tmp_path / "assignments"
    copied = [mine / "mini" / "mini.ipynb", mine / "mini" / "weights.safetensors"]
    assert start.copy_assignments(mine, released) == copied
    assert [path.read_bytes() for path in copied] == [
        (released / "mini" / path.name).read_bytes() for path in copied
    ]
    copied[0].write_text("my work")
    copied[1].unlink()
    assert start.copy_assignments(mine, released) == copied[1:]
    assert copied[0].read_text() == "my work"


def test_the_released_assignment_of_a_copy_is_found_though_no_checkout_is_near(
    released, tmp_path
):
    mine = tmp_path / "assignments"
    start.copy_assignments(mine, released)
    assert (
        check.find_released(mine / "mini" / "mini.ipynb", released_notebook())
        == released / "mini" / "mini.ipynb"
    )


def test_the_released_assignments_are_no_place_to_work_in(released, tmp_path):
    with pytest.raises(start.CannotStart, match="Name another folder"):
        start.copy_assignments(released, released)
    with pytest.raises(start.CannotStart, match="no released assignments"):
        start.copy_assignments(tmp_path / "assignments", tmp_path / "nothing")


def test_the_command_copies_all_assignments_and_opens_jupyter_with_course_on_the_path(
    tmp_path, monkeypatch
):
    opened: list[tuple[list[str], str]] = []
    monkeypatch.setattr(
        "jupyterlab.labapp.main",
        lambda words: opened.append((words, os.environ["PATH"])),
    )
    monkeypatch.setenv("PATH", "/usr/bin")
    result = CliRunner().invoke(app, ["start", str(tmp_path / "mine")])
    assert result.exit_code == 0, result.output
    names = {path.name for path in (REPOSITORY / "exercises").iterdir()}
    assert {path.name for path in (tmp_path / "mine").iterdir()} == names
    [(words, path)] = opened
    assert words[0] == str(tmp_path / "mine")
    assert path.split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]


def test_without_jupyter_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    result = CliRunner().invoke(app, ["start", str(tmp_path / "mine")])
    assert (result.exit_code, "course_lib[student]" in result.stderr) == (1, True)
