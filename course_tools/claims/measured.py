"""A figure of ours with what is known of its chance, however it was obtained."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.metrics.scores import mean_interval


@dataclass(frozen=True)
class Measured:
    """A figure and the interval that it may lie in.

    Parameters
    ----------
    value
        The figure.
    low, high
        Ends of its interval. Both equal to the value where chance plays no part;
        infinite where nothing is known.
    how
        What the interval is, in words.
    """

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
        if self.certain or not (math.isfinite(self.low) or math.isfinite(self.high)):
            return f"{shown}{behind}"
        if not math.isfinite(self.high):
            return f"at least {shown}{behind}"
        if not math.isfinite(self.low):
            return f"at most {shown}{behind}"
        below, above = self.value - self.low, self.high - self.value
        if math.isclose(below, above, rel_tol=1e-6, abs_tol=1e-12):
            return f"{shown} ± {number(below, digits)}{behind}"
        return (
            f"{shown}{behind} ({number(self.low, digits)} to"
            f" {number(self.high, digits)})"
        )


def number(value: float, digits: int) -> str:
    """Write a number for a reader."""
    return (f"{value:,.{digits}f}" if digits >= 0 else f"{value:.{-digits}g}").replace(
        "-", "−"
    )


def exact(value: float) -> Measured:
    """Return a figure in which chance plays no part."""
    return Measured(value, value, value, "no chance in it")


def one_run(value: float) -> Measured:
    """Return a figure of a single run, of which no interval is known."""
    return Measured(value, -math.inf, math.inf, "one run, so no interval")


def over(values: Sequence[float], what: str = "seeds") -> Measured:
    """Return the mean over seeds, or over other repetitions, with its 95% interval."""
    if len(values) == 1:
        return one_run(values[0])
    mean, half_width = mean_interval(values)
    return Measured(
        mean,
        mean - half_width,
        mean + half_width,
        f"95% interval over {len(values)} {what}",
    )


def apart(first: Measured, second: Measured) -> Measured:
    """Return how far one figure is above another, of runs that have nothing to do with
    each other."""
    value, hows = (
        first.value - second.value,
        [part.how for part in (first, second) if not part.certain],
    )
    how = hows[0] if len(set(hows)) == 1 else "; ".join(hows)
    if first.bounded and second.bounded:
        below = math.hypot(first.value - first.low, second.high - second.value)
        above = math.hypot(first.high - first.value, second.value - second.low)
        return Measured(value, value - below, value + above, how or first.how)
    return Measured(value, first.low - second.high, first.high - second.low, how)
