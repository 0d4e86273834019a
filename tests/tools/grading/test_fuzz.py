"""Whatever is handed in, the grader says what became of it, and goes on."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from attack_class import LIMITS, POINTS, answered, open_class
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from walled import need_a_sandbox
from whole import WHOLE

from course_tools.grading.nbgrader.harmless import harmless
from course_tools.grading.run.assignment import load
from course_tools.grading.run.grade import grade
from course_tools.grading.run.reader import CannotRead, Reader
from course_tools.grading.run.reading import judged, prepared

ROOT = Path(__file__).parents[3]
NAMES = ("attention", "wordpiece")
COUNT, RUN, BATCH = (4_000, 200, 50) if WHOLE else (300, 12, 50)
#: Mistakes of the grader's own, which `course_tools.grading.run.reader` names after a
#: colon: no word for a student.
MISTAKES = ("AttributeError", "KeyError", "TypeError", "IndexError", "AssertionError")

STRANGE: list[Any] = [
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 3000,
    "\ud800",
    "\x00",
    "\x1b[2J",
    "\u202e",
    [],
    {},
    [None],
    {"grade_id": None},
    [[[[]]]],
    {"": {"": {"": 1}}},
    "markdown",
    "raw",
    "scale",
    "nbgrader",
    "%%bash",
    "<script>",
    "[x](javascript:1)",
    "def f(:",
    "(" * 300,
    "-" * 3000 + "1",
    "f.a" * 500,
    "raise SystemExit",
]


def places(value: Any, here: tuple = ()) -> Iterator[tuple]:
    """Every place in a JSON value, as keys that lead to it."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inside:
        yield (*here, key)
        yield from places(each, (*here, key))


def holder(content: Any, place: tuple) -> Any:
    for key in place[:-1]:
        content = content[key]
    return content


def replace(content: Any, draw: random.Random) -> None:
    place = draw.choice(list(places(content)))
    holder(content, place)[place[-1]] = copy.deepcopy(draw.choice(STRANGE))


def remove(content: Any, draw: random.Random) -> None:
    place = draw.choice(list(places(content)))
    del holder(content, place)[place[-1]]


def move(content: Any, draw: random.Random) -> None:
    """What stands in one place stands in another one, too."""
    found = list(places(content))
    one, other = draw.choice(found), draw.choice(found)
    holder(content, one)[one[-1]] = copy.deepcopy(holder(content, other)[other[-1]])


def mark(content: Any, draw: random.Random) -> None:
    """Change what nbgrader says of a cell: one mark of it, or all in a form that it
    never has."""
    about = draw.choice(content["cells"])["metadata"]
    if draw.random() < 0.5:
        about["nbgrader"] = draw.choice((None, [], "text", 7, {"grade_id": None}))
    else:
        name = draw.choice(
            (
                "grade_id",
                "points",
                "solution",
                "locked",
                "grade",
                "checksum",
                "cell_type",
            )
        )
        about.setdefault("nbgrader", {})[name] = draw.choice(STRANGE)


def shuffle(content: Any, draw: random.Random) -> None:
    draw.shuffle(content["cells"])


def repeat(content: Any, draw: random.Random) -> None:
    content["cells"] += copy.deepcopy(draw.choices(content["cells"], k=5))


def write_into(content: Any, draw: random.Random) -> None:
    cell = draw.choice(content["cells"])
    at = draw.randrange(len(cell["source"]) + 1)
    cell["source"] = (
        cell["source"][:at] + str(draw.choice(STRANGE)) + cell["source"][at:]
    )


CHANGES: tuple[Callable[[Any, random.Random], None], ...] = (
    replace,
    remove,
    move,
    mark,
    shuffle,
    repeat,
    write_into,
)


def changed(notebook: NotebookNode, number: int) -> str:
    """A notebook that is broken in one to four places; some in the text of its file,
    too."""
    # texts whole, not line by line
    draw, content = (random.Random(number), json.loads(json.dumps(notebook)))
    for change in draw.choices(CHANGES, k=draw.randint(1, 4)):
        try:
            change(content, draw)
        except (TypeError, KeyError, IndexError, AttributeError, ValueError):
            continue  # an earlier change took away what this one would change
    text = json.dumps(content)
    if draw.random() < 0.1:
        at = draw.randrange(len(text))
        text = (
            text[:at]
            + draw.choice(['"', "}", "[", "\\u", "1" * 5000, "{" * 200, ",", "\x00"])
            + text[at:]
        )
    return text


