"""A student's check, marked by implementations: wrong ones it refuses, right ones not.

``solutions/<name>/checks.py`` lists them, and
:mod:`course_tools.grading.assignments.checks` puts them into a test cell behind the
text of this module, which runs there. So it uses torch and Python alone.

The check gets one function, whatever stands behind it at the time. In the grader it
calls it across the bridge: it sees what goes in and what comes out. Implementations
come in an order that nobody knows before, and some of them twice.
"""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

#: The kinds of mistakes that students read of; nothing else of a hidden one is told.
KINDS = {"the formula", "the order", "counting", "ties", "padding", "empty input"}
KINDS |= {"a tight fit", "number types", "small numbers", "a wrong gradient", "sizes"}
KINDS |= {"changed arguments", "errors that are not raised", "memory of earlier calls"}
PASS = "Mistakes of these kinds pass your check: "
REFUSED = "Your check refuses a right implementation that is written differently."
UNSTEADY = "Asked again about the same implementation, your check says something else."
BUSY = "Your check calls one implementation more than 200 times."
CALLS, LARGEST, NUMBERS = 200, 1000, 10_000
AGAIN = {True: 2, False: 4}  # so many of right ones, of wrong ones, come twice


class Row(NamedTuple):
    """An implementation: the kind of its mistake, or nothing if it is right."""

    kind: str
    name: str
    source: str


#: Filled in where it runs: the name of the function, and its implementations.
FUNCTION, ROWS = "", list[Row]()


def too_large(value: Any) -> bool:
    """Whether an argument would keep an implementation busy; no check needs that."""
    if isinstance(value, int):
        return abs(value) > LARGEST
    if isinstance(value, list | tuple):
        return len(value) > LARGEST or any(map(too_large, value))
    return getattr(value, "numel", int)() > NUMBERS


class Trials:
    """One check, and the function that it is handed."""

    def __init__(self, check: Callable[..., Any]) -> None:
        self.check, self.calls, self.most = check, 0, 0
        self.behind: Callable[..., Any] | None = None

        def implementation(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.behind is None or self.calls > CALLS:
                raise RuntimeError("this implementation is not called any more")
            if any(map(too_large, [*args, *kwargs.values()])):
                raise RuntimeError("a check does with smaller arguments")
            return self.behind(*args, **kwargs)

        self.implementation = implementation

    def refuses(self, row: Row) -> str | None:
        """In which words the check refuses an implementation; None if it does not."""
        import torch

        scope: dict[str, Any] = {}
        exec(row.source, scope)  # noqa: S102 - the instructor's own
        self.behind, self.calls = scope[FUNCTION], 0
        # what it draws at random is the same for each
        states = torch.get_rng_state(), random.getstate()
        torch.manual_seed(0)
        random.seed(0)
        try:
            self.check(self.implementation)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            self.behind, self.most = None, max(self.most, self.calls)
            torch.set_rng_state(states[0])
            random.setstate(states[1])
        return None


def slipped(check: Callable[..., Any]) -> str:
    """What is wrong with a check, by the implementations that students know of."""
    trials, right, passed = Trials(check), list[str](), list[str]()
    for row in random.SystemRandom().sample(ROWS, len(ROWS)):
        words = trials.refuses(row)
        if row.kind and words is None:
            passed.append(f"'{row.name}' passes your check. It is wrong: {row.kind}.")
        elif words and not row.kind:
            if words.startswith("NotImplementedError"):
                raise NotImplementedError("the check is as it was released")
            right.append(f"Your check refuses a right implementation: {words:.300}")
    return "\n".join([*right, *sorted(passed), *[BUSY][: trials.most > CALLS]])


def _verdicts(trials: Trials) -> Iterator[tuple[Row, bool]]:
    """What a check says of each implementation, some of them twice, in any order."""
    chance = random.SystemRandom()
    sides = {right: [r for r in ROWS if (not r.kind) == right] for right in AGAIN}
    again = [
        r for right, rows in sides.items() for r in chance.sample(rows, AGAIN[right])
    ]
    for row in chance.sample([*ROWS, *again], len(ROWS) + len(again)):
        yield row, trials.refuses(row) is not None


def points(check: Callable[..., Any], most: float) -> float:
    """The points of a check: none if it refuses what is right, all if it refuses all
    that is wrong, and none up to half of it. It prints what a student may read."""
    trials, said = Trials(check), dict[Row, bool]()
    for row, refused in _verdicts(trials):
        changed = said.setdefault(row, refused) != refused
        known = {BUSY: trials.most > CALLS, REFUSED: refused and not row.kind}
        for words, so in (known | {UNSTEADY: changed}).items():
            if so:
                print(words)
                return 0.0
    passed = [row.kind for row, refused in said.items() if row.kind and not refused]
    if passed:
        print(f"{PASS}{'; '.join(sorted({*passed}))}.")
    wrong = sum(bool(row.kind) for row in ROWS)
    return math.floor(2 * most * max(0.0, 1 - 2 * len(passed) / wrong)) / 2


def told(printed: str) -> str:
    """Of what a test printed, the words about a check, and no others."""
    for line in printed.splitlines():
        if line in (REFUSED, UNSTEADY, BUSY):
            return line
        if line.startswith(PASS):
            kinds = line.removeprefix(PASS).rstrip(".").split("; ")
            return f"{PASS}{'; '.join(kind for kind in kinds if kind in KINDS)}."
    return ""
