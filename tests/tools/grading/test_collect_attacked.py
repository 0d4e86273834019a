"""`course collect` when a student chose names to do harm: whose work it is, and when it
came, says the platform alone."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable

import pytest
from expect import refusal
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_collect import collected, numbered, submitted
from typer.testing import CliRunner

from course_tools.cli import app
from course_tools.grading.collect.collect import (
    MOST_ARCHIVES,
    MOST_REFUSED,
    Collection,
    collect,
)

HERS = numbered(666)
CLASS = """id,first_name,last_name,lms_user_id
ada,Ada,Lovelace,91
bob,Bob,Smith,92
mallory,Mallory,Moe,99
"""
BACK_DATED = "2026-11-01-00-00-00"
CAME = "2026-11-29-12-00-00"


@pytest.fixture
def listing(tmp_path):
    path = tmp_path / "class.csv"
    path.write_text(CLASS)
    return path


@pytest.mark.parametrize(
    "name", ["bob/mini/mini-9.ipynb", "bob/mini/mini.ipynb", "mini/bob/mini/mini.ipynb"]
)
@pytest.mark.parametrize(
    "his", [{"bob/x.ipynb": numbered(2)}, {}], ids=["he handed in", "he did not"]
)
def test_a_folder_inside_a_students_folder_is_that_students(course, listing, name, his):
    """Finding F9a: her folder bob/mini took the place of his work, or was his work."""
    collected(
        course, {"ada/mini.ipynb": numbered(1), f"mallory/{name}": HERS, **his}, listing
    )
    expected = {"ada/mini/mini.ipynb": numbered(1), "mallory/mini/mini.ipynb": HERS}
    assert submitted(course) == expected | (
        {"bob/mini/mini.ipynb": numbered(2)} if his else {}
    )


@pytest.mark.parametrize("platform", ["folders", "Moodle"])
def test_a_folder_with_the_form_of_moodles_inside_a_students_folder_is_that_students(
    course, listing, platform
):
    """Finding F9b: it was Bob's submission, who had handed in nothing."""
    names = {"folders": ("ada", "mallory")}.get(
        platform,
        (
            "Ada Lovelace_1_assignsubmission_file_",
            "Mallory Moe_3_assignsubmission_file_",
        ),
    )
    files = {
        f"{names[0]}/mini.ipynb": numbered(1),
        f"{names[1]}/Bob Smith_12_assignsubmission_file_/mini.ipynb": HERS,
    }
    assert collected(course, files, listing).ok
    assert submitted(course) == {
        "ada/mini/mini.ipynb": numbered(1),
        "mallory/mini/mini.ipynb": HERS,
    }


@pytest.mark.parametrize(
    ("his", "hers"),
    [
        ("bob/mini.ipynb", "mallory/smithbob_2_99_mini.ipynb"),
        ("bob/mini.ipynb", f"mallory/A1_bob_attempt_{CAME}_mini.ipynb"),
        (
            "Bob Smith_2_assignsubmission_file_/mini.ipynb",
            "Mallory Moe_3_assignsubmission_file_/smithbob_2_99_m.ipynb",
        ),
        (
            "Bob Smith_2_assignsubmission_file_m.ipynb",
            "Mallory Moe_3_assignsubmission_file_smithbob_2_99_m.ipynb",
        ),
        (
            "Bob Smith_2_assignsubmission_file_m.ipynb",
            (
                "Mallory Moe_3_assignsubmission_file_Bob"
                " Smith_2_assignsubmission_file_m.ipynb"
            ),
        ),
        (
            f"A1_bob_attempt_{CAME}_mini.ipynb",
            f"A1_mallory_attempt_{CAME}_x_bob_attempt_2026-11-30-00-00-00_m.ipynb",
        ),
        (
            "smithbob_92_7_mini.ipynb",
            f"moemallory_99_8_A1_bob_attempt_{CAME}_mini.ipynb",
        ),
        (
            "smithbob_92_7_mini.ipynb",
            "moemallory_99_8_Bob Smith_2_assignsubmission_file_mini.ipynb",
        ),
    ],
)
def test_a_file_with_the_name_of_another_students_keeps_nobody_out(
    course, listing, his, hers
):
    """Finding F9c: "bob is meant by several people: bob, bob", and his real work was
    left out."""
    assert collected(course, {his: numbered(2), hers: HERS}, listing).strangers == []
    taken = submitted(course)
    assert (taken["bob/mini/mini.ipynb"], taken["mallory/mini/mini.ipynb"]) == (
        numbered(2),
        HERS,
    )