def is_own_mistake(said: str) -> bool:
    return any(f": {mistake} in " in said for mistake in MISTAKES)


def looked_at(assignment: Any, texts: list[str]) -> list[str]:
    """Take every look at each; what became of it, in words ("" if it can be graded)."""
    found = []
    for text in texts:
        try:
            content = prepared(assignment, text, "a.ipynb")
            told = {name: {} for name in ("cells", "tests", "marks", "repeated")} | {
                "given": []
            }
            done = judged(
                assignment, "ada", content["notebook"], told, content["notes"]
            )
            assert {mark["earned"] for mark in done["marks"]} <= {0.0, None}
            assert all(
                len(note) <= 500 and note.isprintable() for note in done["notes"]
            )
            nbformat.validate(json.loads(done["notebook"]))
            found.append("")
        except CannotRead as error:
            found.append(str(error))
    return found


# Unchecked: every function of the grader that a notebook goes through would be bound
# and checked anew for each of them, three times the work of grading it.
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_changed_notebooks_are_graded_or_refused_in_words(name, part):
    assignment = load(name, ROOT)
    share = COUNT // (4 * len(NAMES))
    words: list[str] = []
    # what is made at its first use, before the children are forked
    looked_at(assignment, [json.dumps(assignment.released)])
    with Reader({"looked_at": lambda texts: looked_at(assignment, texts)}) as reader:
        for start in range(part * share, (part + 1) * share, BATCH):
            texts = [
                changed(assignment.released, number)
                for number in range(start, min(start + BATCH, (part + 1) * share))
            ]
            try:
                words += reader.ask("looked_at", texts)
            except CannotRead:  # of one of them: each for itself, then
                for text in texts:
                    try:
                        words += reader.ask("looked_at", [text])
                    except CannotRead as error:
                        words.append(str(error))
    assert len(words) == share
    assert 0.2 * share < words.count("") < share  # some of each, or nothing was tested
    assert [said for said in words if is_own_mistake(said)] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.dictionaries(st.text(max_size=12), inside, max_size=4)
    ),
    max_leaves=12,
)
CELLS = st.fixed_dictionaries(
    {
        "cell_type": st.sampled_from(["code", "markdown", "raw", "", "x"]),
        "source": st.text() | st.lists(st.text()) | JSON,
    },
    optional={
        "metadata": st.fixed_dictionaries({"nbgrader": JSON}) | JSON,
        "outputs": JSON,
        "id": JSON,
        "attachments": JSON,
    },
)
NOTEBOOKS = st.fixed_dictionaries(
    {
        "nbformat": st.sampled_from([4, 3, 2, 1, 5, None, "4"]),
        "cells": st.lists(CELLS, max_size=5) | JSON,
    },
    optional={
        "nbformat_minor": st.sampled_from([0, 2, 5, 99]),
        "metadata": JSON,
        "worksheets": JSON,
    },
)


@settings(max_examples=300 if WHOLE else 60, deadline=None)
@given(NOTEBOOKS | JSON)
def test_any_json_is_graded_or_refused_in_words(content):
    assignment = _assignment()
    (said,) = looked_at(assignment, [json.dumps(content)])
    assert said.isprintable()
    assert not is_own_mistake(said)


@settings(max_examples=500 if WHOLE else 100, deadline=None)
@given(st.text())
def test_text_is_made_harmless_without_a_letter_lost(text):
    assert harmless(text).replace("\u200b", "") == text.replace("\u200b", "")


def _assignment(loaded: list = []) -> Any:  # noqa: B006 - loaded once for all examples
    if not loaded:
        loaded.append(load("attention", ROOT))
    return loaded[0]


@pytest.mark.slow
def test_a_class_of_changed_notebooks_is_graded_in_full(tmp_path):
    need_a_sandbox()
    classroom = open_class(tmp_path / "course")
    right = answered(classroom)
    classroom.submit("mini", "zoe", right)
    for number in range(RUN):
        place = (
            classroom.root / "submitted" / f"changed-{number}" / "mini" / "mini.ipynb"
        )
        place.parent.mkdir(parents=True)
        place.write_bytes(changed(right, number).encode("utf-8", "replace"))
    report = grade("mini", classroom.root, workers=2, limits=LIMITS)
    assert len(report.results) == RUN + 1
    assert (
        len((classroom.root / "grading-log.jsonl").read_text().splitlines()) == RUN + 1
    )
    assert classroom.scores("mini", "zoe") == POINTS | {"why": 0.0}
