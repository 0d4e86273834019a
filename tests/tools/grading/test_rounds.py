"""Visible rounds of a class come before hidden ones, and what the clock stopped in
company counts only when alone."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from mini_assignment import released_notebook, source_notebook
from nbformat import NotebookNode
from walled import need_a_sandbox

from course_tools.grading.assignments.comparisons import with_comparisons
from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.collect.intake import Submission
from course_tools.grading.run.class_run import run_class
from course_tools.grading.run.execute import (
    Round,
    Run,
    Transcript,
    execute,
    visible_round,
)
from course_tools.grading.run.judge import judge
from course_tools.grading.run.plan import steps
from course_tools.grading.run.rounds import POINTS_ALONE, Rounds, words
from course_tools.grading.sandbox.sandbox import Limits, Worker

SECRET = "margin(2, 9)"  # in a hidden test alone


class Killed(BaseException):
    """What ends a command here."""


def student_of(one: Round) -> str:
    return one.steps[0]["source"]


def outcome(one: Round) -> Transcript:
    """What a round gives: words if it is visible, points if it is hidden."""
    name = student_of(one)
    if one.hidden:
        return Transcript(
            marks={
                "margin-tests": {"name": "margin-tests", "earned": 1.0, "tampering": ""}
            },
            seconds=1.0,
        )
    told = {
        "name": "margin-tests",
        "earned": 0.0,
        "error": "E",
        "words": f"words for {name}",
        "printed": f"by {name}",
    }
    cell = {"index": 0, "printed": f"cell of {name}", "result": None, "error": None}
    return Transcript(
        tests={"margin-tests": told | {"tampering": ""}},
        cells={0: cell},
        deadly=[7],
        seconds=1.0,
    )


@dataclass
class Machines:
    """Stand-ins for what runs submissions elsewhere; they note what they ran."""

    run: Callable[[Round], Transcript] = outcome
    count: int = 1
    ran: list[tuple[str, bool]] = field(default_factory=list)

    def hands(self, files: object, limits: object, chancy: object) -> list[Run]:
        def run(one: Round) -> Transcript:
            self.ran.append((student_of(one), one.hidden))
            return self.run(one)

        return [run] * self.count


def the_class(*students: str) -> list[Submission]:
    return [Submission(student, Path(student), student) for student in students]


def plan_of(submission: Submission) -> list[dict]:
    own = {"kind": "student", "index": 0, "source": submission.digest, "names": []}
    return [own, *steps(source_notebook(), released_notebook(), released_notebook())]


def ran(
    machines: Machines, submissions: list[Submission], rounds: Rounds | None
) -> dict[str, Transcript]:
    found = {}
    for submission, transcript in run_class(
        submissions, plan_of, {}, 1, machines, Limits(), {}, rounds
    ):
        assert transcript is not None
        found[submission.student] = transcript
    return found


@pytest.fixture
def rounds(tmp_path):
    return Rounds(tmp_path, "mini", released_notebook())


def another_release() -> NotebookNode:
    released = released_notebook()
    released.cells[0].source = "# Mended"
    return released


def test_every_visible_round_of_a_class_comes_before_every_hidden_one(rounds):
    machines = Machines(count=3)
    found = ran(machines, the_class("a", "b", "c", "d"), rounds)
    assert [hidden for _, hidden in machines.ran] == [False] * 4 + [True] * 4
    assert found["b"].tests["margin-tests"]["words"] == "words for b"
    assert found["b"].marks["margin-tests"]["earned"] == 1.0


def test_a_visible_round_holds_no_hidden_test_and_a_hidden_one_what_went_before():
    told: list[Round] = []
    ran(Machines(lambda one: told.append(one) or outcome(one)), the_class("a"), None)
    visible, hidden = (json.dumps(vars(one)) for one in told)
    assert SECRET in hidden
    assert SECRET not in visible
    assert (told[1].deadly, told[1].spent) == ([7], 1.0)


def test_that_hidden_rounds_begin_is_on_the_disk_before_one_does(rounds, tmp_path):
    began: list[tuple[bool, bool]] = []
    machines = Machines(
        lambda one: began.append((one.hidden, rounds.hidden_began())) or outcome(one)
    )
    ran(machines, the_class("a", "b"), rounds)
    assert began == [(False, False), (False, False), (True, True), (True, True)]
    assert not Rounds(tmp_path, "mini", another_release()).hidden_began()


def silent(transcript: Transcript) -> bool:
    return transcript.points_alone and not any(
        (transcript.tests, transcript.cells, transcript.given)
    )


def test_who_comes_after_a_hidden_round_gets_points_and_no_words(rounds):
    ran(Machines(), the_class("a"), rounds)
    late = ran(Machines(), the_class("b"), rounds)["b"]
    assert silent(late)
    assert words(late) == [POINTS_ALONE]
    released = released_notebook()
    late = replace(late, cells={})
    notebook, (margin, _, _) = judge(released, late, released)
    assert (margin.earned, margin.words) == (1.0, "It earns a part of its points.")
    assert "for b" not in json.dumps(notebook)


def test_what_is_no_mark_of_its_question_earns_nothing():
    """Whatever a referee is made to report; `margin-tests` is worth 3 points."""
    name, earned = "margin-tests", {}
    told = {"name": name, "earned": 3.0, "error": "", "words": "", "printed": ""}
    for mark in (3, 2.5, 3.5, -1.0, math.inf, math.nan, "3", True, None):
        said = {"name": name, "earned": mark, "tampering": ""}
        transcript = Transcript(tests={name: told}, marks={name: said})
        _, (margin, _, _) = judge(released_notebook(), transcript, released_notebook())
        earned[repr(mark)] = margin.earned
    assert earned == dict.fromkeys(earned, 0.0) | {"3": 3.0, "2.5": 2.5}


def test_where_only_a_hidden_test_fails_a_comparing_one_says_what_kinds_it_tries(
    tmp_path,
):
    """The same words for everybody: a hidden round has told points alone."""
    (tmp_path / "hidden.py").touch()
    name, seen = (
        "margin-tests",
        {"earned": 3.0, "error": "", "words": "", "printed": ""},
    )
    failed = {"name": name, "earned": 0.0, "tampering": ""}
    transcript = Transcript(tests={name: seen}, marks={name: failed})
    said = []
    for hidden in ("assert margin(1) == 2", "# {compare:margin}"):
        instructor = released_notebook()
        [test] = [cell for cell in instructor.cells if grade_id(cell) == name]
        test.source += "\n" + with_comparisons(hidden, tmp_path / "mini.py")
        said.append(judge(released_notebook(), transcript, instructor)[1][0].words)
    plain, comparing = said
    assert plain == "The tests that you see pass; a hidden test fails."
    assert comparing.startswith(f"{plain} It compares your answer with a reference")


def test_words_are_dropped_where_another_command_began_hidden_rounds_meanwhile(rounds):
    machines = Machines(lambda one: rounds.begin_hidden() or outcome(one))
    assert silent(ran(machines, the_class("a"), rounds)["a"])


def test_the_instructors_own_answers_have_words_however_often_they_run(rounds):
    rounds.begin_hidden()
    found = ran(Machines(), the_class("a"), None)["a"]
    assert found.tests["margin-tests"]["words"] == "words for a"
    assert not found.points_alone


STUDENTS = ("a", "b", "twin-of-b", "c")


def handed_in() -> list[Submission]:
    found = the_class(*STUDENTS)
    found[2].digest = "b"  # runs the same cells
    return found


@pytest.mark.parametrize(
    "kill", range(7)
)  # three visible rounds, three hidden ones, and none
def test_a_command_killed_at_any_round_gives_the_same_words_when_started_again(
    rounds, tmp_path, kill
):
    def dies(one: Round) -> Transcript:
        if len(first.ran) > kill:
            raise Killed
        return outcome(one)

    undisturbed = ran(
        Machines(),
        handed_in(),
        Rounds(tmp_path / "undisturbed", "mini", released_notebook()),
    )
    first, second, found = Machines(dies), Machines(), dict[str, Transcript]()
    try:
        for submission, transcript in run_class(
            handed_in(), plan_of, {}, 1, first, Limits(), {}, rounds
        ):
            assert transcript is not None
            found[submission.student] = transcript
    except Killed:
        left = [
            submission for submission in handed_in() if submission.student not in found
        ]
        found |= ran(second, left, rounds)
    assert found == undisturbed
    assert not any(found[student].points_alone for student in STUDENTS)
    done = first.ran[:kill] + second.ran
    assert sorted(done) == sorted(
        (student, hidden) for student in "abc" for hidden in (False, True)
    ), "none is repeated"


def test_who_is_judged_by_a_mended_hidden_test_keeps_the_words_without_a_run(rounds):
    before = ran(Machines(), handed_in(), rounds)
    machines = Machines()
    assert ran(machines, handed_in(), rounds) == before
    assert machines.ran == [(student, True) for student in "abc"]


def test_what_is_kept_is_of_the_notebook_that_was_handed_in_and_no_other(
    rounds, tmp_path
):
    def dies(one: Round) -> Transcript:
        if one.hidden:
            raise Killed
        return outcome(one)

    with pytest.raises(Killed):
        ran(Machines(dies), the_class("a"), rounds)
    again = the_class("a")
    again[0].digest = "another answer"
    assert silent(ran(Machines(), again, rounds)["a"])
    other = Rounds(tmp_path, "mini", another_release())
    assert not silent(ran(Machines(), again, other)["a"]), (
        "whose hidden rounds have not begun"
    )


def late_in_company(slow: bool) -> tuple[Machines, list[int]]:
    """Two rounds at a time: that of the student "late" is late beside another, and if
    it is slow, alone as well.

    Returns:
        The machines, and a list of how many rounds were under way when each began.
    """
    meet = threading.Barrier(2, timeout=60)
    lock = threading.Lock()
    seen = set()
    under_way = []
    counts = list[int]()

    def run(one: Round) -> Transcript:
        who = student_of(one), one.hidden
        with lock:
            under_way.append(who)
            counts.append(len(under_way))
            alone = who in seen
            seen.add(who)
        if not alone:
            meet.wait()
        with lock:
            under_way.remove(who)
        is_late = who[0] == "late" and (slow or not alone)
        return replace(outcome(one), late=["margin-tests"] if is_late else [])

    return Machines(run, count=2), counts


def test_what_was_late_while_others_ran_is_run_again_alone_at_the_end_of_each_phase(
    rounds,
):
    machines, counts = late_in_company(slow=False)
    found = ran(machines, the_class("late", "other"), rounds)
    for hidden, phase in ((False, machines.ran[:3]), (True, machines.ran[3:])):
        assert sorted(phase[:2]) == [("late", hidden), ("other", hidden)]
        assert phase[2:] == [("late", hidden)]
    assert (counts[2], counts[5]) == (1, 1)
    assert words(found["other"]) == []
    assert words(found["late"]) == [
        "It was stopped as late while 1 other submission ran; it was run again alone,"
        " and that counts."
    ]


def test_no_hidden_round_runs_early_because_a_twin_has_had_its_visible_one(rounds):
    def dies(one: Round) -> Transcript:
        if one.hidden:
            raise Killed
        return outcome(one)

    students = the_class("late", "other", "twin")
    students[2].digest = "late"  # runs the same cells
    with pytest.raises(Killed):
        ran(Machines(dies), students[2:], rounds)
    rounds.record.unlink()
    machines, _ = late_in_company(slow=False)
    ran(machines, students, rounds)
    assert [hidden for _, hidden in machines.ran] == [False] * 3 + [True] * 3


def test_what_is_late_alone_as_well_is_not_tried_a_third_time(rounds):
    machines, _ = late_in_company(slow=True)
    found = ran(machines, the_class("late", "other"), rounds)
    assert [hidden for student, hidden in machines.ran if student == "late"] == [
        False,
        False,
        True,
    ]
    assert found["late"].late == ["margin-tests"]


def test_what_is_late_where_nothing_else_ran_stays_late(rounds):
    machines = Machines(lambda one: replace(outcome(one), late=["margin-tests"]))
    found = ran(machines, the_class("a", "b"), rounds)
    assert machines.ran == [("a", False), ("b", False), ("a", True), ("b", True)]
    assert words(found["a"]) == []


@pytest.fixture(scope="module")
def worker():
    need_a_sandbox()
    with Worker(Limits(cell_seconds=1.0)) as worker:
        yield worker


@pytest.mark.slow
def test_the_referee_says_what_the_clock_stopped(worker):
    endless = "while True: pass"
    cells = [endless, "import os; os._exit(0)", f"def answer():\n    {endless}"]
    asked = [
        {"kind": "student", "index": place, "source": cell, "names": []}
        for place, cell in enumerate(cells)
    ]
    asked[-1]["names"] = ["answer"]
    test = {
        "kind": "test",
        "name": "answer-tests",
        "visible": "answer()",
        "source": "answer()",
        "points": 1.0,
    }
    transcript = execute(worker, visible_round([*asked, test]), {})
    assert {"cell 0", "answer-tests"} <= set(transcript.late)
    assert transcript.deadly == [1]


@pytest.mark.slow
def test_a_round_that_has_no_time_left_is_late_as_a_whole(worker):
    transcript = execute(
        worker, Round(hidden=True, steps=[], spent=worker.limits.total_seconds), {}
    )
    assert transcript.trouble == "It was not done after 600 s and was stopped."
    assert transcript.late == [""]
