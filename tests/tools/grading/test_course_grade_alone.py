"""`course-grade`: the second distribution grades nbgrader's quick start where there is
no torch, no book and no library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from plain_class import WORKS, hand_in, quick_start, recorded
from test_notebooks_elsewhere import ROOT, pip
from walled import need_a_sandbox
from whole import whole_only

pytestmark = pytest.mark.slow
#: Of what the course needs and a plain course does not.
BLOCKED = ("torch", "datasets", "transformers", "tokenizers", "course_lab")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A folder with what the wheel holds, in which nobody can import torch."""
    folder = tmp_path_factory.mktemp("alone")
    for name in ("course_lib", "course_tools", "packaging"):
        ignore = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=ignore)
    shutil.copy(ROOT / "LICENSE", folder / "source")
    project, built = folder / "source/packaging/course-grade", folder / "wheel"
    pip("wheel", "--no-build-isolation", "--wheel-dir", built, project)
    there = folder / "site"
    pip("install", "--no-compile", "--target", there, next(built.glob("*.whl")))
    with (there / "course_tools" / "__init__.py").open("a") as file:
        file.write(f"import sys\nsys.modules.update(dict.fromkeys({BLOCKED!r}))\n")
    return there


def run(alone, *arguments, exit_code=0) -> str:
    done = subprocess.run(
        [sys.executable, alone / "bin" / "course-grade", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(alone)},
        cwd=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_wheel_holds_no_book_no_laboratory_and_no_room_of_the_library(alone):
    assert {path.name for path in (alone / "course_lib").iterdir()} == {
        "__init__.py",
        "__init__.pyi",
        "files.py",
        "py.typed",
    }
    assert not (alone / "course_lab").exists()
    assert not list(alone.rglob("*.md"))


@whole_only
def test_the_quick_start_is_graded_without_torch(alone, tmp_path):
    need_a_sandbox()
    classroom = quick_start(tmp_path / "course101")
    for student in ("right", "partly", "empty"):
        hand_in(classroom, student, WORKS[student])
    at = ("--course-dir", classroom.root)
    said = run(alone, "grade", "ps1", *at)
    assert "6 graded" in said
    assert "sum_of_squares_uses_squares" in said
    tests = ("correct_squares", "squares_invalid_input", "correct_sum_of_squares")
    tests += ("sum_of_squares_uses_squares",)
    marks = recorded(classroom, "ps1")
    assert {
        student: [told[f"problem1/{test}"] for test in tests]
        for student, told in marks.items()
    } == {"right": [1, 1, 0.5, 0.5], "partly": [1, 0, 0.5, 0], "empty": [0, 0, 0, 0]}
    assert "as in the gradebook" in run(alone, "replay", "ps1", *at)
    page = classroom.root / "reports" / "ps1.html"
    assert str(page.relative_to(classroom.root)) in run(alone, "report", "ps1", *at)
    assert "problem1/sum_of_squares_uses_squares" in page.read_text()
