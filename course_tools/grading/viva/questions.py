"""Questions on a function of a student's, from what its calls gave.

``value``: a line is changed; which of these does a call give then? The others are what
other changes give. ``which``: a line is changed; which one of these calls gives
something else, and what does it give? ``line``: which of these calls makes a line run?
A result that computing by hand could take for another one is not asked for.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_tools.grading.shown import shown
from course_tools.grading.viva.changes import Change, definition

KINDS = ("value", "which", "line", "value", "which")
OPTIONS = 4
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e-?\d+)?|inf|nan)")
APART, LONGEST = 0.02, 200
Row = tuple[str | None, list[int]]  # what a call gave, and the lines that it ran


@dataclass
class Asked:
    """A function of a student's, its calls, and what they gave."""

    name: str
    source: str  # of its cell
    calls: list[str]
    changes: list[Change] = field(default_factory=list)
    base: list[Row] = field(default_factory=list)  # unchanged
    after: list[list[Row]] = field(default_factory=list)  # by each change


@dataclass(frozen=True)
class Question:
    """A question with one answer, and what it takes to compute that again."""

    kind: str
    name: str  # of the function
    line: int  # that is changed, or that is to run
    new: str  # what the line becomes
    calls: list[str]
    before: list[str]  # what they give, unchanged
    answer: int  # the place among the calls or, of ``value``, the options
    value: str = ""  # what is given after the change
    options: list[str] = field(default_factory=list)
    others: list[Change] = field(default_factory=list)  # from which each option comes


def rows_of(printed: str, count: int) -> list[Row]:
    """Read what a probe printed; what is not of its form is nothing to ask about."""
    try:
        told = json.loads(printed.strip().rpartition("\n")[2])
        rows = [(_text(told[n][0]), [*map(int, told[n][1])]) for n in range(count)]
    except (ValueError, TypeError, LookupError, RecursionError):
        rows = [(None, [])] * count
    return rows


def _text(told: object) -> str | None:
    return None if told is None else shown(told, LONGEST)


def apart(one: str, other: str) -> bool:
    """Whether somebody who computes by hand can tell two results from each other."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return True
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    numbers = [(float(a), float(b)) for a, b in pairs if a != b]
    return any(not abs(a - b) < APART * max(1, abs(a)) for a, b in numbers)


def questions(asked: Sequence[Asked], chance: random.Random) -> Iterator[Question]:
    """Yield questions, kinds and functions in turn; no two are about one line."""
    pools: dict[str, list[Question]] = {}
    for one in asked:
        found = list(_possible(one, chance))
        mixed = chance.sample(found, len(found))
        pools[one.name] = sorted(mixed, key=lambda each: dull(each.value))
    turn = 0
    while any(pools.values()):
        # two at a time: the code of more takes the room of their questions
        two = [name for name in pools if pools[name]][:2]
        for kind in KINDS:
            names = two[turn % 2 :] + two
            of_kind = (q for name in names for q in pools[name] if q.kind == kind)
            if (best := next(of_kind, None)) is not None:
                pools[best.name] = [q for q in pools[best.name] if q.line != best.line]
                turn += 1
                yield best


def dull(text: str) -> tuple[bool, bool]:
    """What one can compute in the head says more than an error or many digits."""
    error = text.startswith("raises") or "nan" in text
    return error, re.search(r"\.\d{3}", text) is not None


def _possible(asked: Asked, chance: random.Random) -> Iterator[Question]:
    base = {n: (t, ran) for n, (t, ran) in enumerate(asked.base) if t is not None}
    distinct: dict[int, dict[str, Change]] = {n: {} for n in base}

    def given(place: int, among: list[int]) -> dict[str, Any]:
        others = [n for n in among if n != place]
        shown = sorted([place, *chance.sample(others, min(2, len(others)))])
        calls = [asked.calls[n] for n in shown]
        before = [base[n][0] for n in shown]
        return {"calls": calls, "before": before, "answer": shown.index(place)}

    for change, rows in zip(asked.changes, asked.after, strict=True):
        gave = {n: text for n in base if (text := rows[n][0]) is not None}
        differ = [n for n in gave if gave[n] != base[n][0]]
        moved = [n for n in differ if apart(gave[n], base[n][0])]
        for n in moved:
            if all(apart(gave[n], text) for text in distinct[n]):
                distinct[n][gave[n]] = change
        if len(gave) > 2 and len(moved) == 1 and differ == moved:
            which, value = given(moved[0], [*gave]), gave[moved[0]]
            yield Question("which", asked.name, *change, **which, value=value)
    for n, texts in distinct.items():
        for text, change in texts.items():
            others = chance.sample(
                [one for one in texts if one != text], len(texts) - 1
            )
            # of its own form first: what cannot be told by its look alone
            others.sort(key=lambda one: (dull(one)[0], _form(one) != _form(text)))
            options = [text, *others[: OPTIONS - 1]]
            if len(options) > 2:
                chance.shuffle(options)
                tell = given(n, [n]) | {"answer": options.index(text), "value": text}
                tell |= {"options": options, "others": [texts[one] for one in options]}
                yield Question("value", asked.name, *change, **tell)
    body = definition(asked.source, asked.name)
    for line in range(body.lineno + 1, (body.end_lineno or 0) + 1):
        runs = [n for n in base if line in base[n][1]]
        if len(runs) == 1 and len(base) > 2:
            yield Question("line", asked.name, line, "", **given(runs[0], [*base]))


def _form(text: str) -> str:
    return NUMBER.sub("#", text)
