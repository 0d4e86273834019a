"""`course publish`: students get exercises and library; a solution, a hidden test or
somebody's work never leaves."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jupytext
import nbformat
import pytest
from classroom import REPOSITORY
from expect import refusal
from mini_assignment import MARGIN_TESTS, released_notebook, source_notebook

from course_tools.grading.assignments.publish import CannotPublish, publish

#: Long enough to stand nowhere else by chance.
SECRET = (
    'assert margin(2, 9) == -7, "low may lie above high: the margin is then negative"'
)


@pytest.fixture
def repository(tmp_path):
    """A small course under version control, with things that are nobody's business
    beside it."""
    root = tmp_path / "course"
    files = {
        "exercises/mini/mini.ipynb": nbformat.writes(released_notebook()),
        "exercises/later/later.ipynb": nbformat.writes(released_notebook()),
        "solutions/mini/mini.py": jupytext.writes(source_notebook(), fmt="py:percent"),
        "solutions/later/later.py": jupytext.writes(
            source_notebook(), fmt="py:percent"
        ),
        "tests/assignments/mutants/mini.py": "wrong answers",
        "course_lib/__init__.py": '"""The library."""\n',
        "pyproject.toml": "[project]\n",
        "book/guide.md": "for instructors",
        "book/results/x.json": "{}",
    }
    for place, text in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, encoding="utf-8")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=root, check=True)
    (root / "course_lib" / "notes-on-ada.txt").write_text("not in git")
    (root / "gradebook.db").write_text("marks")
    return root


def written(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
    )


def test_students_get_exercises_and_library_and_nothing_else(repository, tmp_path):
    publish(tmp_path / "students", ["mini"], repository)
    assert written(tmp_path / "students") == [
        ".gitignore",
        ".published.json",
        "README.md",
        "book/results/x.json",
        "course_lib/__init__.py",
        "exercises/mini/mini.ipynb",
        "pyproject.toml",
    ]
    assert (
        "exercises/mini/mini.ipynb" in (tmp_path / "students" / "README.md").read_text()
    )


def test_a_later_call_adds_and_takes_away_only_what_was_published(repository, tmp_path):
    students = tmp_path / "students"
    publish(students, ["mini"], repository)
    (students / ".git").mkdir()
    (students / ".git" / "HEAD").write_text("ref")
    (students / "syllabus.md").write_text("the instructor's own")
    publish(students, ["later"], repository)
    assert {".git/HEAD", "syllabus.md", "exercises/later/later.ipynb"} <= set(
        written(students)
    )
    assert "exercises/mini/mini.ipynb" not in written(students)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("course_lib/__init__.py", f"# {SECRET}\n"),
        ("course_lib/helpers.py", f"def f():\n    {SECRET}\n"),
        ("exercises/mini/notes.md", "return [number * number for number in numbers]"),
        ("exercises/mini/mini.ipynb", nbformat.writes(source_notebook())),
    ],
)
def test_a_line_of_a_solution_or_a_hidden_test_stops_everything(
    repository, tmp_path, place, text
):
    assert SECRET in MARGIN_TESTS
    (repository / place).write_text(
        text if "helpers" in place or "exercises" in place else f"{SECRET}\n"
    )
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    with refusal(r"Nothing was written:\n  - ", CannotPublish):
        publish(tmp_path / "students", ["mini"], repository)
    assert not (tmp_path / "students").exists()


def test_an_exercise_that_nobody_can_check_is_not_handed_out(repository, tmp_path):
    (repository / "solutions" / "later" / "later.py").unlink()
    with refusal("later has no source in solutions/", CannotPublish):
        publish(tmp_path / "students", [], repository)
    publish(tmp_path / "students", ["mini"], repository)


def test_a_folder_that_holds_something_else_is_left_alone(repository, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("ten years")
    with refusal("holds something that was not published from here", CannotPublish):
        publish(tmp_path / "home", [], repository)
    with refusal("lies in the repository with the solutions", CannotPublish):
        publish(repository / "students", [], repository)
    with refusal("Not in exercises/ or not in git: nothing", CannotPublish):
        publish(tmp_path / "students", ["nothing"], repository)
    assert written(tmp_path / "home") == ["thesis.txt"]


def test_a_listing_that_names_places_outside_removes_nothing_there(
    repository, tmp_path
):
    students = tmp_path / "students"
    publish(students, ["mini"], repository)
    (tmp_path / "outside.txt").write_text("stays")
    (students / ".published.json").write_text(json.dumps(["../outside.txt"]))
    publish(students, ["mini"], repository)
    assert (tmp_path / "outside.txt").exists()


@pytest.mark.slow
def test_this_course_can_be_handed_out(tmp_path):
    if not (REPOSITORY / ".git").exists():
        pytest.skip(
            "not a git checkout: nothing says which files are part of the course"
        )
    files = publish(tmp_path / "students", [], REPOSITORY)
    assert {Path(file).parts[1] for file in files if file.startswith("book/")} == {
        "checkpoints",
        "results",
    }
    assert {Path(file).parts[0] for file in files} == {
        "exercises",
        "course_lib",
        "course_lab",
        "course_tools",
        "book",
        "Makefile",
        "pyproject.toml",
        "constraints.txt",
        "LICENSE",
        "LICENSE-TEXT",
        "CITATION.cff",
        "README.md",
        ".gitignore",
    }
