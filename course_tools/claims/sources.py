"""Where figures come from: a page's glue, a record, a log, or `computed`.

Nothing here guesses. What is not found is an error that says what was looked for,
where, and what is there instead.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from course_lab import records
from course_lab.ch06_pretraining import shipped
from course_tools.claims import computed
from course_tools.claims.rules import Measured, apart, exact, one_run, over

Run = Mapping[str, Any]
#: Jupyter Book leaves each page here as it was executed, and beside it what the page
#: glued.
EXECUTED = "jupyter_execute"


class LedgerError(LookupError):
    """What the ledger needs is missing or wrong; the message says what and where."""


@dataclass(frozen=True)
class Origin:
    """Where a figure stands: page, record, checkpoint's log, or code alone."""

    kind: Literal["live", "recorded", "checkpoint", "computed"]
    name: str = ""


class Evidence:
    """All that a build of the book has measured, and all that was recorded before."""

    def __init__(self, pages: Mapping[int, str], executed: Path | None = None) -> None:
        self._pages = pages
        self._executed = executed
        self.runs = cache(self._runs)
        self._glue = cache(self._glue_of)

    def glued(self, chapter: int, key: str) -> float:
        """Return a number that a chapter or its laboratory glued under a key."""
        page, glue = self._glue(chapter)
        if key not in glue:
            known = ", ".join(sorted(glue)) or "nothing"
            raise LedgerError(f"{page} glues no {key!r}; it glues: {known}")
        text = glue[key]["data"].get("text/plain", "")
        try:
            return float(text)
        except ValueError as error:
            what = f"{page} glues {text!r} as {key!r}, which is no number"
            raise LedgerError(f"{what}; glue a plain float") from error

    def _glue_of(self, chapter: int) -> tuple[str, dict[str, Any]]:
        if self._executed is None:
            asked = f"chapter {chapter} is asked for a live figure"
            raise LedgerError(f"{asked}, but no executed pages are at hand")
        if chapter not in self._pages:
            raise LedgerError(f"the book has no chapter {chapter}")
        page = self._pages[chapter]
        if not (self._executed / f"{page}.ipynb").is_file():
            raise LedgerError(
                f"{page}.ipynb has not been executed: build the book, or mend the"
                " page's own error first"
            )
        glue: dict[str, Any] = {}
        for name in (page, f"{page}-lab"):
            file = self._executed / f"{name}.glue.json"
            if file.is_file():
                of_page = json.loads(file.read_text(encoding="utf-8"))
                glue |= {key: of_page[key] for key in of_page.keys() - glue.keys()}
        return page, glue

    def _runs(self, record: str) -> list[dict[str, Any]]:
        """Return the runs of a record; it is an error if there is none."""
        try:
            return list(records.load(record).results)
        except FileNotFoundError as error:
            raise LedgerError(str(error)) from error


@dataclass(frozen=True)
class Glued:
    """What a page glued."""

    page: int  # number of the chapter
    glued: str  # the key of the figure
    over: str = ""  # what its interval is over; half its width is glued as ``_half``
    low: str = ""
    high: str = ""
    how: str = ""
    kind: Literal["exact", "one run", "least", "most"] = "one run"  # of no interval

    def needs(self) -> set[str]:
        """Name all keys that the page must glue."""
        half = f"{self.glued}_half" if self.over else ""
        return {self.glued, half, self.low, self.high} - {""}

    def read(self, evidence: Evidence) -> Measured:
        """Return what was glued."""
        value = evidence.glued(self.page, self.glued)
        if self.over:
            half = evidence.glued(self.page, f"{self.glued}_half")
            how = f"95% interval over {self.over}"
            return Measured(value, value - half, value + half, how)
        if self.low:
            low = evidence.glued(self.page, self.low)
            high = evidence.glued(self.page, self.high)
            return Measured(value, low, high, self.how)
        if self.kind == "least":
            return Measured(value, value, math.inf, "the least of the seeds")
        if self.kind == "most":
            return Measured(value, -math.inf, value, "the most of the seeds")
        return exact(value) if self.kind == "exact" else one_run(value)

    def origins(self) -> tuple[Origin, ...]:
        """Return the page."""
        return (Origin("live", str(self.page)),)