@pytest.mark.parametrize("texts", [True, False])
def test_a_time_in_the_name_of_a_students_file_is_not_blackboards(course, texts):
    """Finding F9d: the time behind the last _attempt_ was believed, so late work cost
    nothing."""
    files = {f"A1_mallory_attempt_{CAME}_mallory_attempt_{BACK_DATED}_mini.ipynb": HERS}
    files |= {f"A1_ada_attempt_{CAME}_mini.ipynb": numbered(1)}
    files |= {
        f"A1_{user}_attempt_{CAME}.txt": b"Name:"
        for user in ("ada", "mallory")
        if texts
    }
    collected(course, files)
    assert (
        submitted(course)["mallory/mini/timestamp.txt"] == b"2026-11-29 12:00:00 UTC\n"
    )


def test_a_user_name_with_a_time_in_it_is_not_another_users_attempt(course):
    """Blackboard lets some choose a user name; it writes a text on each attempt, by
    which they are told apart."""
    user = f"bob_attempt_{BACK_DATED}_x"
    files = {
        f"A1_{user}_attempt_{CAME}_mini.ipynb": HERS,
        f"A1_{user}_attempt_{CAME}.txt": b"Name:",
    }
    files |= {
        f"A1_ada_attempt_{CAME}_mini.ipynb": numbered(1),
        f"A1_ada_attempt_{CAME}.txt": b"Name:",
    }
    found = collected(course, files)
    assert [
        words.endswith("its name says nothing about a student.")
        for words in found.strangers
    ] == [True, True]
    assert set(submitted(course)) == {"ada/mini/mini.ipynb", "ada/mini/timestamp.txt"}


def test_a_full_name_with_moodles_mark_in_it_is_not_another_students(course, listing):
    folder = "Bob Smith_1_assignsubmission_file__99_assignsubmission_file_"
    found = collected(
        course,
        {
            "Ada Lovelace_1_assignsubmission_file_/x.ipynb": numbered(1),
            f"{folder}/mini.ipynb": HERS,
        },
        listing,
    )
    assert found.strangers == [
        f"{folder}/mini.ipynb is left out: its name says nothing about a student."
    ]
    assert set(submitted(course)) == {"ada/mini/mini.ipynb"}


def test_a_user_name_that_ends_in_another_is_not_that_other(course, listing):
    files = {
        f"A1_ada_attempt_{CAME}_mini.ipynb": numbered(1),
        f"A1_x_bob_attempt_{CAME}_mini.ipynb": HERS,
    }
    found = collected(course, files, listing)
    assert "bob/mini/mini.ipynb" not in submitted(course)
    assert found.taken[1].student == "x_bob"


def test_a_timestamp_in_a_students_folder_is_the_students_unless_you_say_so(
    course, listing
):
    """Finding F9e: whoever could write in the folder could hand in on time for ever."""
    files = {
        "ada/mini.ipynb": numbered(1),
        "mallory/mini/mini.ipynb": HERS,
        "mallory/mini/timestamp.txt": b"2020-01-01",
    }
    found = collected(course, files, listing)
    assert (
        "timestamp.txt is left out, as the student could have written it"
        in found.taken[1].notes[0]
    )
    assert "mallory/mini/timestamp.txt" not in submitted(course)
    assert collected(course, files, listing, timestamps=True).taken[1].notes == []
    assert (
        submitted(course)["mallory/mini/timestamp.txt"] == b"2020-01-01 00:00:00 UTC\n"
    )


def test_a_name_of_canvas_with_another_number_is_somebody_else(course, listing):
    """On Canvas people may choose the name that they go by, but not their number."""
    found = collected(
        course,
        {"smithbob_99_7_mini.ipynb": HERS, "smithbob_77_8_mini.ipynb": HERS},
        listing,
    )
    assert set(submitted(course)) == {"mallory/mini/mini.ipynb"}
    assert "smithbob is nobody in the gradebook" in found.strangers[0]


def test_one_folder_that_may_be_a_students_own_is_asked_about(course, listing):
    """Where nobody else handed in, her folder looks as one around everybody's."""
    files = {"mallory/bob/mini.ipynb": HERS, "mallory/ada/mini.ipynb": HERS}
    with refusal("the folder mallory, which may be one student's or hold everybody's"):
        collected(course, files)
    assert submitted(course) == {}
    found = collected(course, files, listing)
    assert [one.student for one in found.taken] == ["mallory"]


def test_names_of_two_platforms_are_asked_about(course, tmp_path):
    """A title that ends in a number, and users who are numbers, have the form of
    Canvas, too."""
    files = {
        f"Task_1_4711_attempt_{CAME}_mini.ipynb": numbered(1),
        f"Task_1_4712_attempt_{CAME}_mini.ipynb": HERS,
    }
    with refusal(r"could be of Canvas or Blackboard\. Say which: --platform canvas"):
        collected(course, files)
    collected(course, files, platform="blackboard")
    assert submitted(course)["4711/mini/mini.ipynb"] == numbered(1)
    with refusal(
        r"no platform Ilias\. Choose one of Moodle, Canvas, Blackboard, Folders"
    ):
        collected(course, files, platform="ilias")


