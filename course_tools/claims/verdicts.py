"""Verdicts, and the rules that give them: declared with each claim before its figure is
known, applied by code.

| rule | for a claim | reproduced | direction only | contradicted |
| --- | --- | --- | --- | --- |
| `Statement` | without a figure | the interval lies on the claimed side | | it lies on the other side |
| `Trend` | with a figure from other data or sizes | | the interval lies on the claimed side | on the other side |
| `Figure` | with a figure that ours must equal | equal, within interval and tolerance | | exact, and not equal |
| `Even` | that two things are even | the interval lies within the margin | | it lies outside the margin |
| `Unmeasured` | that we cannot measure | | | |

Everything else is "not at this scale": the interval is too wide to tell, one run has
none, or there is no measurement.
"""  # noqa: E501

import math
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol, runtime_checkable

from course_tools.claims.measured import Measured, number


class Verdict(Enum):
    """What our figure says of a claim."""

    REPRODUCED = "reproduced"
    DIRECTION_ONLY = "direction only"
    NOT_AT_THIS_SCALE = "not at this scale"
    CONTRADICTED = "contradicted"


@runtime_checkable
class Rule(Protocol):
    """Something that gives a verdict on a figure, and says in words how."""

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        ...

    def words(self) -> str:
        """Say what the rule asks."""
        ...


def _side(measured: Measured, side: str, bound: float) -> Verdict | None:
    """Say whether the whole interval is on the claimed side of a bound (None: it is),
    beyond it, or on both."""
    below, above = measured.high < bound, measured.low > bound
    if above if side == "above" else below:
        return None
    return (
        Verdict.CONTRADICTED
        if (below if side == "above" else above)
        else Verdict.NOT_AT_THIS_SCALE
    )


@dataclass(frozen=True)
class Statement:
    """For a claim that states no figure: it holds if our whole interval lies on the
    claimed side of a bound."""

    side: Literal["above", "below"] = "above"
    bound: float = 0.0

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        if measured is None:
            return Verdict.NOT_AT_THIS_SCALE
        return _side(measured, self.side, self.bound) or Verdict.REPRODUCED

    def words(self) -> str:
        """Say what the rule asks."""
        return (
            f"reproduced if all of the interval lies {self.side} {_short(self.bound)}"
        )


@dataclass(frozen=True)
class Trend:
    """For a published figure from other data, sizes or units: ours can have the
    direction, and no more."""

    side: Literal["above", "below"] = "above"
    bound: float = 0.0

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        if measured is None:
            return Verdict.NOT_AT_THIS_SCALE
        return _side(measured, self.side, self.bound) or Verdict.DIRECTION_ONLY

    def words(self) -> str:
        """Say what the rule asks."""
        return (
            f"direction only, at best: if all of the interval lies {self.side}"
            f" {_short(self.bound)}"
        )


@dataclass(frozen=True)
class Figure:
    """For a figure that ours must equal, within our interval and a tolerance that is
    stated with its reason."""

    value: float
    tolerance: float = 0.0
    why: str = ""

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        if measured is None:
            return Verdict.NOT_AT_THIS_SCALE
        low, high = (
            (measured.low, measured.high)
            if measured.bounded
            else (measured.value, measured.value)
        )
        if low - self.tolerance <= self.value <= high + self.tolerance:
            return Verdict.REPRODUCED
        return Verdict.CONTRADICTED if measured.certain else Verdict.NOT_AT_THIS_SCALE

    def words(self) -> str:
        """Say what the rule asks."""
        within = f", give or take {_short(self.tolerance)}" if self.tolerance else ""
        return f"reproduced if it equals {_short(self.value)}{within}" + (
            f" ({self.why})" if self.why else ""
        )


@dataclass(frozen=True)
class Even:
    """For the claim that a choice makes no difference: one within a margin does not
    count."""

    margin: float

    def judge(self, measured: Measured | None) -> Verdict:
        """Return the verdict."""
        if measured is None or not measured.bounded:
            return Verdict.NOT_AT_THIS_SCALE
        if -self.margin <= measured.low and measured.high <= self.margin:
            return Verdict.REPRODUCED
        outside = measured.low > self.margin or measured.high < -self.margin
        return Verdict.CONTRADICTED if outside else Verdict.NOT_AT_THIS_SCALE

    def words(self) -> str:
        """Say what the rule asks."""
        return (
            f"reproduced if all of the interval lies within {_short(self.margin)} of 0"
        )


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


def _short(value: float) -> str:
    return (
        number(value, 0)
        if value == math.floor(value) and abs(value) < 1e6
        else number(value, -6)
    )
