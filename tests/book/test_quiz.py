"""A quiz question is data that cannot be shown half finished, and the book's quizzes do
not give their keys away."""

import re
from pathlib import Path

import pytest
from cases import for_each
from places import BOOK
from quiz_data import (
    ENOUGH_TO_BALANCE,
    Choice,
    Question,
    QuizError,
    lint_book,
    parse_question,
)

from course_tools.claims.check import chapter_pages

GOOD = """
question: Over which positions does the softmax run?
choices:
  - {text: Source positions., correct: true, explanation: Weights of one target word sum to 1.}
  - {text: Target positions., explanation: Target words do not compete for a source word.}
  - {text: Features., explanation: Features are summed by the score already.}
"""  # noqa: E501


def questions_of_page(page: Path) -> list[Question]:
    fences = re.findall(
        r"^(`{3,}|:{3,})\{quiz\}\n(.*?)^\1\s*$",
        page.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return [parse_question(body) for _, body in fences]


def question_with_key_at(position: int, key: str = "aaa") -> Question:
    choices = [
        Choice("bbbb", "no", False),
        Choice("cccc", "nor this", False),
        Choice("dddd", "nor that", False),
    ]
    choices.insert(position, Choice(key, "yes", True))
    return Question("?", tuple(choices), multiple=False)


def test_a_complete_question_is_read_as_written():
    question = parse_question(GOOD)
    assert question.keys == [0]
    assert [choice.text for choice in question.choices] == [
        "Source positions.",
        "Target positions.",
        "Features.",
    ]
    assert not question.multiple


@for_each(
    ("old", "new", "words"),
    [
        (
            "correct: true, ",
            "",
            "exactly one choice must be marked correct: true, found 0",
        ),
        (
            "Target positions., ",
            "Target positions., correct: true, ",
            "found 2; declare multiple: true",
        ),
        (
            ", explanation: Target words do not compete for a source word.",
            "",
            "choice B lacks 'explanation'",
        ),
        (
            "Target words do not compete for a source word.",
            "''",
            "the explanation of choice B must be text",
        ),
        ("Target positions.", "Source positions.", "two choices have the same text"),
        ("correct: true", "correct: 'yes'", "'correct' is true or false"),
        ("correct: true", "right: true", "choice A has unknown 'right'"),
        ("question: Over", "question: [Over", "not valid YAML"),
    ],
)
def test_a_faulty_question_is_refused_in_words(old, new, words):
    assert old in GOOD
    with pytest.raises(QuizError, match=re.escape(words)):
        parse_question(GOOD.replace(old, new, 1))


def test_several_keys_need_a_declaration_and_a_wrong_choice():
    several = "multiple: true" + GOOD.replace(
        "Target positions., ", "Target positions., correct: true, "
    )
    assert parse_question(several).keys == [0, 1]
    with pytest.raises(QuizError, match="3 of 3 are marked correct"):
        parse_question(several.replace("Features., ", "Features., correct: true, "))


def test_keys_that_always_stand_at_the_same_place_are_found():
    spread = [question_with_key_at(n % 4) for n in range(ENOUGH_TO_BALANCE)]
    assert lint_book(spread) == []
    piled = [
        question_with_key_at(2 if n < 5 else n % 4) for n in range(ENOUGH_TO_BALANCE)
    ]
    assert any("are choice C" in fault for fault in lint_book(piled))
    assert lint_book(piled[: ENOUGH_TO_BALANCE - 1]) == []  # too few to judge


def test_keys_that_are_always_the_longest_choice_are_found():
    long = [
        question_with_key_at(n % 4, key="aaaaa" if n < 6 else "aaa")
        for n in range(ENOUGH_TO_BALANCE)
    ]
    assert any("the key is the longest choice" in fault for fault in lint_book(long))
    half = [
        question_with_key_at(n % 4, key="aaaaa" if n < 5 else "aaa")
        for n in range(ENOUGH_TO_BALANCE)
    ]
    assert lint_book(half) == []


def test_each_chapter_asks_four_questions_and_no_key_can_be_guessed():
    chapters = [BOOK / f"{stem}.md" for stem in chapter_pages(BOOK).values()]
    assert chapters
    questions = {chapter.name: questions_of_page(chapter) for chapter in chapters}
    assert {
        name: len(found) for name, found in questions.items() if len(found) < 4
    } == {}
    assert (
        lint_book([question for found in questions.values() for question in found])
        == []
    )
    for name, found in questions.items():
        assert len({question.keys[0] for question in found}) >= 3, (
            f"{name}: the keys stand at too few positions"
        )
