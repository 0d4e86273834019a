"""`course export`: the marks of the gradebook in the forms that platforms take, and no
cell that a spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from pathlib import Path

import pytest
from cases import for_each
from gradebook_class import enter_assignment, record
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from course_tools.cli import app
from course_tools.grading.reports.export import CannotExport, export, safe


@pytest.fixture
def graded(course):
    """Three who handed in, one with a penalty, one whose answer waits; and one who did
    not."""
    records = enter_assignment(course)
    record(records, "ada", 3.0, 4.0, 5.0)
    record(records, "bo", 0.0, 2.0, 0.0)
    record(records, "eve", 3.0, 0.5)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.update_or_create_student(
            "ada", first_name="Ada", last_name="Lovelace", lms_user_id="91"
        )
        gradebook.update_or_create_student(
            "bo", first_name="Bo", last_name='O"Neil', email="bo@example.org"
        )
        gradebook.update_or_create_student(
            "eve", first_name="", last_name='=HYPERLINK("http://x","+1")'
        )
        gradebook.update_or_create_student("idle", first_name="Ida", last_name="Le")
        gradebook.find_grade("squares-tests", "mini", "mini", "bo").manual_score = 3.0
        gradebook.find_grade(
            "squares-tests", "mini", "mini", "bo"
        ).needs_manual_grade = False
        comment = gradebook.find_comment("squares-why", "mini", "mini", "ada")
        comment.manual_comment = "Well put."
        gradebook.find_submission_notebook(
            "mini", "mini", "ada"
        ).late_submission_penalty = 1.2
        gradebook.db.commit()
    return course


def rows(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_canvas_gets_its_columns_a_row_of_points_and_its_own_numbers(graded):
    assert rows(export("mini", "canvas", graded).place) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "mini"],
        ["    Points Possible", "", "", "", "", "12"],
        ["Lovelace, Ada", "91", "", "ada", "", "10.8"],  # 12 less the penalty
        ['O"Neil, Bo', "", "", "bo", "", "3"],  # 2 by the test, 3 by hand
        ['\'=HYPERLINK("http://x","+1")', "", "", "eve", "", "3.5"],
        ["Le, Ida", "", "", "idle", "", "0"],
    ]


def test_moodle_and_blackboard_know_a_student_by_user_name(graded):
    moodle = rows(export("mini", "moodle", graded).place)
    assert moodle[0] == [
        "Username",
        "First name",
        "Last name",
        "Email address",
        "mini",
        "Maximum grade",
    ]
    assert moodle[2] == ["bo", "Bo", 'O"Neil', "bo@example.org", "3", "12"]
    place = export("mini", "blackboard", graded).place
    assert place.read_text().startswith(
        '"Last Name","First Name","Username","mini [Total Pts: 12 Score]"\n"Lovelace",'
    )


def test_the_whole_table_has_each_question_the_penalty_and_what_waits(graded):
    found = {row[0]: row[4:] for row in rows(export("mini", "csv", graded).place)}
    assert found["id"] == [
        "margin-tests",
        "squares-tests",
        "squares-why",
        "raw",
        "late_penalty",
        "score",
        "max_score",
        "to_mark",
    ]
    assert found["ada"] == ["3", "4", "5", "12", "1.2", "10.8", "12", "0"]
    assert found["bo"] == ["0", "3", "0", "3", "0", "3", "12", "0"]
    assert found["eve"] == ["3", "0.5", "", "3.5", "0", "3.5", "12", "1"]
    assert found["idle"] == ["", "", "", "0", "0", "0", "12", "0"]


def test_what_a_person_should_know_is_said(graded):
    assert export("mini", "csv", graded).notes == [
        "idle handed in nothing: 0 points.",
        "eve has 1 answers that nobody marked yet; they count as 0.",
        (  # there is no due date
            "The penalty of ada is not up to date. Run: course grade mini"
        ),
    ]


FORMULAS = {
    "=1+1": "'=1+1",
    "+1": "'+1",
    "-x": "'-x",
    "@SUM(A1)": "'@SUM(A1)",
    " =1": " '=1",
    "\t=1": "\t'=1",
    "\r=1": "\r'=1",
    # finding F14: each of these passed as it stood
    'Ada;=HYPERLINK("http://x")': 'Ada;\'=HYPERLINK("http://x")',
    "Ada\t=1+1": "Ada\t'=1+1",
    "\x0b=1": "\x0b'=1",
    "\xa0=1": "\xa0'=1",
    "＝1+1": "'＝1+1",
    "Ada｜ ＠x": "Ada｜ '＠x",
    "Ada；=1": "Ada；'=1",
    "\u200b=1": "\u200b'=1",
    "a,=1|+2;\n-cmd": "a,'=1|'+2;\n'-cmd",
    "⩵1": "'⩵1",
}


@for_each(("cell", "written"), FORMULAS.items())
def test_no_cell_is_a_formula(cell, written):
    assert safe(cell) == written


SIGNS = st.sampled_from("=+-@;,|\t\n\x0b\xa0\u3000＝＠；A1( '")


@given(st.lists(SIGNS, max_size=8).map("".join) | st.text())
def test_wherever_a_spreadsheet_splits_a_table_no_piece_of_it_is_a_formula(name):
    written = unicodedata.normalize("NFKC", safe(name))
    number = re.fullmatch(r"-|-?\d+(\.\d+)?", name)
    for piece in re.split(r"[;,|\t\n\r\v\f]", written):
        assert number or not piece.strip().startswith(("=", "+", "-", "@")), piece
    assert safe(name).replace("'", "") == name.replace("'", ""), (
        "nothing but apostrophes is new"
    )


@for_each(
    "cell",
    [
        "-3.5",
        "12",
        "-",
        "Ada",
        "",
        "O'Neil",
        "Anne-Marie",
        "Smith - Jones",
        "Lovelace, Ada",
        "ada+x@example.org",
        "Homework 1 - Tests (4711)",
        "mini [Total Pts: 12 Score] |88",
        "Иванова-Петрова",
        "    Points Possible",
    ],
)
def test_numbers_names_and_titles_stay_as_they_are(cell):
    assert safe(cell) == cell


@pytest.mark.parametrize("form", ["canvas", "moodle", "blackboard", "csv"])
def test_every_cell_of_a_table_is_quoted(graded, form):
    for line in export("mini", form, graded).place.read_text().splitlines():
        assert re.fullmatch(r'"([^"]|"")*"(,"([^"]|"")*")*', line)


def test_a_table_of_canvas_is_filled_and_nothing_else_in_it_changes(graded, tmp_path):
    table = tmp_path / "canvas.csv"
    table.write_text(
        "Student,ID,SIS Login ID,Section,mini (4711),other (12)\n"
        ",,,,Manual Posting,\n"
        "    Points Possible,,,,12.0,5.0\n"
        '"Lovelace, Ada",91,zzz,A,,4\n'
        '"O""Neil, Bo",77,bo,A,1,\n'
        '"Student, Test",99,,A,,\n'
    )
    exported = export("mini", "canvas", graded, table)
    assert rows(exported.place)[3:5] == [
        ["Lovelace, Ada", "91", "zzz", "A", "10.8", "4"],
        ['O"Neil, Bo', "77", "bo", "A", "3", ""],
    ]
    assert rows(exported.place)[:3] == rows(table)[:3]
    assert (
        "The row of Student, Test in canvas.csv is no student of the gradebook."
        in exported.notes
    )
    assert "eve has no row in canvas.csv." in exported.notes


def test_tables_of_moodle_and_of_blackboard_are_filled_as_they_write_them(
    graded, tmp_path
):
    moodle, blackboard = tmp_path / "worksheet.csv", tmp_path / "gc.xls"
    moodle.write_text(
        "Identifier,Full name,Email address,Grade\nParticipant 7,Ada Lovelace,,\n",
        encoding="utf-8-sig",
    )
    assert rows(export("mini", "moodle", graded, moodle).place)[1] == [
        "Participant 7",
        "Ada Lovelace",
        "",
        "10.8",
    ]
    blackboard.write_text(
        '"Last Name"\t"Username"\t"mini [Total Pts: 12 Score]'
        ' |88"\n"Lovelace"\t"ada"\t""\n',
        encoding="utf-16",
    )
    assert rows(export("mini", "blackboard", graded, blackboard).place) == [
        ["Last Name", "Username", "mini [Total Pts: 12 Score] |88"],
        ["Lovelace", "ada", "10.8"],
    ]


def test_a_students_text_of_any_length_does_not_stop_a_table_from_being_read(
    graded, tmp_path
):
    """Moodle's worksheet holds what students typed online; Python's csv reads 131,072
    characters a cell by itself."""
    table = tmp_path / "worksheet.csv"
    table.write_text(
        f"Full name,Grade,Online text\nAda Lovelace,,{'x' * 200_000}\n",
        encoding="utf-8-sig",
    )
    assert rows(export("mini", "moodle", graded, table).place)[1][:2] == [
        "Ada Lovelace",
        "10.8",
    ]


def test_a_table_without_the_column_or_with_two_is_refused(graded, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("Student,ID,mini (1),mini (2)\n")
    with pytest.raises(CannotExport, match="has 2 columns whose name begins with mini"):
        export("mini", "canvas", graded, table)
    table.write_bytes(b"")
    with pytest.raises(CannotExport, match="is empty"):
        export("mini", "canvas", graded, table)


def test_gradescope_gets_a_test_for_each_question_and_never_more_than_feedback_says(
    graded,
):
    folder = export("mini", "gradescope", graded).place
    assert sorted(path.name for path in folder.iterdir()) == ["ada", "bo", "eve"]
    results = json.loads((folder / "ada" / "results.json").read_text())
    assert results == {
        "score": 10.8,
        "output": "",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [
            {"name": "margin-tests", "score": 3.0, "max_score": 3.0, "output": ""},
            {"name": "squares-tests", "score": 4.0, "max_score": 4.0, "output": ""},
            {
                "name": "squares-why",
                "score": 5.0,
                "max_score": 5.0,
                "output": "Well put.",
            },
        ],
    }


def test_the_command_says_where_it_wrote_and_what_to_know(graded, monkeypatch):
    monkeypatch.chdir(graded)
    told = CliRunner().invoke(app, ["export", "mini", "--to", "moodle"])
    assert told.exit_code == 0
    assert told.stdout == "exports/mini-moodle.csv\n"
    assert "idle handed in nothing" in told.stderr
    told = CliRunner().invoke(app, ["export", "mini", "--to", "ilias"])
    assert told.exit_code == 2
    assert "Choose one of canvas, moodle, blackboard, csv, gradescope." in told.stderr
