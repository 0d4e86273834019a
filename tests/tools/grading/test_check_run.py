"""`course check` runs what students write, and comes back with words whatever that does
to its kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from classroom import write_notebook
from mini_assignment import nbgrader_metadata, released_notebook, solve
from nbformat.v4 import new_code_cell
from nbgrader.utils import compute_checksum
from sample_class import cell_of, delete
from typer.testing import CliRunner
from whole import whole_only

from course_tools.cli import app
from course_tools.grading.check.check import Report, check

pytestmark = pytest.mark.slow

MARGIN = "def margin(high, low):\n    return high - low\n"


def checked(folder: Path, margin: str, time_limit: int = 600) -> Report:
    """Check a notebook that is right in all but the answer `margin`."""
    notebook = solve(released_notebook())
    cell_of(notebook, "margin").source = margin
    return check_notebook(folder, notebook, time_limit)


def check_notebook(
    folder: Path, notebook: object, time_limit: int = 600, released: object = None
) -> Report:
    released = released or released_notebook()
    write_notebook(released, folder / "exercises" / "mini" / "mini.ipynb")
    path = folder / "mini.ipynb"
    write_notebook(notebook, path)
    before = path.read_bytes()
    report = check(path, time_limit=time_limit)
    assert path.read_bytes() == before  # what is checked is never written
    return report


def earned(report: Report) -> list[float | None]:
    return [mark.earned for mark in report.marks]


def words(report: Report, kind: str) -> str:
    return " ".join(
        problem.message for problem in report.problems if problem.kind == kind
    )


def test_right_notebook_has_nothing_wrong_and_its_parts_are_told(tmp_path):
    report = checked(tmp_path, MARGIN)
    assert report.ok, report.problems
    assert [
        (mark.part, mark.cell, mark.points, mark.earned, mark.state)
        for mark in report.marks
    ] == [
        ("A small assignment", "margin-tests", 3.0, 3.0, "passed"),
        ("A small assignment", "squares-tests", 4.0, 4.0, "passed"),
        ("A small assignment", "squares-why", 5.0, None, "written"),
    ]


def test_warning_on_stderr_costs_nothing(tmp_path):
    assert checked(
        tmp_path, "import sys\n" + MARGIN + "print('slow', file=sys.stderr)\n"
    ).ok


def test_failed_test_says_what_the_test_says(tmp_path):
    report = checked(tmp_path, MARGIN.replace("high - low", "low - high"))
    assert earned(report) == [0.0, 4.0, None]
    assert [problem.message for problem in report.problems] == [
        "The test cell margin-tests (3 points) fails: margin(7, 4) is 3, but yours is"
        " -3: subtract low from high"
    ]


def test_exception_in_an_answer_is_placed(tmp_path):
    report = checked(tmp_path, MARGIN.replace("high - low", "high / 0"))
    message = (
        "The test cell margin-tests (3 points) fails with ZeroDivisionError: division"
        " by zero (margin, line 2)."
    )
    assert [problem.message for problem in report.problems] == [message]


def test_syntax_error_is_said_in_the_answer_itself(tmp_path):
    report = checked(tmp_path, MARGIN.replace(":", "", 1))
    assert (
        report.problems[0].message
        == "The answer cell margin is not valid Python: expected ':' (margin, line 1)."
    )
    assert earned(report) == [0.0, 4.0, None]


def test_partial_credit_below_the_most_is_a_finding(tmp_path):
    notebook = solve(released_notebook())
    cell_of(
        notebook, "squares"
    ).source = "def squares(numbers):\n    return [n * abs(n) for n in numbers]"
    report = check_notebook(tmp_path, notebook)
    assert earned(report) == [3.0, 2.0, None]
    assert (
        words(report, "failing")
        == "squares-tests earns 2 of 4 points in the visible tests."
    )


def test_tampered_and_deleted_tests_run_as_they_were_released(tmp_path):
    notebook = solve(released_notebook())
    cell_of(notebook, "margin").source = MARGIN.replace("high - low", "0")
    cell_of(notebook, "margin-tests").source = "assert True"
    delete(notebook, "squares-tests")
    report = check_notebook(tmp_path, notebook)
    assert earned(report) == [0.0, 4.0, None]
    assert [problem.kind for problem in report.problems] == [
        "tampered",
        "deleted",
        "failing",
    ]


def test_part_that_is_not_started_is_said_once(tmp_path):
    report = check_notebook(tmp_path, released_notebook())
    assert [problem.kind for problem in report.problems] == [
        "not-started",
        "not-started",
        "empty",
    ]
    assert [mark.state for mark in report.marks] == [
        "not started",
        "not started",
        "empty",
    ]


def test_input_gets_no_answer(tmp_path):
    report = checked(tmp_path, MARGIN + "name = input('Your name? ')")
    assert "asks for input() (margin, line 3). Nobody is there to answer" in words(
        report, "failing"
    )


def test_sys_exit_is_named(tmp_path):
    report = checked(tmp_path, MARGIN + "import sys\nsys.exit(0)")
    assert "calls exit()" in words(report, "failing")


@whole_only
def test_a_notebook_computes_with_one_thread_as_in_grading(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    report = checked(
        tmp_path, MARGIN + "import os\nassert os.environ['OMP_NUM_THREADS'] == '1'"
    )
    assert report.problems == []
    assert earned(report) == [3.0, 4.0, None]


def test_endless_loop_is_stopped_and_the_rest_still_runs(tmp_path):
    report = checked(tmp_path, MARGIN + "while True:\n    pass", time_limit=3)
    assert words(report, "slow").startswith(
        "The answer cell margin took longer than 3 s and was stopped: an endless loop"
    )
    assert earned(report) == [3.0, 4.0, None]


@whole_only
def test_loop_that_ignores_interrupts_ends_the_run(tmp_path):
    deaf = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n   "
        " pass"
    )
    report = checked(tmp_path, deaf, time_limit=3)
    assert "could not be stopped; the cells after it were not run" in words(
        report, "slow"
    )
    assert [mark.state for mark in report.marks] == ["not run", "not run", "written"]


def test_dead_kernel_ends_the_run(tmp_path):
    report = checked(tmp_path, "import os\nos._exit(0)")
    assert "ended Python itself, and the cells after it were not run" in words(
        report, "dead"
    )
    assert [mark.state for mark in report.marks] == ["not run", "not run", "written"]


def test_flood_of_output_is_thrown_away(tmp_path):
    report = checked(tmp_path, MARGIN + "for _ in range(300):\n    print('x' * 10_000)")
    assert (
        words(report, "flooding")
        == "The answer cell margin prints more than a million characters. Print less."
    )
    assert earned(report) == [3.0, 4.0, None]


def test_error_in_what_the_notebook_gives_is_placed_where_the_student_calls_it(
    tmp_path,
):
    locked = nbgrader_metadata("setup", grade=False, solution=False, locked=True)
    released, notebook = released_notebook(), solve(released_notebook())
    for each in (released, notebook):
        source = "def given():\n    raise KeyError('x')"
        cell = new_code_cell(source, id="setup", metadata=locked)
        cell.metadata.nbgrader["checksum"] = compute_checksum(cell)
        each.cells.insert(0, cell)
    cell_of(notebook, "margin").source = MARGIN.replace("high - low", "given()")
    report = check_notebook(tmp_path, notebook, released=released)
    assert words(report, "failing").endswith("KeyError: 'x' (margin, line 2).")


def test_error_in_a_cell_of_ones_own_is_named_by_its_place(tmp_path):
    notebook = solve(released_notebook())
    notebook.cells.append(new_code_cell("margin(1)"))
    report = check_notebook(tmp_path, notebook)
    assert words(report, "failing").startswith(
        "Cell 7 fails with TypeError: margin() missing 1 required positional"
    )


def test_file_of_another_name_is_checked_and_told_its_name(tmp_path):
    released = tmp_path / "exercises" / "mini" / "mini.ipynb"
    write_notebook(released_notebook(), released)
    write_notebook(solve(released_notebook()), tmp_path / "mini (1).ipynb")
    report = check(tmp_path / "mini (1).ipynb")
    assert [problem.kind for problem in report.problems] == ["misnamed"]
    assert (
        words(report, "misnamed")
        == "The grader reads mini.ipynb alone. Hand it in under that name."
    )


def test_exit_status_is_0_only_when_nothing_is_wrong(tmp_path):
    checked(tmp_path, MARGIN)
    path = str(tmp_path / "mini.ipynb")
    assert CliRunner().invoke(app, ["check", path]).exit_code == 0
    released = str(tmp_path / "exercises" / "mini" / "mini.ipynb")
    result = CliRunner().invoke(app, ["check", released, "--json"])
    assert result.exit_code == 1
    assert '"kind": "not-started"' in result.stdout
