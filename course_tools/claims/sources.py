"""The ways in which a figure of ours is obtained: read from a page, from a record, or
computed on the spot.

Each source says what it read (`read`) and where that stands (`origins`), so that the
ledger can link to it.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from course_tools.claims.evidence import Evidence, LedgerError, parse_figure
from course_tools.claims.measured import Measured, apart, exact, one_run, over

Run = Mapping[str, Any]
#: How a page's figure is to be taken, where it glues no interval.
Kind = Literal["exact", "one run", "least", "most"]


@dataclass(frozen=True)
class Origin:
    """Where a figure stands: in an executed page, in a record, in a checkpoint's log,
    or nowhere but in code."""

    kind: Literal["live", "recorded", "checkpoint", "computed"]
    name: str = ""


@runtime_checkable
class Source(Protocol):
    """Something that yields a figure."""

    def read(self, evidence: Evidence) -> Measured:
        """Return the figure."""
        ...

    def origins(self) -> tuple[Origin, ...]:
        """Say where it stands."""
        ...


def _of_kind(value: float, kind: str) -> Measured:
    if kind == "least":
        return Measured(value, value, math.inf, "the least of the seeds")
    if kind == "most":
        return Measured(value, -math.inf, value, "the most of the seeds")
    return exact(value) if kind == "exact" else one_run(value)


@dataclass(frozen=True)
class Glued:
    """What a page glued: a mean with the half width of its interval, or a figure that
    is to be taken as `kind` says.

    Parameters
    ----------
    chapter
        Number of the page.
    key
        Of the mean.
    half
        Key of the half width; with the default, a figure without one.
    kind
        Without a half width: "exact", "one run", or the "least" or "most" over seeds.
    what
        The interval is over: "seeds" are counted on the page, other things are named
        only.
    """

    chapter: int
    key: str
    half: str = ""
    kind: Kind = "one run"
    what: str = "seeds"

    def read(self, evidence: Evidence) -> Measured:
        """Return what was glued."""
        page = evidence.page(self.chapter)
        value = page.glued(self.key)
        if not self.half:
            return _of_kind(value, self.kind)
        half = page.glued(self.half)
        counted = f"{page.seeds} seeds" if self.what == "seeds" else self.what
        return Measured(
            value, value - half, value + half, f"95% interval over {counted}"
        )

    def origins(self) -> tuple[Origin, ...]:
        """Return the page."""
        return (Origin("live", str(self.chapter)),)


@dataclass(frozen=True)
class GluedRange:
    """What a page glued with both ends, e.g. a median with its quartiles."""

    chapter: int
    key: str
    low: str
    high: str
    how: str

    def read(self, evidence: Evidence) -> Measured:
        """Return what was glued."""
        page = evidence.page(self.chapter)
        return Measured(
            page.glued(self.key), page.glued(self.low), page.glued(self.high), self.how
        )

    def origins(self) -> tuple[Origin, ...]:
        """Return the page."""
        return (Origin("live", str(self.chapter)),)


@dataclass(frozen=True)
class Cell:
    """A cell of a table that a page's code wrote, such as ``0.93 ± 0.07``.

    Parameters
    ----------
    chapter
        Number of the page.
    row
        First cell of the row, or the first few with bars between.
    column
        What the column's head begins with.
    table
        What the table's head begins with, where two tables have such a row and column.
    kind
        As in `Glued`, where the cell has no interval.
    what
        The interval is over.
    """

    chapter: int
    row: str
    column: str
    table: str = ""
    kind: Kind = "one run"
    what: str = "seeds"

    def read(self, evidence: Evidence) -> Measured:
        """Return what the cell says."""
        page = evidence.page(self.chapter)
        value, half, ends = parse_figure(page.cell(self.row, self.column, self.table))
        if ends:
            return Measured(value, *ends, f"range over {self.what}")
        if half is None:
            return _of_kind(value, self.kind)
        counted = f"{page.seeds} seeds" if self.what == "seeds" else self.what
        return Measured(
            value, value - half, value + half, f"95% interval over {counted}"
        )

    def origins(self) -> tuple[Origin, ...]:
        """Return the page."""
        return (Origin("live", str(self.chapter)),)


@dataclass(frozen=True)
class Printed:
    """A number that a page printed: the only group of a pattern that fits once.

    Parameters
    ----------
    chapter
        Number of the page.
    pattern
        A regular expression with one group.
    kind
        As in `Glued`.
    """

    chapter: int
    pattern: str
    kind: Kind = "exact"

    def read(self, evidence: Evidence) -> Measured:
        """Return what was printed."""
        page = evidence.page(self.chapter)
        found = re.findall(self.pattern, page.printed, re.MULTILINE)
        if len(found) != 1:
            raise LedgerError(
                f"{page.name} printed {len(found)} times what fits {self.pattern!r};"
                " once is needed"
            )
        return _of_kind(float(found[0].replace(",", "")), self.kind)

    def origins(self) -> tuple[Origin, ...]:
        """Return the page."""
        return (Origin("live", str(self.chapter)),)


@dataclass(frozen=True)
class Recorded:
    """The mean over the runs of a record that fit `only`, with its interval.

    Parameters
    ----------
    record
        Name of the file in ``book/results``.
    figure
        A path of keys in a run, or a function of the run.
    only
        What a run must hold, e.g. ``{"variant": "as live"}``.
    scale
        A factor, e.g. 100 for percent.
    kind
        Where chance plays no part: "exact" takes the sum over the runs.
    """

    record: str
    figure: Sequence[str | int] | Callable[[Run], float]
    only: Mapping[str, Any] | None = None
    scale: float = 1.0
    kind: Literal["mean", "exact"] = "mean"

    def values(self, evidence: Evidence) -> dict[Any, float]:
        """Return the figure of each run, by its seed where it has one."""
        runs = [
            run
            for run in evidence.record(self.record).results
            if _fits(run, self.only or {})
        ]
        if not runs:
            raise LedgerError(
                f"{self.record}.json has no run with {dict(self.only or {})}"
            )
        return {
            run.get("seed", place): self.scale * pick(run, self.figure)
            for place, run in enumerate(runs)
        }

    def read(self, evidence: Evidence) -> Measured:
        """Return the mean over the runs, or their sum."""
        values = list(self.values(evidence).values())
        return exact(math.fsum(values)) if self.kind == "exact" else over(values)

    def origins(self) -> tuple[Origin, ...]:
        """Return the record."""
        return (Origin("recorded", self.record),)


@dataclass(frozen=True)
class Lead:
    """By how much some runs of a record are ahead of others, over the seeds of both:
    shared chance is not in it."""

    ahead: Recorded
    behind: Recorded

    def read(self, evidence: Evidence) -> Measured:
        """Return the mean of the differences and its interval."""
        ahead, behind = self.ahead.values(evidence), self.behind.values(evidence)
        seeds = sorted(ahead.keys() & behind.keys())
        if not seeds:
            raise LedgerError(
                f"no seed in common: {sorted(ahead)} in {self.ahead.only},"
                f" {sorted(behind)} in the other"
            )
        return over([ahead[seed] - behind[seed] for seed in seeds])

    def origins(self) -> tuple[Origin, ...]:
        """Return the records."""
        return tuple(dict.fromkeys(self.ahead.origins() + self.behind.origins()))


@dataclass(frozen=True)
class Logged:
    """A figure in the log of a shipped checkpoint, and its interval if the log has one.

    Parameters
    ----------
    checkpoint
        "mini" or "tiny".
    path
        Keys, from the outside in.
    half
        Key beside the last one that holds the half width.
    scale
        A factor.
    what
        The interval is over.
    """

    checkpoint: str
    path: Sequence[str | int]
    half: str = ""
    scale: float = 1.0
    what: str = "documents"

    def read(self, evidence: Evidence) -> Measured:
        """Return what the log says."""
        log = evidence.checkpoint(self.checkpoint)
        value = self.scale * pick(log, self.path)
        if not self.half:
            return exact(value)
        half = self.scale * pick(log, [*self.path[:-1], self.half])
        return Measured(
            value, value - half, value + half, f"95% interval over {self.what}"
        )

    def origins(self) -> tuple[Origin, ...]:
        """Return the checkpoint."""
        return (Origin("checkpoint", self.checkpoint),)


@dataclass(frozen=True)
class Computed:
    """What a function measures in the moment, cheap enough for each build: one figure,
    or one for each seed."""

    measure: Callable[[], float | Sequence[float]]

    def read(self, evidence: Evidence) -> Measured:
        """Return what the function measures."""
        found = self.measure()
        return (
            exact(float(found)) if isinstance(found, int | float) else over(list(found))
        )

    def origins(self) -> tuple[Origin, ...]:
        """Say that it stands in code alone."""
        return (Origin("computed"),)


@dataclass(frozen=True)
class Apart:
    """How far one figure is above another, of independent runs."""

    first: Source
    second: Source

    def read(self, evidence: Evidence) -> Measured:
        """Return the difference and its interval."""
        return apart(self.first.read(evidence), self.second.read(evidence))

    def origins(self) -> tuple[Origin, ...]:
        """Return those of both."""
        return tuple(dict.fromkeys(self.first.origins() + self.second.origins()))


def pick(run: Run, figure: Sequence[str | int] | Callable[[Run], float]) -> float:
    """Follow a path of keys into a run, or ask a function of it."""
    if callable(figure):
        return float(figure(run))
    found: Any = run
    for step, key in enumerate(figure):
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError) as error:
            raise LedgerError(
                f"no {key!r} at {list(figure[:step])} of a run of"
                f" {run.get('variant', '')!r}"
            ) from error
    return float(found)


def _fits(run: Run, only: Mapping[str, Any]) -> bool:
    return all(key in run and run[key] == value for key, value in only.items())
