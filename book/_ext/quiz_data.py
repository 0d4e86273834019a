"""Quiz questions as data: read one from YAML, and refuse a question, or a book of them,
that gives its answer away.

The directive (`quiz.py`), the notebooks for Colab (`student_notebook.py`) and the tests
all read questions here: what builds also passes the lint. This module knows nothing of
Sphinx.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

#: From this many single-key questions on, the positions of the keys and the lengths of
#: the choices must be balanced.
ENOUGH_TO_BALANCE = 10
LARGEST_SHARE_OF_A_POSITION = 0.4
LARGEST_SHARE_OF_LONGEST_KEYS = 0.5


class QuizError(ValueError):
    """A question, or a set of questions, that must be mended before it is shown."""


@dataclass(frozen=True)
class Choice:
    """One answer to choose from; `explanation` is shown when it is chosen and says why
    it is right or wrong."""

    text: str
    explanation: str
    correct: bool


@dataclass(frozen=True)
class Question:
    """One quiz question, in MyST Markdown; `multiple` lets the reader tick several
    choices."""

    text: str
    choices: tuple[Choice, ...]
    multiple: bool

    @property
    def keys(self) -> list[int]:
        """Positions of the right choices, counted from 0."""
        return [
            position for position, choice in enumerate(self.choices) if choice.correct
        ]


def letter(position: int) -> str:
    """Name a choice by its position: 0 is A."""
    return string.ascii_uppercase[position]


def parse_question(source: str) -> Question:
    """Read the body of a `{quiz}` directive.

    Parameters
    ----------
    source
        YAML with `question`, `choices` (each with `text`, `explanation` and, on a key,
        `correct: true`) and, where the reader may tick several, `multiple: true`.

    Raises
    ------
    QuizError
        If it is not such YAML, an explanation is missing, the number of keys is wrong,
        or two choices say the same.
    """
    try:
        data = yaml.safe_load(source)
    except yaml.YAMLError as error:
        raise QuizError(f"the quiz is not valid YAML: {error}") from error
    fields = _fields(data, {"question", "choices"}, {"multiple"}, "a quiz")
    if not isinstance(fields["choices"], list) or len(fields["choices"]) < 2:
        raise QuizError("a quiz needs a list of two or more choices")
    question = Question(
        text=_words(fields["question"], "the question"),
        choices=tuple(
            _choice(position, item) for position, item in enumerate(fields["choices"])
        ),
        multiple=_flag(fields.get("multiple", False), "multiple"),
    )
    _check(question)
    return question


def _fields(
    data: Any, required: set[str], optional: set[str], what: str
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise QuizError(
            f"{what} is a mapping with {', '.join(sorted(required))}; found"
            f" {type(data).__name__}"
        )
    missing, unknown = required - data.keys(), data.keys() - required - optional
    if missing or unknown:
        faults = [f"lacks {name!r}" for name in sorted(missing)] + [
            f"has unknown {name!r}" for name in sorted(unknown)
        ]
        raise QuizError(
            f"{what} {' and '.join(faults)}; its fields are"
            f" {', '.join(sorted(required | optional))}"
        )
    return data


def _words(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise QuizError(
            f"{what} must be text, found {value!r}; quote it if YAML reads it as"
            " something else"
        )
    return value.strip()


def _flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise QuizError(f"{what!r} is true or false, found {value!r}")
    return value


def _choice(position: int, data: Any) -> Choice:
    name = f"choice {letter(position)}"
    fields = _fields(data, {"text", "explanation"}, {"correct"}, name)
    return Choice(
        text=_words(fields["text"], f"the text of {name}"),
        explanation=_words(fields["explanation"], f"the explanation of {name}"),
        correct=_flag(fields.get("correct", False), "correct"),
    )


def _check(question: Question) -> None:
    keys = len(question.keys)
    if question.multiple and not 0 < keys < len(question.choices):
        raise QuizError(
            "a question with multiple: true has at least one right and one wrong"
            f" choice; {keys} of {len(question.choices)} are marked correct"
        )
    if not question.multiple and keys != 1:
        raise QuizError(
            f"exactly one choice must be marked correct: true, found {keys}; declare"
            " multiple: true to allow several"
        )
    for attribute in ("text", "explanation"):
        repeated = [
            words
            for words, n in Counter(
                getattr(c, attribute) for c in question.choices
            ).items()
            if n > 1
        ]
        if repeated:
            raise QuizError(f"two choices have the same {attribute}: {repeated[0]!r}")


def lint_book(questions: Sequence[Question]) -> list[str]:
    """Say in words how a reader could guess the keys of a whole book without reading
    the questions.

    Two habits betray keys: always the same position, and always the longest choice.
    Neither is judged before there are `ENOUGH_TO_BALANCE` questions with one key.

    Returns
    -------
    list of str
        One sentence a fault; empty if there is none.
    """
    single = [question for question in questions if not question.multiple]
    if len(single) < ENOUGH_TO_BALANCE:
        return []
    faults = []
    for position, count in sorted(
        Counter(question.keys[0] for question in single).items()
    ):
        if count / len(single) > LARGEST_SHARE_OF_A_POSITION:
            faults.append(
                f"{count} of {len(single)} keys are choice {letter(position)}; reorder"
                " choices until no position has more than"
                f" {LARGEST_SHARE_OF_A_POSITION:.0%}"
            )
    longest = sum(_key_is_longest(question) for question in single)
    if longest / len(single) > LARGEST_SHARE_OF_LONGEST_KEYS:
        faults.append(
            f"in {longest} of {len(single)} questions the key is the longest choice;"
            " shorten keys or fill out wrong choices until that holds for at most"
            f" {LARGEST_SHARE_OF_LONGEST_KEYS:.0%}"
        )
    return faults


def _key_is_longest(question: Question) -> bool:
    lengths = [len(choice.text) for choice in question.choices]
    key = lengths.pop(question.keys[0])
    return key > max(lengths)
