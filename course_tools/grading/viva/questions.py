"""Questions on a function of a student's, from what its calls gave.

``value``: a line is changed; which of these does a call give then? The others are what
other changes give. ``which``: a line is changed; which one of these calls gives
something else, and what? ``line``: which of these calls makes a line run? A result that
computing by hand could take for another one is not asked for.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from course_tools.grading.viva.changes import Change, definition

KINDS = ("value", "which", "line", "value", "which")
OPTIONS, FUNCTIONS = 4, 3  # of a question, and of a sheet
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e-?\d+)?|inf|nan)")
APART = 0.02
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
        return [(_text(told[n][0]), [*map(int, told[n][1])]) for n in range(count)]
    except (ValueError, TypeError, LookupError, RecursionError):
        return [(None, [])] * count


def _text(told: object) -> str | None:
    return told if isinstance(told, str) and len(told) < 200 else None


def apart(one: str, other: str) -> bool:
    """Whether somebody who computes by hand can tell two results from each other."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return True
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    numbers = [(float(a), float(b)) for a, b in pairs if a != b]
    return any(not abs(a - b) < APART * max(1, abs(a)) for a, b in numbers)


def questions(asked: Sequence[Asked], chance: random.Random) -> Iterator[Question]:
    """Yield questions, kinds and functions in turn; no two are about one line."""
    makers = {"value": _value, "which": _which, "line": _line}
    pools = {}
    for one in asked:
        for kind, maker in makers.items():
            found = list(maker(one, chance))
            chance.shuffle(found)
            pools[one.name, kind] = sorted(found, key=lambda each: _dull(each.value))
    names = [
        n for n in {one.name: 0 for one in asked} if any(pools[n, k] for k in makers)
    ]
    names, used = names[:FUNCTIONS], set[tuple[str, int]]()
    while any(pools[key] for key in pools if key[0] in names):
        for turn, kind in enumerate(KINDS):
            for name in names[turn:] + names[:turn]:
                pool = [q for q in pools[name, kind] if (name, q.line) not in used]
                pools[name, kind] = pool[1:]
                if pool:
                    used.add((name, pool[0].line))
                    yield pool[0]
                    break


def _dull(text: str) -> tuple[bool, bool]:
    """What one can compute in the head says more than an error or many digits."""
    error = text.startswith("raises") or "nan" in text
    return error, re.search(r"\.\d{3}", text) is not None


def _gave(asked: Asked) -> Iterator[tuple[Change, dict[int, tuple[str, str]]]]:
    """By change, of each call what it gave before, and what after."""
    for change, after in zip(asked.changes, asked.after, strict=True):
        pairs = enumerate(zip(asked.base, after, strict=True))
        known = {n: (a[0], b[0]) for n, (a, b) in pairs if a[0] and b[0]}
        yield change, known  # type: ignore[misc]


def _which(asked: Asked, chance: random.Random) -> Iterator[Question]:
    for change, gave in _gave(asked):
        moved = [n for n, (before, after) in gave.items() if before != after]
        if len(gave) < 3 or len(moved) != 1 or not apart(*gave[moved[0]]):
            continue
        shown = sorted(chance.sample([n for n in gave if n not in moved], 2) + moved)
        calls = [asked.calls[n] for n in shown]
        before = [gave[n][0] for n in shown]
        answer = shown.index(moved[0]), gave[moved[0]][1]
        yield Question("which", asked.name, *change, calls, before, *answer)


def _value(asked: Asked, chance: random.Random) -> Iterator[Question]:
    for n, call in enumerate(asked.calls):
        known = [(change, gave[n]) for change, gave in _gave(asked) if n in gave]
        distinct: dict[str, Change] = {}
        for change, (before, after) in known:
            if all(apart(after, text) for text in (before, *distinct)):
                distinct[after] = change
        for after, change in distinct.items():
            others = chance.sample(list(distinct), len(distinct))
            # of its own form first: what cannot be told by its look alone
            form = NUMBER.sub("#", after)
            others.sort(
                key=lambda text: (_dull(text)[0], NUMBER.sub("#", text) != form)
            )
            options = [
                after,
                *[text for text in others if text != after][: OPTIONS - 1],
            ]
            if len(options) > 2:
                chance.shuffle(options)
                answer = options.index(after), after, options
                from_each = [distinct[text] for text in options]
                given = [call], [str(asked.base[n][0])]
                yield Question("value", asked.name, *change, *given, *answer, from_each)


def _line(asked: Asked, chance: random.Random) -> Iterator[Question]:
    body = definition(asked.source, asked.name)
    runs = {n: ran for n, (text, ran) in enumerate(asked.base) if text is not None}
    for line in range(body.lineno + 1, (body.end_lineno or 0) + 1):
        own = [n for n, ran in runs.items() if line in ran]
        if len(own) == 1 and len(runs) > 2:
            others = [n for n in runs if n not in own]
            shown = sorted(chance.sample(others, min(3, len(others))) + own)
            calls = [asked.calls[n] for n in shown]
            before = [str(asked.base[n][0]) for n in shown]
            place = shown.index(own[0])
            yield Question("line", asked.name, line, "", calls, before, place)
