"""`course check` as a command: exit status 0, 1 or 2, and what it says when it cannot
check."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path

import pytest
from cases import for_each
from classroom import REPOSITORY, write_notebook
from mini_assignment import released_notebook, solve
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from rich.console import Console
from traitlets.config.loader import PyFileConfigLoader
from typer.testing import CliRunner, Result

from course_tools.cli import app
from course_tools.grading.check.check import (
    TIME_LIMIT,
    Marks,
    Report,
    find_released,
    print_report,
)
from course_tools.grading.check.check_structure import Problem


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def assert_not_checked(result: Result, words: str) -> None:
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_missing_file_is_not_checked(tmp_path):
    assert_not_checked(run(tmp_path / "attention.ipynb"), "There is no file")


@pytest.mark.parametrize("where", ["mini", ".", "..", "../.."])
def test_one_command_finds_a_notebook_wherever_the_terminal_opened(
    tmp_path, monkeypatch, where
):
    """Beside it, above it, and where `course start` made the folder; no higher."""
    notebook = tmp_path / "home" / "assignments" / "mini" / "mini.ipynb"
    write_notebook(new_notebook(), notebook)
    monkeypatch.chdir(notebook.parents[1] / where)
    found = "no file" if where == "../.." else "no cell marked for grading"
    assert_not_checked(run("mini.ipynb"), found)


def test_a_notebook_in_another_folder_is_not_taken_for_one_that_is_named_by_its_path(
    tmp_path, monkeypatch
):
    write_notebook(new_notebook(), tmp_path / "mini" / "mini.ipynb")
    monkeypatch.chdir(tmp_path)
    assert_not_checked(run("week/mini.ipynb"), "There is no file week/mini.ipynb")


def test_folder_is_not_checked(tmp_path):
    assert_not_checked(run(tmp_path), "is a folder. Name the notebook in it")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"print('hello')", "is not a notebook: it is not JSON"),
        (b"", "is not a notebook: it is not JSON"),
        (b"[" * 200_000, "is nested too deeply"),
        (b"\xff\xfe\x00", "cannot be read as text"),
        (b"[]", "is JSON, but no notebook"),
        (b'{"cells": []}', "is JSON, but no notebook"),
        (
            b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 7}',
            "is a broken notebook",
        ),
        (
            (
                b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells":'
                b' [{"cell_type": "poem"}]}'
            ),
            "is a broken notebook",
        ),
        (b'{"nbformat": "four"}', "is a broken notebook"),
    ],
)
def test_file_that_is_no_notebook_is_not_checked(tmp_path, content, words):
    path = tmp_path / "attention.ipynb"
    path.write_bytes(content)
    assert_not_checked(run(path), words)
    assert path.read_bytes() == content


def test_notebook_without_grading_cells_is_not_checked(tmp_path):
    write_notebook(new_notebook(), tmp_path / "notes.ipynb")
    assert_not_checked(run(tmp_path / "notes.ipynb"), "has no cell marked for grading")


def test_notebook_of_no_released_assignment_is_not_checked(tmp_path):
    write_notebook(released_notebook(), tmp_path / "mini.ipynb")
    assert_not_checked(
        run(tmp_path / "mini.ipynb"), "belongs to no assignment in a folder exercises/"
    )


def test_work_in_the_released_file_itself_is_not_checked(tmp_path):
    path = tmp_path / "exercises" / "mini" / "mini.ipynb"
    write_notebook(solve(released_notebook()), path)
    assert_not_checked(run(path), "is not as it was released: margin has been changed")


def test_missing_kernel_is_not_checked(tmp_path):
    released = released_notebook()
    released.metadata.kernelspec = {
        "name": "no-such-kernel",
        "display_name": "None",
        "language": "python",
    }
    write_notebook(released, tmp_path / "mini.ipynb")
    result = run(tmp_path / "mini.ipynb", "--released", tmp_path / "mini.ipynb")
    assert_not_checked(result, "The Jupyter kernel 'no-such-kernel' is not installed.")


def test_released_notebook_is_found_though_the_file_was_renamed(tmp_path):
    write_notebook(released_notebook(), tmp_path / "exercises" / "mini" / "mini.ipynb")
    submitted = solve(released_notebook())
    found = find_released(tmp_path / "home" / "mini (1).ipynb", submitted)
    assert found == tmp_path / "exercises" / "mini" / "mini.ipynb"


def test_time_limit_is_the_graders():
    config = PyFileConfigLoader(
        "nbgrader_config.py", path=str(REPOSITORY)
    ).load_config()
    assert config.Execute.timeout == TIME_LIMIT


def report(problems: list[Problem]) -> Report:
    tested = Marks("Part 1 · [bold]Sums[/bold]", "sums-tests", 3.0, 1.5, "partly")
    written = Marks("Part 2", "why", 4.0, None, "written")
    return Report("mine.ipynb", "released.ipynb", [tested, written], problems, 2.4)


def printed(shown: Report) -> str:
    console = Console(width=100, no_color=True, record=True, file=io.StringIO())
    print_report(shown, console)
    return console.export_text()


def test_report_reads_without_colours_and_takes_no_text_for_markup():
    text = printed(
        report([Problem("failing", "sums-tests", "sums [red]are[/red] wrong")])
    )
    assert "Part 1 · [bold]Sums[/bold]" in text
    assert "sums [red]are[/red] wrong" in text
    assert "1.5 of 3" in text
    assert "by hand 4" in text
    assert (
        "Visible tests: 1.5 of 3 points. The grader runs more tests than these." in text
    )
    assert text.rstrip().endswith("1 thing to mend.")


def test_report_without_problems_says_so():
    assert printed(report([])).rstrip().endswith("Nothing is wrong.")


def test_report_as_json_has_everything():
    content = json.loads(report([Problem("slow", "a", "b")]).to_json())
    assert content["ok"] is False
    assert content["problems"] == [{"kind": "slow", "cell": "a", "message": "b"}]
    assert content["marks"][0]["earned"] == 1.5


def released_assignments() -> list[Path]:
    from course_tools.grading.assignments.release import assignments

    return [
        REPOSITORY / "solutions" / name / f"{name}.py"
        for name in assignments(REPOSITORY)
    ]


@for_each("source", released_assignments())
def test_no_test_stands_right_after_a_read_only_cell(source):
    """OverwriteCells.add_missing_cells cannot put back a deleted test there (see
    grading/sanitize.py)."""
    from course_tools.grading.assignments.source import read_source

    roles = [
        cell.metadata.nbgrader
        for cell in read_source(source).cells
        if "nbgrader" in cell.metadata
    ]
    assert roles, source

    def is_test(role: NotebookNode) -> bool:
        return role.grade and not role.solution

    def is_read_only(role: NotebookNode) -> bool:
        return role.locked and not role.grade

    pairs = itertools.pairwise(roles)
    assert [
        after.grade_id
        for before, after in pairs
        if is_read_only(before) and is_test(after)
    ] == []
