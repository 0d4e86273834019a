"""The audit log: a line for each submission, on the disk at once; a line that a crash
cut off does no harm."""

from __future__ import annotations

import json

import pytest
from gradebook_class import enter_assignment
from hypothesis import given
from hypothesis import strategies as st

from course_tools.grading.run.record import Entry, append, lines

ENTRY = {"student": "Zoë", "marks": {"part": 1.0, "essay": None}}


def test_what_is_appended_is_read_in_its_order(tmp_path):
    for number in range(3):
        append(tmp_path / "log", ENTRY | {"number": number})
    assert list(lines(tmp_path / "log")) == [
        ENTRY | {"number": number} for number in range(3)
    ]
    assert list(lines(tmp_path / "none")) == []


@pytest.mark.parametrize("cut", range(1, len(json.dumps(ENTRY))))
def test_a_line_cut_off_at_any_place_does_not_count_and_the_next_is_whole(
    tmp_path, cut
):
    log = tmp_path / "log"
    append(log, {"student": "ada"})
    with log.open("a") as file:
        file.write(json.dumps(ENTRY)[:cut])
    assert list(lines(log)) == [{"student": "ada"}]
    append(log, {"student": "bo"})
    assert list(lines(log)) == [{"student": "ada"}, {"student": "bo"}]


def test_a_line_that_lost_only_its_end_counts(tmp_path):
    log = tmp_path / "log"
    log.write_text(json.dumps(ENTRY))
    append(log, {"student": "bo"})
    assert list(lines(log)) == [ENTRY, {"student": "bo"}]


@given(
    words=st.text(st.characters(), max_size=20)
    | st.sampled_from(["\udc80", "\x1b[2J", "\x9b", "\u2028", "\u202e"])
)
def test_no_word_of_a_students_acts_on_a_terminal_breaks_a_line_or_cannot_be_written(
    words, tmp_path_factory
):
    """Finding F11: the log is read with `less` and `cat`, too."""
    log = tmp_path_factory.mktemp("words") / "log"
    append(log, {"notes": [words]})
    assert list(lines(log)) == [{"notes": [words]}]
    assert log.read_text("ascii").removesuffix("\n").isprintable()


def test_words_without_end_are_cut_where_they_are_logged(course):
    """Finding F12: every later run reads the log, which held a name of 15 MB."""
    records, endless = enter_assignment(course), "x" * 1_000_000
    records.write(
        Entry("", "mini", "ada", "", "", "", {}, endless, [endless], [endless]),
        None,
        [],
    )
    line = records.done()["ada"]
    for words in (line["problem"], *line["notes"], *line["tampering"]):
        assert words == "x" * 497 + "..."
