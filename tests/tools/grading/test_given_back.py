"""What students get back serves the next class, too: words of hidden tests, and none of
their lines and values, in each of the ways in which feedback leaves."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from classroom import Classroom
from mini_assignment import graded_cell, solution_cell
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

from course_tools.grading.assignments.hidden_words import (
    NOT_STARTED,
    hidden_lines,
    in_words,
)
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.nbgrader.give_back import FAILS, make_fit
from course_tools.grading.reports.class_report import OWN_INPUTS, PUBLIC_INPUTS, report
from course_tools.grading.run.grade import grade

pytestmark = pytest.mark.slow

MARGIN = (
    "### BEGIN SOLUTION\ndef margin(high, low): return high - low\n### END SOLUTION"
)
TESTS = """def check(got, wanted, what, hint):
    assert got == wanted, f"{what}: yours is {got}, not {wanted}. {hint}"
assert margin(7, 4) == 3, f"margin(7, 4) is 3, but yours is {margin(7, 4)}"
### BEGIN HIDDEN TESTS
assert margin(2619, 9137) == -6518, f"{2619} < 9137: a negative margin, as with 7 and 4"
check(margin(0.3125, 0.0), 0.3125, "With numbers that are not whole", "Round nothing.")
assert margin(-4242, -4243) == 1
### END HIDDEN TESTS"""
SHARE = """mark = 1.0 * (margin(5, 4) == 1)
### BEGIN HIDDEN TESTS
mark += 2.0 * (margin(83475, 12986) == 70489)
### END HIDDEN TESTS
mark"""
SECRETS = ("2619", "9137", "6518", "0.3125", "4242", "4243", "83475", "12986", "70489")
#: What a function that prints its arguments prints until it fails.
PRINTED = ("2619", "9137", "0.3125", "4242", "4243", "83475", "12986")
#: Wrong answers that print and raise what they are asked, and what is said of each.
WRONG = {
    "seen": ("return low - high", "margin(7, 4) is 3, but yours is -3"),
    "sign": ("return abs(high - low)", "… < …: a negative margin, as with 7 and 4"),
    "whole": (
        "return int(high - low)",
        "With numbers that are not whole. Round nothing",
    ),
    "silent": (
        "print(high, low)\n    return abs(high) - abs(low)",
        "A hidden test fails.",
    ),
    "raises": (
        "if high < low: raise ValueError(high, low)\n    return high - low",
        "A hidden test fails.",
    ),
    "untouched": ("raise NotImplementedError()", NOT_STARTED.capitalize()),
}


