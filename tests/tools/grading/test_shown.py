"""A student's words reach a terminal on one line, of bounded length, and without a
letter that acts."""

from __future__ import annotations

from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from course_tools.grading.shown import shown


@given(st.text(), st.integers(10, 40))
def test_whatever_a_student_writes_is_one_line_that_can_be_printed_and_has_an_end(
    text, most
):
    words = shown(text, most)
    assert words.isprintable()
    assert len(words) <= most
    assert shown(words, most) == words, "words that pass through twice stay as they are"


@for_each(
    ("text", "words"),
    [
        (
            "\x1b[2J\x1b[32mall is well",
            r"\x1b[2J\x1b[32mall is well",
        ),  # clears the screen, and writes in green
        (
            "a\n3 of 4: zoe: 9 of 9",
            r"a\n3 of 4: zoe: 9 of 9",
        ),  # forges a line of the report
        ("a\rb\x9bc\u2028d", r"a\rb\x9bc\u2028d"),
        ("\u202exe.bypni", r"\u202exe.bypni"),  # a right-to-left override
        (
            "\udc80",
            r"\udc80",
        ),  # what Python makes of a file name that is no UTF-8; it could not be encoded
    ],
)
def test_what_acts_on_a_terminal_is_written_out(text, words):
    assert shown(text) == words


@for_each("name", ["Zoë O'Neil-Bœrs", "Ольга", "王小明", "mini (2).ipynb", "C:\\Users"])
def test_honest_names_stay_as_they_are(name):
    assert shown(name) == name


def test_a_name_of_megabytes_is_cut_and_says_so():
    words = shown("x" * 15_000_000)
    assert len(words) == 500
    assert words.endswith("x...")