def test_a_student_with_countless_archives_costs_no_more_than_a_few(course):
    """Each that is looked into is held in memory."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mini.ipynb", HERS)
    files = {
        f"mallory/{number:03}.zip": buffer.getvalue()
        for number in range(MOST_ARCHIVES + 5)
    }
    found = collected(course, {"ada/mini.ipynb": numbered(1), **files}).taken[1]
    assert sum("looked into" in words for words in found.notes) == MOST_ARCHIVES
    assert "5 more archives stay closed; the last 10 count." in found.notes


def test_an_archive_with_countless_refused_files_is_told_in_a_few_lines(course):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(100):
            archive.writestr(f"../{number}", b"")
    notes = (
        collected(
            course, {"ada/x.ipynb": numbered(1), "mallory/work.zip": buffer.getvalue()}
        )
        .taken[1]
        .notes
    )
    assert len(notes) == MOST_REFUSED + 2
    assert "In work.zip, 90 more are refused." in notes


@pytest.mark.parametrize(
    "name", ["d", "d" * 250], ids=["1,200 levels", "a path that is too long"]
)
def test_folders_in_folders_without_end_keep_nobody_elses_work_out(
    course, tmp_path, name
):
    """Python's os.walk calls itself for each level, and stopped the class with a
    RecursionError."""
    download = tmp_path / "in"
    for student in ("ada", "mallory"):
        (download / student).mkdir(parents=True)
        (download / student / "mini.ipynb").write_bytes(numbered(1))
    here = os.open(download / "mallory", os.O_RDONLY)
    for _ in range(1200 if name == "d" else 20):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        assert [one.problem for one in collect("mini", download, course).taken] == [
            "",
            "",
        ]
    finally:
        # shutil.rmtree calls itself for each level, too
        subprocess.run(["rm", "-rf", download], check=True)


NASTY = "a\n3 of 4: zoe: 9 of 9\x1b[31m\u202e\x9b"


@pytest.mark.parametrize(
    "files",
    [
        {f"mallory/{NASTY}.ipynb": HERS},
        {f"mallory/{NASTY}.ipynb": HERS, f"mallory/{NASTY}2.ipynb": HERS},
        {f"mallory/{NASTY}.txt": b""},
        {f"mallory/{NASTY}.zip": b"PK"},
        {f"{NASTY}/mini.ipynb": HERS},
        {f"mallory/../{NASTY}": HERS},
        {f"mallory/{'x' * 60_000}.txt": b""},
    ],
)
def test_no_name_of_a_file_forges_a_line_or_acts_on_the_terminal(
    course, files, monkeypatch
):
    """Finding F11: as the kernel allows, a name may hold ends of lines and a terminal's
    escape codes."""
    found = collected(course, {"ada/x.ipynb": numbered(1), **files})
    told = [
        *found.strangers,
        *(
            words
            for one in found.taken
            for words in (*one.notes, one.problem, one.source)
        ),
    ]
    monkeypatch.chdir(course)
    printed = (
        CliRunner()
        .invoke(app, ["collect", "mini", "../download.zip"])
        .output.splitlines()
    )
    for words in [*told, *printed]:
        assert words.isprintable()
        assert len(words) < 600
        assert not words.startswith("3 of 4")


# The property: a class with honest files, and whatever names she chooses inside her own
# place.

LAYOUTS: dict[str, tuple[dict[str, bytes], str]] = {
    "Moodle": (
        {
            "Ada Lovelace_11_assignsubmission_file_/mini.ipynb": numbered(1),
            "Bob Smith_12_assignsubmission_file_/work.ipynb": numbered(2),
        },
        "Mallory Moe_13_assignsubmission_file_/",
    ),
    "Moodle without folders": (
        {
            "Ada Lovelace_11_assignsubmission_file_mini.ipynb": numbered(1),
            "Bob Smith_12_assignsubmission_file_work.ipynb": numbered(2),
        },
        "Mallory Moe_13_assignsubmission_file_",
    ),
    "Canvas": (
        {
            "lovelaceada_91_801_mini.ipynb": numbered(1),
            "smithbob_LATE_92_802_work.ipynb": numbered(2),
        },
        "moemallory_99_803_",
    ),
    "Blackboard": (
        {
            f"A1_ada_attempt_{CAME}.txt": b"Name: Ada",
            f"A1_ada_attempt_{CAME}_mini.ipynb": numbered(1),
            f"A1_bob_attempt_{CAME}.txt": b"Name: Bob",
            f"A1_bob_attempt_{CAME}_work.ipynb": numbered(2),
            f"A1_mallory_attempt_{CAME}.txt": b"Name: Mallory",
        },
        f"A1_mallory_attempt_{CAME}_",
    ),
    "folders": (
        {"ada/mini.ipynb": numbered(1), "bob/mini/work.ipynb": numbered(2)},
        "mallory/",
    ),
    "folders in a folder": (
        {"in/ada/mini.ipynb": numbered(1), "in/bob/mini/work.ipynb": numbered(2)},
        "in/mallory/",
    ),
}
PIECES = st.sampled_from(
    [
        "bob",
        "ada",
        "mini",
        "mini.ipynb",
        "mini-9.ipynb",
        "work.ipynb",
        "timestamp.txt",
        ".txt",
        ".ipynb",
        "A1",
        "A1_bob",
        "_",
        "LATE_",
        "smithbob_92_802_",
        "smithbob_2_99_",
        "Bob Smith",
        "Bob Smith_12_assignsubmission_file_",
        "term",
        f"_attempt_{BACK_DATED}",
        f"A1_bob_attempt_{BACK_DATED}_",
        f"bob_attempt_{CAME}",
        "submitted",
        "\\",
        "\n",
        "a b",
    ]
)
# a zip's name ends at a zero
LETTERS = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), max_size=4)
NAMES = st.lists(PIECES | LETTERS, min_size=1, max_size=5).map("".join)
PLACES = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
Run = Callable[[dict[str, bytes]], tuple[dict[str, bytes], Collection]]


@pytest.fixture(scope="module")
def run(empty_course, tmp_path_factory):
    """Collect a download in a course that knows the class, with nothing collected
    before. Notebooks are read in this process, as where nothing can be forked: what is
    asked is whose they are."""
    root = tmp_path_factory.mktemp("attacked")
    course, listing = shutil.copytree(empty_course, root / "course"), root / "class.csv"
    listing.write_text(CLASS)

    def collect_files(files: dict[str, bytes]) -> tuple[dict[str, bytes], Collection]:
        shutil.rmtree(course / "submitted", ignore_errors=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.delattr(os, "fork")
            found = collected(course, files, listing)
        return submitted(course), found

    return collect_files


@pytest.fixture(scope="module")
def without(run):
    """By platform, what is collected where she hands in nothing."""
    return {layout: run(honest) for layout, (honest, _) in LAYOUTS.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=40, deadline=None)
@given(hers=st.lists(PLACES, max_size=12))
@example(hers=["bob/mini/mini-9.ipynb"])
@example(hers=["Bob Smith_12_assignsubmission_file_/mini.ipynb"])
@example(hers=["smithbob_92_802_mini.ipynb"])
@example(
    hers=[
        f"mallory_attempt_{BACK_DATED}_mini.ipynb",
        "timestamp.txt",
        "mini/timestamp.txt",
        "mini.ipynb",
    ]
)
@example(hers=[f"{number}\\mini.ipynb" for number in range(12)])
@example(hers=[f"{number}\nmini.ipynb" for number in range(12)])
@example(
    hers=[
        f"{number}_12_assignsubmission_file_x_attempt_{BACK_DATED}_mini.ipynb"
        for number in range(12)
    ]
)
def test_no_name_of_hers_changes_what_is_taken_of_others_or_when_hers_came(
    run, without, layout, hers
):
    honest, place = LAYOUTS[layout]
    flat = not place.endswith("/")
    names = {f"{place}{name.replace('/', '_') if flat else name}" for name in hers}
    files = {
        name: b"2020-01-01 00:00:00 UTC" if name.endswith("timestamp.txt") else HERS
        for name in names
    }
    before, alone = without[layout]
    taken, found = run(honest | files)

    def of_others(those: dict[str, bytes]) -> dict[str, bytes]:
        return {
            name: data
            for name, data in those.items()
            if not name.startswith("mallory/")
        }

    assert of_others(taken) == of_others(before)
    others = [
        [one for one in each.taken if one.student != "mallory"]
        for each in (found, alone)
    ]
    assert others[0] == others[1], "what is said about them, too"
    assert [
        words
        for words in found.strangers
        if not words.startswith(place.removesuffix("/"))
    ] == []
    when = (
        {"mallory/mini/timestamp.txt": b"2026-11-29 12:00:00 UTC\n"}
        if layout == "Blackboard"
        else {}
    )
    work = {"mallory/mini/mini.ipynb": HERS}
    mine = {name: data for name, data in taken.items() if name.startswith("mallory/")}
    assert mine in ({}, work | when), "her own time is the platform's, or there is none"
