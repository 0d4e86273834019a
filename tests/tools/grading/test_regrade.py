"""A test was wrong and is mended: `course grade NAME --question ID` changes its marks
and no other."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from attack_class import POINTS, SCALE, answered, source_notebook
from classroom import Classroom
from nbgrader.api import Gradebook
from walled import need_a_sandbox

from course_tools.grading.run.grade import CannotGrade, grade
from course_tools.grading.run.regrade import Regraded, regrade

pytestmark = pytest.mark.slow

TRIPLE = "def scale(x):\n    return 3 * x"
WRONG = "answer.item() - 14638"
MENDED = "answer.item() - 3 * 7319"


@dataclass(frozen=True)
class Story:
    """What was found after each step."""

    classroom: Classroom
    before: dict[str, dict[str, float | None]]
    first: Regraded
    after: dict[str, dict[str, float | None]]
    log: list[dict]
    page: str
    second: Regraded
    both: Regraded
    graded_again: list[str]


def release(classroom: Classroom, *changes: tuple[str, str], flaky: str = "") -> None:
    """Release the assignment with some lines of its tests written otherwise."""
    source = source_notebook()
    for cell in source.cells:
        if cell.id == flaky:
            cell.metadata.tags = ["flaky"]
        for old, new in changes:
            cell.source = cell.source.replace(old, new)
    classroom.add_source("mini", source)
    classroom.run("nbgrader generate_assignment mini")


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    need_a_sandbox()
    classroom = Classroom.create(tmp_path_factory.mktemp("mended") / "course")
    # three times was meant; the hidden test asks for twice
    visible = ("[2.0, -4.0])), f", "[3.0, -6.0])), f")
    release(classroom, visible)
    root = classroom.root
    classroom.submit("mini", "ada", answered(classroom, TRIPLE))
    classroom.submit(
        "mini", "bo", answered(classroom, SCALE, "def count(words):\n    return 0")
    )
    classroom.submit("mini", "cy", answered(classroom, f"# cy\n{TRIPLE}"))
    grade("mini", root)
    before = classroom.scores_of_all("mini")
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        gradebook.find_grade("count-tests", "mini", "mini", "bo").manual_score = 1.5
        gradebook.db.commit()
    classroom.submit("mini", "cy", answered(classroom, f"# cy, again\n{TRIPLE}"))
    mended = (visible, (WRONG, MENDED))
    release(classroom, *mended)
    first = regrade("mini", "scale-tests", root)
    after = classroom.scores_of_all("mini")
    log = [
        json.loads(line)
        for line in (root / "grading-log.jsonl").read_text().splitlines()
    ]
    page = (root / "feedback" / "ada" / "mini" / "mini.html").read_text(
        encoding="utf-8"
    )
    second = regrade("mini", "scale-tests", root)
    # now two tests change at once: this one asks for twice again, the other asks for
    # other words
    release(classroom, ('["a", "b"]', '["c", "d"]'), flaky="count-tests")
    both = regrade("mini", "scale-tests", root)
    graded = grade("mini", root)
    return Story(
        classroom,
        before,
        first,
        after,
        log,
        page,
        second,
        both,
        [result.student for result in graded.results if not result.again],
    )


def test_the_difference_names_each_student_whose_mark_changes(story):
    assert [str(change) for change in story.first.changes] == ["ada: 0 -> 3"]
    assert story.first.same == ["bo"]


def test_the_other_marks_stay_and_so_does_a_mark_given_by_hand(story):
    full = POINTS | {"why": 0.0}
    assert story.before["ada"] == full | {"scale-tests": 0.0}
    assert story.after["ada"] == full
    with Gradebook(f"sqlite:///{story.classroom.root / 'gradebook.db'}") as gradebook:
        assert (
            gradebook.find_grade("count-tests", "mini", "mini", "bo").manual_score
            == 1.5
        )


def test_who_handed_in_again_is_left_to_the_whole_grading(story):
    assert story.first.left == [
        "cy is not graded yet, or handed in again. Run: course grade mini"
    ]
    assert story.after["cy"] == story.before["cy"]


def test_the_log_says_which_question_was_judged_again(story):
    lines = {line["student"]: line for line in story.log}
    assert [line["question"] for line in story.log] == [
        "",
        "",
        "",
        "scale-tests",
        "scale-tests",
    ]
    assert lines["ada"]["marks"]["scale-tests"] == 3.0
    assert (
        "scale-tests was judged again with a mended test: 0 -> 3."
        in lines["ada"]["notes"]
    )


def test_the_feedback_shows_the_new_mark_and_why_it_changed(story):
    assert "7 of 9 points" in story.page
    assert "scale-tests was judged again with a mended test: 0 -&gt; 3." in story.page


def test_a_second_run_judges_nobody_again(story):
    assert story.second.already == ["ada", "bo"]
    assert (story.second.changes, story.second.same) == ([], [])


def test_a_second_changed_test_is_named_and_its_marks_wait_for_the_whole_grading(story):
    assert story.both.others == {"count-tests"}
    assert [str(change) for change in story.both.changes] == [
        "ada: 3 -> 0",
        "bo: 0 -> 3",
    ]
    assert sorted(story.graded_again) == ["ada", "bo", "cy"]


def test_a_test_that_is_declared_to_depend_on_chance_was_run_again_where_it_failed(
    story,
):
    lines = [
        json.loads(line) for line in (story.classroom.root / "grading-log.jsonl").open()
    ]
    said = (
        "count-tests is declared to depend on chance. It was run 3 times, and the best"
        " counts."
    )
    assert [line["student"] for line in lines if said in line["notes"]] == ["bo", "bo"]
    assert not any(said in line["notes"] for line in lines[:5])


def test_a_question_that_is_not_there_is_refused_with_those_that_are(story):
    with pytest.raises(CannotGrade, match="It has: scale-tests, count-tests"):
        regrade("mini", "why", story.classroom.root)


def test_the_command_prints_the_difference(story):
    told = story.classroom.run("course grade mini --question scale-tests")
    assert "0 marks changed, 0 stay, 3 were judged by this test before." in told
