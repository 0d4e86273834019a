"""Finding F11: what the grading commands print of a student's words is one line that
does nothing on a terminal."""

from __future__ import annotations

import io
import json

import nbformat
from gradebook_class import enter_assignment, record
from nbformat.v4 import new_output

from course_tools.cli_grading import say
from course_tools.grading.reports.export import export
from course_tools.grading.run.grade import progress

NASTY = "\x1b[2Jbo: 9 of 9\nzoe: 9 of 9\u202e"
WRITTEN = r"\x1b[2Jbo: 9 of 9\nzoe: 9 of 9\u202e"


def test_a_line_at_the_end_of_a_command(capsys):
    say(NASTY)
    say("x" * 1_000_000, err=True)
    told = capsys.readouterr()
    assert told.out == f"{WRITTEN}\n"
    assert len(told.err) == 2001


def test_a_line_while_submissions_are_graded(capsys):
    with progress(io.StringIO()) as (tell, _):
        tell(NASTY)
    assert capsys.readouterr().out == f"{WRITTEN}\n"


def test_what_failed_as_gradescope_shows_it(course):
    """Ends of lines stay, within a bound: a message of a test has several."""
    record(enter_assignment(course), "ada", 0.0, 0.0)
    place = course / "autograded" / "ada" / "mini" / "mini.ipynb"
    notebook = nbformat.read(place, as_version=4)
    (cell,) = (
        each
        for each in notebook.cells
        if each.metadata.get("nbgrader", {}).get("grade_id") == "margin-tests"
    )
    cell.outputs = [
        new_output(
            "error",
            ename="E",
            evalue="first\n\x1b[31m" + "x" * 10_000 + "\n." * 1000,
            traceback=[],
        )
    ]
    nbformat.write(notebook, place)
    results = json.loads(
        (
            export("mini", "gradescope", course).place / "ada" / "results.json"
        ).read_text()
    )
    (said,) = (
        test["output"] for test in results["tests"] if test["name"] == "margin-tests"
    )
    assert said.splitlines()[:2] == ["first", r"\x1b[31m" + "x" * 489 + "..."]
    assert len(said.splitlines()) == 40
