"""Only a test that the source declares to depend on chance is run again, and only where
it failed."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from mini_assignment import released_notebook, source_notebook

from course_tools.grading.run import rounds
from course_tools.grading.run.execute import Transcript, settled
from course_tools.grading.run.grade import progress
from course_tools.grading.run.plan import flaky_tests

DECLARED = {"margin-tests": 3.0}


def told(
    margin: float | None, squares: float = 0.0, tampering: str = "", trouble: str = ""
) -> Transcript:
    marks = {
        "squares-tests": {"name": "squares-tests", "earned": squares, "tampering": ""}
    }
    if margin is not None:
        marks["margin-tests"] = {
            "name": "margin-tests",
            "earned": margin,
            "tampering": tampering,
        }
    return Transcript(marks=marks, trouble=trouble)


class Runs:
    """One report after the other; says how many were asked for."""

    def __init__(self, *reports: Transcript) -> None:
        self.reports: Iterator[Transcript] = iter(reports)
        self.count = 0

    def __call__(self) -> Transcript:
        self.count += 1
        return next(self.reports)


def test_the_source_declares_it_with_a_tag_on_a_test_cell():
    notebook = source_notebook()
    assert flaky_tests(notebook) == {}
    for cell in notebook.cells:
        cell.metadata.tags = ["flaky"]  # of an answer and of a text it means nothing
    assert flaky_tests(notebook) == {"margin-tests": 3.0, "squares-tests": 4.0}


def test_what_a_student_tags_is_no_declaration():
    released = released_notebook()
    for cell in released.cells:
        cell.metadata.tags = ["flaky"]
    assert flaky_tests(source_notebook()) == {}


def test_a_declared_test_that_passes_at_the_third_time_has_passed():
    runs = Runs(told(0.0), told(0.0), told(3.0))
    transcript = settled(runs, DECLARED)
    assert runs.count == 3
    assert transcript.marks["margin-tests"]["earned"] == 3.0
    assert rounds.words(transcript) == [
        "margin-tests is declared to depend on chance. It was run 3 times, and the best"
        " counts."
    ]


def seen(margin: float, error: str) -> Transcript:
    told = {
        "name": "margin-tests",
        "earned": margin,
        "error": error,
        "words": error,
        "printed": "",
        "tampering": "",
    }
    return Transcript(tests={"margin-tests": told})


def test_in_a_visible_round_words_are_of_the_run_in_which_nothing_was_raised():
    runs = Runs(seen(0.0, "AssertionError"), seen(1.5, ""))
    transcript = settled(runs, DECLARED)
    assert runs.count == 2
    # of 3 points: the others may be for hidden parts
    assert transcript.tests == seen(1.5, "").tests
    assert transcript.repeated == {"margin-tests": 2}


def test_it_is_not_run_again_once_it_passed_nor_more_than_three_times():
    for reports, count in (
        ([told(3.0)], 1),
        ([told(0.0), told(3.0)], 2),
        ([told(0.0), told(1.5), told(1.0)], 3),
    ):
        runs = Runs(*reports)
        transcript = settled(runs, DECLARED)
        assert runs.count == count
        assert transcript.marks["margin-tests"]["earned"] == max(
            r.marks["margin-tests"]["earned"] for r in reports
        )


def test_a_test_that_is_not_declared_keeps_its_first_result():
    transcript = settled(Runs(told(0.0, squares=0.0), told(3.0, squares=4.0)), DECLARED)
    assert transcript.marks["squares-tests"]["earned"] == 0.0
    runs = Runs(told(0.0))
    settled(runs, {})
    assert runs.count == 1


@pytest.mark.parametrize(
    "first",
    [
        told(0.0, tampering="garbled"),
        told(None),
        told(0.0, trouble="It was not done after 600 s."),
    ],
)
def test_tampering_and_work_that_never_ends_get_no_second_chance(first):
    runs = Runs(first)
    assert settled(runs, DECLARED) is first
    assert runs.count == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_shows_how_many_and_the_time_that_is_left(capsys):
    terminal = Terminal()
    with progress(terminal) as (say, expect):
        expect(4)
        for student in ("ada", "bo", "cy"):
            say(f"{student}: 7 of 9")
    assert "3/4" in terminal.getvalue()
    assert "<" in terminal.getvalue()  # elapsed<left
    assert capsys.readouterr().out == "ada: 7 of 9\nbo: 7 of 9\ncy: 7 of 9\n"


def test_where_nobody_watches_there_are_lines_alone(capsys):
    with progress() as (say, expect):
        expect(2)
        say("ada: 7 of 9")
    assert capsys.readouterr() == ("ada: 7 of 9\n", "")