def source() -> NotebookNode:
    cells = [
        solution_cell("margin", MARGIN),
        graded_cell("margin-tests", TESTS, 3),
        graded_cell("share-tests", SHARE, 3),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    return notebook


def hidden_rows(notebook: NotebookNode) -> set[str]:
    """The lines of hidden tests, but those that hold nothing."""
    return {
        row.strip()
        for cell in notebook.cells
        for number, row in enumerate(cell.source.split("\n"), start=1)
        if number in hidden_lines(cell.source) and len(row.strip()) > 9
    }


def leaks(text: str, secrets: set[str]) -> set[str]:
    """What of it stands in a file, written as it is, in JSON or in HTML. A number
    within a longer one, or within a checksum, is another one."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", text)) + text.replace('\\"', '"')
    alone = r"(?<![0-9a-f]){}(?![0-9a-f])"
    return {
        secret
        for secret in secrets
        if secret in plain
        and (secret not in SECRETS or re.search(alone.format(re.escape(secret)), plain))
    }


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    classroom = Classroom.create(tmp_path_factory.mktemp("given_back") / "course")
    classroom.add_source("mini", source())
    classroom.run("nbgrader generate_assignment mini")
    for student, (answer, _) in WRONG.items():
        notebook = classroom.released("mini")
        notebook.cells[0].source = f"def margin(high, low):\n    {answer}"
        classroom.submit("mini", student, notebook)
    return classroom


def formgrader(root: Path) -> NbGraderAPI:
    """What makes feedback when an instructor clicks on it."""
    config = course_settings(root)
    return NbGraderAPI(CourseDirectory(config=config), config=config)


def texts(classroom: Classroom, student: str) -> dict[str, str]:
    """What the student may get, by its place."""
    return {
        folder: next((classroom.root / folder / student / "mini").iterdir()).read_text()
        for folder in ("autograded", "feedback")
    }


@pytest.fixture(scope="module")
def stock(released, tmp_path_factory):
    """By stock nbgrader: what each student may get, in three ways."""
    root = tmp_path_factory.mktemp("stock") / "course"
    classroom = Classroom(Path(shutil.copytree(released.root, root)))
    classroom.run("nbgrader autograde mini")
    classroom.run("nbgrader generate_feedback mini")
    given = {student: texts(classroom, student) for student in WRONG}
    for student in WRONG:
        (classroom.root / "feedback" / student / "mini" / "mini.html").unlink()
        done = formgrader(classroom.root).generate_feedback("mini", student)
        assert done["success"], done
        given[student]["formgrader"] = texts(classroom, student)["feedback"]
    return classroom, given


SECRET = {*SECRETS} | hidden_rows(source())


def test_stock_feedback_has_the_words_of_hidden_tests_and_none_of_their_values(stock):
    classroom, given = stock
    for student, (_, words) in WRONG.items():
        for way, text in given[student].items():
            assert leaks(text, SECRET) == set(), (student, way)
            assert leaks(text, {words}), (student, way)
        assert "(0 of 3 points)" in given[student]["autograded"]
    assert classroom.scores("mini", "whole") == {"margin-tests": 0, "share-tests": 3}
    assert classroom.scores("mini", "sign") == {"margin-tests": 0, "share-tests": 3}


def test_a_notebook_that_was_graded_with_everything_gives_words_as_feedback(stock):
    classroom, _ = stock
    config = classroom.root / "nbgrader_config.py"
    words = config.read_text()
    config.write_text(f"{words}\nc.GiveBack.feedback = 'code'\n")
    classroom.run("nbgrader autograde mini --student silent --force")
    config.write_text(words)
    classroom.run("nbgrader generate_feedback mini --student silent --force")
    given = texts(classroom, "silent")
    assert leaks(given["feedback"], SECRET) == set()
    assert leaks(given["autograded"], SECRET) == SECRET  # as stock nbgrader has it
    notebook = nbformat.reads(given["autograded"], 4)
    make_fit(notebook, printed=True)
    assert leaks(nbformat.writes(notebook), SECRET) == {*PRINTED}
    make_fit(notebook)
    assert leaks(nbformat.writes(notebook), SECRET) == set()


def test_our_pages_have_the_same_words(released, tmp_path):
    classroom = Classroom(Path(shutil.copytree(released.root, tmp_path / "course")))
    grade("mini", classroom.root, isolation="unsafe")
    classroom.run("course replay mini")
    ours = {student: texts(classroom, student) for student in WRONG}
    classroom.run("nbgrader generate_feedback mini --force")
    for student, (_, words) in WRONG.items():
        fails = words.replace(FAILS, "a hidden test fails.")
        assert leaks(ours[student]["feedback"], {fails})
        stock_page = texts(classroom, student)["feedback"]
        for way, text in {**ours[student], "stock": stock_page}.items():
            assert leaks(text, SECRET) == set(), (student, way)
    (classroom.root / "solutions" / "mini" / "hidden.py").touch()
    assert leaks(report("mini", classroom.root).read_text(), {PUBLIC_INPUTS})
    assert classroom.run("course init").startswith("course-secret.txt is written.")
    assert leaks(report("mini", classroom.root).read_text(), {OWN_INPUTS})
    for path in classroom.root.glob("grading-*"):
        rest = [path] if path.is_file() else path.rglob("*.jsonl")
        assert not any(leaks(one.read_text(), SECRET) for one in rest)


def test_a_students_code_chooses_among_sentences_and_adds_nothing():
    """Whatever an answer raises or is called."""
    asked = 'hidden["compare"]("f", 3, globals())'
    for message, told in {
        "With ties, f raises Secret: 2619": "With ties, f raises an error",
        "With ties, f must raise ValueError, not Secret2619": (
            "With ties, f must raise ValueError"
        ),
        "With ties, the sum must be a tensor; yours is a Secret": (
            "With ties, the sum must be a tensor"
        ),
        "With 2619 words and 7, it is 'secret'": "With … words and 7, it is …",
        "": "",
    }.items():
        assert in_words(asked, 1, message, "margin(7, 4)") == told
    assert in_words("check(f(2), 'a b c d', 'two or more')", 1, "two or more", "") == (
        "two or more"
    )
    assert in_words("x = f(2)", 1, "secret", "") == ""
    assert in_words("!ls", 1, "secret", "") == ""
