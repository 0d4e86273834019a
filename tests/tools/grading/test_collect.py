"""`course collect`: what platforms hand out, and what students do to it, becomes
nbgrader's folders or words."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mini_assignment import released_notebook, solve
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from course_tools.cli import app
from course_tools.grading.collect import unpack
from course_tools.grading.collect.collect import Collection, collect
from course_tools.grading.collect.roster import CannotReadRoster
from course_tools.grading.collect.unpack import CannotUnpack

NOTEBOOK = nbformat.writes(solve(released_notebook())).encode()
CLASS = """id,first_name,last_name,email,lms_user_id
ada,Ada,Lovelace,ada@example.org,91
bo,Bo,O'Neil,,92
zoe,Zoë,Bœrs,,93
anna1,Anna,Schmidt,,94
anna2,Anna,Schmidt,,95
"""


def numbered(number: int) -> bytes:
    """A notebook that can be told from the others."""
    return NOTEBOOK.replace(b"# A small assignment", f"# Attempt {number}".encode())


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def listing(tmp_path):
    path = tmp_path / "students.csv"
    path.write_text(CLASS, encoding="utf-8")
    return path


def collected(
    course: Path, files: dict[str, bytes], students: Path | None = None, **more: Any
) -> Collection:
    download = course.parent / "download.zip"
    download.write_bytes(zipped(files))
    return collect("mini", download, course, students, **more)


def submitted(course: Path) -> dict[str, bytes]:
    """What lies in submitted/, by place."""
    return {
        path.relative_to(course / "submitted").as_posix(): path.read_bytes()
        for path in sorted((course / "submitted").rglob("*"))
        if path.is_file()
    }


def test_a_moodle_download_is_matched_by_name(course, listing):
    found = collected(
        course,
        {
            "Ada Lovelace_4711_assignsubmission_file_/mini.ipynb": numbered(1),
            "Zoë Bœrs_4712_assignsubmission_file_mini.ipynb": numbered(2),
            "Ada Lovelace_4711_assignsubmission_onlinetext_/onlinetext.html": b"<p>",
        },
        listing,
    )
    assert found.ok
    assert submitted(course) == {
        "ada/mini/mini.ipynb": numbered(1),
        "zoe/mini/mini.ipynb": numbered(2),
    }


def test_a_canvas_download_is_matched_by_number_and_its_latest_copy_counts(
    course, listing
):
    found = collected(
        course,
        {
            "schmidtanna_95_801_mini.ipynb": numbered(1),
            "schmidtanna_95_802_mini-2.ipynb": numbered(2),
            "oneilbo_LATE_92_803_mini.ipynb": numbered(3),
        },
        listing,
    )
    assert submitted(course) == {
        "anna2/mini/mini.ipynb": numbered(2),
        "bo/mini/mini.ipynb": numbered(3),
    }
    notes = {one.student: " ".join(one.notes) for one in found.taken}
    assert "mini-2.ipynb was taken; left out: mini.ipynb" in notes["anna2"]
    assert (
        "Canvas says that it is late, not how much. Write the time into timestamp.txt"
        in notes["bo"]
    )


def test_a_blackboard_download_counts_the_latest_attempt_and_keeps_its_time(course):
    found = collected(
        course,
        {
            "Task_1_ada_attempt_2026-11-20-09-00-00_mini.ipynb": numbered(1),
            "Task_1_ada_attempt_2026-11-21-23-30-05_mini.ipynb": numbered(2),
            "Task_1_ada_attempt_2026-11-21-23-30-05.txt": b"Name: Ada",
        },
        timezone="Europe/Berlin",
    )
    assert submitted(course)["ada/mini/mini.ipynb"] == numbered(2)
    assert submitted(course)["ada/mini/timestamp.txt"] == b"2026-11-21 22:30:05 UTC\n"
    assert found.taken[0].notes == [
        "1 earlier notebooks are left out; the latest attempt counts."
    ]


def test_an_id_with_an_underscore_is_not_cut_where_the_class_is_known(course, tmp_path):
    (tmp_path / "two.csv").write_text("id\ndoe\nj_doe\n")
    collected(
        course,
        {"Task_j_doe_attempt_2026-11-20-09-00-00_mini.ipynb": NOTEBOOK},
        tmp_path / "two.csv",
    )
    assert list(submitted(course)) == [
        "j_doe/mini/mini.ipynb",
        "j_doe/mini/timestamp.txt",
    ]


@pytest.mark.parametrize("prefix", ["", "term/", "submitted/"])
@pytest.mark.parametrize("between", ["", "mini/"])
def test_a_folder_for_each_student_is_found_where_it_stands(
    course, listing, prefix, between
):
    names = [f"{prefix}{student}/{between}mini.ipynb" for student in ("ada", "bo")]
    found = collected(course, dict.fromkeys(names, NOTEBOOK), listing)
    assert found.ok
    assert [words.split(";")[0] for words in found.notes] == [
        f"All lies in the folder {prefix[:-1]}"
    ] * bool(prefix)
    assert list(submitted(course)) == ["ada/mini/mini.ipynb", "bo/mini/mini.ipynb"]


def test_a_folder_that_is_not_packed_is_read_too_and_its_links_are_not(
    course, tmp_path
):
    place = tmp_path / "in"
    for student in ("ada", "bo"):
        (place / student).mkdir(parents=True)
    (place / "ada" / "mini.ipynb").write_bytes(NOTEBOOK)
    (place / "bo" / "mini.ipynb").symlink_to(place / "ada" / "mini.ipynb")
    os.mkfifo(place / "ada" / "pipe.ipynb")
    found = collect("mini", place, course)
    assert list(submitted(course)) == ["ada/mini/mini.ipynb"]
    assert found.strangers == [] or all(
        "link or a device" in words for words in found.strangers
    )
    assert len(found.strangers) == 2


def test_other_platforms_are_read_with_a_pattern_of_nbgrader(course):
    pattern = r"ps_(?P<student_id>\w+)_on_(?P<timestamp>[0-9T-]+)_(?P<file_id>\w+)"
    found = collected(
        course, {"ps_ada_on_2026-11-20T09-00-00_mini.ipynb": NOTEBOOK}, pattern=pattern
    )
    assert found.ok
    assert submitted(course)["ada/mini/timestamp.txt"] == b"2026-11-20 09:00:00 UTC\n"
    with pytest.raises(ValueError, match="needs the groups"):
        collected(course, {}, pattern="(.*)")


def test_names_that_fit_nobody_or_two_are_told_and_nothing_is_taken(course, listing):
    found = collected(
        course,
        {
            "Anna Schmidt_1_assignsubmission_file_/mini.ipynb": NOTEBOOK,
            "Eve Adams_2_assignsubmission_file_/mini.ipynb": NOTEBOOK,
            "Ada Lovelace_3_assignsubmission_file_/mini.ipynb": NOTEBOOK,
            "Ada Lovelace_4_assignsubmission_file_/mini.ipynb": NOTEBOOK,
            "mini.ipynb": NOTEBOOK,
        },
        listing,
    )
    words = "\n".join(found.strangers)
    assert "could be anna1 or anna2" in words
    assert "Eve Adams is nobody in the gradebook" in words
    assert (
        "ada is meant by several people of the download: Ada Lovelace, Ada Lovelace."
        in words
    )
    assert "mini.ipynb is left out: its name says nothing about a student." in words
    assert submitted(course) == {}
    assert not found.ok


def test_look_alike_letters_are_nobody(course, listing):
    # Cyrillic а
    found = collected(
        course, {"аda/mini.ipynb": NOTEBOOK, "bo/mini.ipynb": NOTEBOOK}, listing
    )
    assert list(submitted(course)) == ["bo/mini/mini.ipynb"]
    assert len(found.strangers) == 1


def test_a_wrong_name_or_place_is_taken_and_told_where_only_one_is_meant(course):
    found = collected(
        course,
        {
            "ada/deep/er/Mini (2).ipynb.txt": NOTEBOOK,
            "bo/homework.ipynb": NOTEBOOK,
            "cy/one.ipynb": NOTEBOOK,
            "cy/two.ipynb": NOTEBOOK,
            "di/essay.docx": b"words",
            "__MACOSX/._x": b"",
        },
    )
    told = {one.student: " ".join([*one.notes, one.problem]) for one in found.taken}
    assert "should be called mini.ipynb" in told["ada"]
    assert "should be called mini.ipynb" in told["bo"]
    assert (
        "several notebooks and none is called mini.ipynb: one.ipynb, two.ipynb"
        in told["cy"]
    )
    assert "There is no notebook. Handed in: essay.docx" in told["di"]
    assert list(submitted(course)) == ["ada/mini/mini.ipynb", "bo/mini/mini.ipynb"]


def test_an_archive_of_a_student_is_looked_into_once(course):
    twice = zipped({"inner.zip": zipped({"mini.ipynb": NOTEBOOK})})
    found = collected(
        course,
        {
            "ada/work.zip": zipped({"x/mini.ipynb": NOTEBOOK}),
            "bo/work.zip": twice,
            "cy/work.zip": b"PK\3\4 no",
        },
    )
    told = {one.student: " ".join([*one.notes, one.problem]) for one in found.taken}
    assert list(submitted(course)) == ["ada/mini/mini.ipynb"]
    assert "an archive of the student's own; it was looked into" in told["ada"]
    assert "There is no notebook. Handed in: inner.zip" in told["bo"]
    assert "work.zip stays closed: it cannot be read" in told["cy"]


def test_names_that_lead_out_links_and_bombs_are_refused_and_the_class_goes_on(
    course, tmp_path, monkeypatch
):
    monkeypatch.setattr(unpack, "LARGEST", 100_000)
    link = zipfile.ZipInfo("bo/mini.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "in.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("../../evil/mini.ipynb", NOTEBOOK)
        archive.writestr("/abs/mini.ipynb", NOTEBOOK)
        archive.writestr("..\\win\\mini.ipynb", NOTEBOOK)
        archive.writestr("C:/win/mini.ipynb", NOTEBOOK)
        archive.writestr("cy/mini.ipynb", b" " * 1_000_000)  # a kilobyte, packed
        archive.writestr("ada/mini.ipynb", NOTEBOOK)
    found = collect("mini", tmp_path / "in.zip", course)
    words = "\n".join(found.strangers)
    assert words.count("leads out of the archive") == 4
    assert "bo/mini.ipynb is refused: it is a link or a device" in words
    assert {one.student: one.problem for one in found.taken} == {
        "ada": "",
        "cy": "cy/mini.ipynb: it unpacks to more than 0 MiB.",
    }
    assert list(submitted(course)) == ["ada/mini/mini.ipynb"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["course", "in.zip"]


def test_a_second_download_replaces_what_changed_and_an_older_one_does_not(course):
    def attempt(day: int) -> Collection:
        return collected(
            course, {f"T_ada_attempt_2026-11-{day}-09-00-00_mini.ipynb": numbered(day)}
        )

    attempt(20)
    assert attempt(20).taken[0].notes == []
    assert attempt(21).taken[0].notes == ["It replaces what was collected before."]
    assert attempt(20).taken[0].notes == [
        "What was collected before is later; it stays."
    ]
    assert submitted(course) == {
        "ada/mini/mini.ipynb": numbered(21),
        "ada/mini/timestamp.txt": b"2026-11-21 09:00:00 UTC\n",
    }


def test_a_time_that_nobody_knows_any_more_does_not_stay(course):
    stamped = {
        "ada/mini/mini.ipynb": numbered(1),
        "ada/mini/timestamp.txt": b"2026-11-20 10:00:00 UTC",
    }
    collected(course, stamped, timestamps=True)
    assert submitted(course)["ada/mini/timestamp.txt"] == b"2026-11-20 10:00:00 UTC\n"
    collected(course, {"ada/mini/mini.ipynb": numbered(2)})
    assert list(submitted(course)) == ["ada/mini/mini.ipynb"]


def test_times_come_from_a_table_where_the_names_have_none(course, listing, tmp_path):
    table = tmp_path / "worksheet.csv"
    table.write_text(
        "Identifier,Full name,Grade,Last modified (submission)\n"
        'Participant 1,Ada Lovelace,,"Sunday, 22 November 2026, 11:59 PM"\n'
        "Participant 2,Zoë Bœrs,,-\n"
        "Participant 3,Eve Adams,,2026-11-22 10:00\n"
        "Participant 4,Bo O'Neil,,whenever\n",
        encoding="utf-8-sig",
    )
    (course.parent / "in.zip").write_bytes(
        zipped({"Ada Lovelace_1_assignsubmission_file_/mini.ipynb": NOTEBOOK})
    )
    found = collect(
        "mini",
        course.parent / "in.zip",
        course,
        listing,
        timezone="Europe/Berlin",
        table=table,
    )
    assert submitted(course)["ada/mini/timestamp.txt"] == b"2026-11-22 22:59:00 UTC\n"
    assert found.strangers == [
        "worksheet.csv, line 4 is no student of the gradebook.",
        "worksheet.csv, line 5: 'whenever' is no time.",
    ]


def test_the_list_of_the_class_goes_into_the_gradebook_of_nbgrader(course, listing):
    collected(course, {}, listing)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        ada = gradebook.find_student("ada")
        assert (ada.first_name, ada.last_name, ada.email, ada.lms_user_id) == (
            "Ada",
            "Lovelace",
            "ada@example.org",
            "91",
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name\nada\n", "needs a column id"),
        ("id\nada\nADA\n", "ADA stands there twice"),
        ("id\n../x\n", "is no id"),
    ],
)
def test_a_fault_in_the_list_of_the_class_is_said(course, tmp_path, text, words):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(CannotReadRoster, match=words):
        collected(course, {}, tmp_path / "list.csv")


def test_what_is_no_download_is_refused_in_words(course, tmp_path):
    (tmp_path / "x.rar").write_bytes(b"Rar!")
    with pytest.raises(CannotUnpack, match="neither a folder nor a zip file"):
        collect("mini", tmp_path / "x.rar", course)
    with pytest.raises(CannotUnpack, match="There is no"):
        collect("mini", tmp_path / "nothing.zip", course)


def test_the_command_says_what_it_did(course, monkeypatch):
    collected(
        course,
        {"ada/homework.ipynb": NOTEBOOK, "bo/mini.ipynb": b"{}", "cy/note.txt": b""},
    )
    monkeypatch.chdir(course)
    told = CliRunner().invoke(app, ["collect", "mini", "../download.zip"])
    assert told.exit_code == 1
    assert "ada: homework.ipynb should be called mini.ipynb" in told.stdout
    assert "cy: There is no notebook. Handed in: note.txt." in told.stderr
    assert "bo: " in told.stderr
    assert "2 collected, 1 without a notebook." in told.stdout
