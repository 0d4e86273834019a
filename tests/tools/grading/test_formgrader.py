"""What a person marks in nbgrader's formgrader outlasts each later command of ours."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import pytest
from attack_class import SCALE, answered, open_class, source_notebook
from classroom import Classroom
from formgrader import formgrader
from nbgrader.api import Gradebook
from walled import need_a_sandbox
from whole import whole_only

pytestmark = [pytest.mark.slow, whole_only]

#: An answer that waits for a person, and a test whose mark a person thinks too low.
BY_HAND = {"why": (1.5, 0.5), "count-tests": (3.0, 0.25)}
WORDS = "Say what follows from it."


@dataclass(frozen=True)
class Marked:
    """A question as the gradebook has it."""

    auto: float | None
    manual: float | None
    extra: float | None
    waits: bool  # nbgrader's needs_manual_grade
    comment: str | None = None


Book = dict[str, Marked]


def read(classroom: Classroom) -> Book:
    with Gradebook(f"sqlite:///{classroom.root / 'gradebook.db'}") as gradebook:
        [notebook] = gradebook.find_submission("mini", "ada").notebooks
        said = {one.name: one.manual_comment for one in notebook.comments}
        return {
            one.name: Marked(
                one.auto_score,
                one.manual_score,
                one.extra_credit,
                one.needs_manual_grade,
                said.get(one.name),
            )
            for one in notebook.grades
        }


def hand_in(classroom: Classroom, scale: str) -> None:
    work = answered(classroom, scale, "def count(words):\n    return 0")
    work.cells[-1].source = "Because of its slope."
    classroom.submit("mini", "ada", work)


def release(classroom: Classroom, *changes: tuple[str, str]) -> None:
    """Release the assignment with lines of its tests written otherwise."""
    source = source_notebook()
    for cell in source.cells:
        for old, new in changes:
            cell.source = cell.source.replace(old, new)
    classroom.add_source("mini", source)
    classroom.run("nbgrader generate_assignment mini")


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> dict[str, Book]:
    """The gradebook after each step. The formgrader stays open all the time."""
    need_a_sandbox()
    folder = tmp_path_factory.mktemp("formgrader")
    classroom, found = open_class(folder / "course"), dict[str, Book]()
    hand_in(classroom, SCALE)
    classroom.run("course grade mini")
    found["graded"] = read(classroom)
    with formgrader(classroom.root) as person:
        opened = person.submission("mini", "ada")
        for grade in person.get(f"grades?submission_id={opened}"):
            if grade["name"] in BY_HAND:
                mark, extra = BY_HAND[grade["name"]]
                typed = {"manual_score": mark, "extra_credit": extra}
                person.put(f"grade/{grade['id']}", typed)
        for comment in person.get(f"comments?submission_id={opened}"):
            if comment["name"] == "why":
                person.put(f"comment/{comment['id']}", {"manual_comment": WORDS})
        found["marked"] = read(classroom)
        classroom.run("course grade mini")
        found["graded again"] = read(classroom)
        release(classroom, mended := ("14638", "7319 * 2"))
        classroom.run("course grade mini --question scale-tests")
        found["another question judged again"] = read(classroom)
        release(classroom, mended, ("mark += 2.0", "mark += 1.0"))
        classroom.run("course grade mini --question count-tests")
        found["its question judged again"] = read(classroom)
        hand_in(classroom, "def scale(x):\n    return x + x")
        stock = Classroom(folder / "stock")
        shutil.copytree(classroom.root, stock.root)
        classroom.run("course grade mini")
        found["handed in again"] = read(classroom)
        found["by formgrader's own word"] = {
            grade["name"]: grade
            for grade in person.get(f"grades?submission_id={opened}")
        }
    stock.run("nbgrader autograde mini --student ada --force")
    found["handed in again, by stock nbgrader"] = read(stock)
    return found


LATER = ["graded again", "another question judged again"]
ANEW = ["its question judged again", "handed in again"]


def by_hand(book: Book) -> dict[str, tuple]:
    return {name: (one.manual, one.extra, one.comment) for name, one in book.items()}


def test_marks_extra_credit_and_comment_are_in_the_gradebook(story):
    nothing = dict.fromkeys(story["graded"], (None, None, None))
    assert by_hand(story["graded"]) == nothing
    assert story["graded"]["why"].waits
    assert by_hand(story["marked"]) == nothing | {
        "why": (1.5, 0.5, WORDS),
        "count-tests": (3.0, 0.25, None),
    }


@pytest.mark.parametrize("step", [*LATER, *ANEW])
def test_they_are_there_after_each_command(story, step):
    assert by_hand(story[step]) == by_hand(story["marked"])


@pytest.mark.parametrize("step", LATER)
def test_who_is_not_judged_anew_in_these_questions_waits_for_nobody(story, step):
    assert story[step] == story["marked"]
    assert not any(one.waits for one in story[step].values())


def test_a_question_with_a_mark_by_hand_that_is_judged_anew_waits_for_a_person(story):
    """As nbgrader's SaveAutoGrades has it: the answer or its test may be another."""
    judged = story["its question judged again"]
    assert {name for name, one in judged.items() if one.waits} == {"count-tests"}
    again = story["handed in again"]
    assert {name for name, one in again.items() if one.waits} == {*BY_HAND}


def test_stock_nbgrader_leaves_the_same(story):
    assert story["handed in again"] == story["handed in again, by stock nbgrader"]


def test_the_open_formgrader_shows_what_the_commands_wrote(story):
    shown = story["by formgrader's own word"]
    for name, one in story["handed in again"].items():
        assert shown[name]["auto_score"] == one.auto
        assert shown[name]["needs_manual_grade"] == one.waits