@dataclass(frozen=True)
class Recorded:
    """The mean over runs of a record with its interval, or by how much they are ahead
    of others, over the seeds of both: shared chance is not in that."""

    record: str  # name of the file in ``book/results``
    figure: Sequence[str | int] | str  # path of keys, or function in `computed`
    runs: Mapping[str, Any] | None = None  # what a run holds
    minus: Mapping[str, Any] | None = None  # `runs`, `figure` of what is taken off
    scale: float = 1.0  # a factor, e.g. 100 for percent
    kind: Literal["mean", "exact"] = "mean"  # "exact" is the sum, without chance

    def _values(self, evidence: Evidence) -> dict[Any, float]:
        """Return the figure of each run, by its seed where it has one."""
        wanted, runs = dict(self.runs or {}), evidence.runs(self.record)
        fitting = [run for run in runs if run.items() >= wanted.items()]
        if not fitting:
            raise LedgerError(f"{self.record}.json has no run with {wanted}")
        return {
            run.get("seed", place): self.scale * _pick(run, self.figure)
            for place, run in enumerate(fitting)
        }

    def read(self, evidence: Evidence) -> Measured:
        """Return the mean over the runs or of the differences, or the sum."""
        values = self._values(evidence)
        if self.minus is None:
            found = list(values.values())
            return exact(math.fsum(found)) if self.kind == "exact" else over(found)
        if unknown := sorted(self.minus.keys() - {"runs", "figure"}):
            has = f"minus of {self.record} has {unknown}"
            raise LedgerError(f"{has}; it may change runs and figure")
        behind = replace(self, minus=None, **self.minus)._values(evidence)
        seeds = sorted(values.keys() & behind.keys())
        if not seeds:
            own = f"{sorted(values)} in {self.runs}"
            raise LedgerError(
                f"no seed in common: {own}, {sorted(behind)} in the other"
            )
        return over([values[seed] - behind[seed] for seed in seeds])

    def origins(self) -> tuple[Origin, ...]:
        """Return the record."""
        return (Origin("recorded", self.record),)


@dataclass(frozen=True)
class Logged:
    """A figure of a checkpoint's log; `half` is the key of half its interval."""

    log: str
    figure: Sequence[str | int]
    half: str = ""
    scale: float = 1.0

    def read(self, evidence: Evidence) -> Measured:
        """Return what the log says."""
        log = shipped.read_log(self.log)
        value = self.scale * _pick(log, self.figure)
        if not self.half:
            return exact(value)
        half = self.scale * _pick(log, [*self.figure[:-1], self.half])
        how = "95% interval over documents"
        return Measured(value, value - half, value + half, how)

    def origins(self) -> tuple[Origin, ...]:
        """Return the checkpoint."""
        return (Origin("checkpoint", self.log),)


@dataclass(frozen=True)
class Computed:
    """What a function of `computed` measures now, once or by seed, of an argument."""

    name: str
    of: str = ""

    def read(self, evidence: Evidence) -> Measured:
        """Return what the function measures."""
        if self.name not in computed.FIGURES:
            known = ", ".join(computed.FIGURES)
            raise LedgerError(f"no function {self.name!r} is computed; known: {known}")
        found = computed.FIGURES[self.name](*[self.of] if self.of else [])
        return exact(float(found)) if isinstance(found, int | float) else over(found)

    def origins(self) -> tuple[Origin, ...]:
        """Say that it stands in code alone."""
        return (Origin("computed"),)


@dataclass(frozen=True)
class Apart:
    """How far the first of two figures is above the second, of independent runs."""

    both: tuple["Source", "Source"]

    def read(self, evidence: Evidence) -> Measured:
        """Return the difference and its interval."""
        return apart(*(source.read(evidence) for source in self.both))

    def origins(self) -> tuple[Origin, ...]:
        """Return those of both."""
        first, second = self.both
        return tuple(dict.fromkeys(first.origins() + second.origins()))


Source = Glued | Recorded | Logged | Computed | Apart
#: By the key that tells them in ``claims.yaml``, which is their first field.
SOURCES = {"page": Glued, "record": Recorded, "log": Logged, "computed": Computed}
SOURCES |= {"apart": Apart}


def _pick(run: Run, figure: Sequence[str | int] | str) -> float:
    """Follow a path of keys into a run, or ask a function of it."""
    if isinstance(figure, str):
        if figure not in computed.OF_A_RUN:
            known = ", ".join(computed.OF_A_RUN)
            raise LedgerError(f"no function {figure!r} of a run; known are: {known}")
        return computed.OF_A_RUN[figure](run)
    found: Any = run
    for step, key in enumerate(figure):
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError) as error:
            of = f"of a run of {run.get('variant', '')!r}"
            raise LedgerError(f"no {key!r} at {list(figure[:step])} {of}") from error
    if isinstance(found, Mapping):
        found = list(found.values())
    return fmean(found) if isinstance(found, list) else float(found)
