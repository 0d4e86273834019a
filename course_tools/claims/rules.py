"""Figures with intervals, and rules declared before a claim's figure is known.

| rule | for a claim | reproduced | direction only | contradicted |
| --- | --- | --- | --- | --- |
| `Statement` | without a figure | interval on the side | | on the other side |
| `Trend` | of other data or sizes | | interval on the side | on the other side |
| `Figure` | that ours must equal | equal, within tolerance | | exact, not equal |
| `Even` | that two are even | interval within margin | | outside the margin |
| `Unmeasured` | that we cannot measure | | | |

Everything else is "not at this scale": the interval is too wide to tell, one run has
none, or there is no measurement.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from course_lib.metrics.scores import mean_interval


@dataclass(frozen=True)
class Measured:
    """A figure and its interval: of no width without chance, infinite if unknown."""

    value: float
    low: float
    high: float
    how: str

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def certain(self) -> bool:
        """Whether chance plays no part."""
        return self.low == self.value == self.high

    def text(self, digits: int = 1, unit: str = "") -> str:
        """Write the figure with its interval, e.g. ``8.9 ± 1.2 BLEU``."""
        shown = number(self.value, digits)
        behind = unit if unit == "%" else f" {unit}" if unit else ""
        if self.certain or self.low == -self.high == -math.inf:
            return f"{shown}{behind}"
        if self.high == math.inf:
            return f"at least {shown}{behind}"
        if self.low == -math.inf:
            return f"at most {shown}{behind}"
        below, above = self.value - self.low, self.high - self.value
        if math.isclose(below, above, rel_tol=1e-6, abs_tol=1e-12):
            return f"{shown} ± {number(below, digits)}{behind}"
        ends = f"{number(self.low, digits)} to {number(self.high, digits)}"
        return f"{shown}{behind} ({ends})"


def number(value: float, digits: int) -> str:
    """Write a number with so many digits after the point or, if negative, in all."""
    text = f"{value:,.{digits}f}" if digits >= 0 else f"{value:.{-digits}g}"
    return text.replace("-", "−")


def exact(value: float) -> Measured:
    """Return a figure in which chance plays no part."""
    return Measured(value, value, value, "no chance in it")


def one_run(value: float) -> Measured:
    """Return a figure of a single run, of which no interval is known."""
    return Measured(value, -math.inf, math.inf, "one run, so no interval")


def over(values: Sequence[float]) -> Measured:
    """Return the mean over seeds with its 95% interval."""
    if len(values) == 1:
        return one_run(values[0])
    mean, half = mean_interval(values)
    how = f"95% interval over {len(values)} seeds"
    return Measured(mean, mean - half, mean + half, how)


def apart(first: Measured, second: Measured) -> Measured:
    """Return how far one figure is above another, of independent runs."""
    value = first.value - second.value
    hows = [part.how for part in (first, second) if not part.certain]
    how = hows[0] if len(set(hows)) == 1 else "; ".join(hows)
    if first.bounded and second.bounded:
        below = math.hypot(first.value - first.low, second.high - second.value)
        above = math.hypot(first.high - first.value, second.value - second.low)
        return Measured(value, value - below, value + above, how or first.how)
    return Measured(value, first.low - second.high, first.high - second.low, how)


class Verdict(Enum):
    """What our figure says of a claim."""

    REPRODUCED = "reproduced"
    DIRECTION_ONLY = "direction only"
    NOT_AT_THIS_SCALE = "not at this scale"
    CONTRADICTED = "contradicted"


def _verdict(holds: bool, fails: bool, best: Verdict = Verdict.REPRODUCED) -> Verdict:
    if holds:
        return best
    return Verdict.CONTRADICTED if fails else Verdict.NOT_AT_THIS_SCALE


@dataclass(frozen=True)
class Statement:
    """States no figure: our whole interval must lie on the claimed side of a bound."""

    side: Literal["above", "below"] = "above"
    bound: float = 0.0

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        return self._side(measured, Verdict.REPRODUCED)

    def words(self) -> str:
        """Say what the rule asks."""
        return f"reproduced if {self._asked()}"

    def _side(self, measured: Measured | None, best: Verdict) -> Verdict:
        if measured is None:
            return Verdict.NOT_AT_THIS_SCALE
        above, below = measured.low > self.bound, measured.high < self.bound
        holds, fails = (above, below) if self.side == "above" else (below, above)
        return _verdict(holds, fails, best)

    def _asked(self) -> str:
        return f"all of the interval lies {self.side} {_short(self.bound)}"


@dataclass(frozen=True)
class Trend(Statement):
    """For a figure from other data, sizes or units: only the direction can agree."""

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        return self._side(measured, Verdict.DIRECTION_ONLY)

    def words(self) -> str:
        """Say what the rule asks."""
        return f"direction only, at best: if {self._asked()}"


@dataclass(frozen=True)
class Figure:
    """Ours must equal it within our interval and a tolerance with its reason."""

    value: float
    tolerance: float = 0.0
    why: str = ""

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        if measured is None:
            return Verdict.NOT_AT_THIS_SCALE
        low, high = measured.value, measured.value
        if measured.bounded:
            low, high = measured.low, measured.high
        equal = low - self.tolerance <= self.value <= high + self.tolerance
        return _verdict(equal, measured.certain)

    def words(self) -> str:
        """Say what the rule asks."""
        within = f", give or take {_short(self.tolerance)}" if self.tolerance else ""
        why = f" ({self.why})" if self.why else ""
        return f"reproduced if it equals {_short(self.value)}{within}{why}"


@dataclass(frozen=True)
class Even:
    """A choice makes no difference: one within a margin does not count."""

    margin: float

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        if measured is None or not measured.bounded:
            return Verdict.NOT_AT_THIS_SCALE
        within = -self.margin <= measured.low and measured.high <= self.margin
        outside = measured.low > self.margin or measured.high < -self.margin
        return _verdict(within, outside)

    def words(self) -> str:
        """Say what the rule asks."""
        margin = _short(self.margin)
        return f"reproduced if all of the interval lies within {margin} of 0"


@dataclass(frozen=True)
class Unmeasured:
    """For what this course cannot measure; the reason is part of the rule."""

    reason: str

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict, which no figure changes."""
        return Verdict.NOT_AT_THIS_SCALE

    def words(self) -> str:
        """Say why there is no measurement."""
        return self.reason


Rule = Statement | Figure | Even | Unmeasured
#: As ``claims.yaml`` names them; the value of that key is the rule's first field.
RULES = {
    kind.__name__.lower(): kind for kind in (Statement, Trend, Figure, Even, Unmeasured)
}


def _short(value: float) -> str:
    whole = value == math.floor(value) and abs(value) < 1e6
    return number(value, 0 if whole else -6)
