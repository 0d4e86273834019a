"""What a build says while it runs: bars, or elsewhere a line a minute."""

import contextlib
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SECONDS_BETWEEN_LINES = 60
UNKNOWN_SECONDS = 30.0  # expected of a job where no cost is known


@dataclass(eq=False)
class Job:
    """Something that a build does beside other things: a page to execute, a corpus to
    make."""

    name: str  # the name of the page, or what is made
    expected: float = UNKNOWN_SECONDS  # seconds that it took when it was last measured
    parts: int = 1  # of how many cells it consists
    steps: Path | None = None  # where a training run leaves how far it is
    part: int = 0
    started: float | None = field(default=None, init=False)
    seconds: float | None = field(default=None, init=False)

    def begin(self) -> None:
        """Note that it runs from now on."""
        self.started = time.monotonic()

    def end(self) -> None:
        """Note that it has ended."""
        assert self.started is not None
        self.seconds = time.monotonic() - self.started

    @property
    def running(self) -> bool:
        """Whether it has begun and not ended."""
        return self.started is not None and self.seconds is None

    def so_far(self) -> float:
        """Return the seconds that it has run."""
        if self.started is None:
            return 0.0
        return time.monotonic() - self.started if self.seconds is None else self.seconds

    def where(self) -> str:
        """Say in a few words how far it is."""
        words = [clock(self.so_far())]
        if self.parts > 1:
            words.append(f"cell {self.part} of {self.parts}")
        # no training run, or one that is writing its file just now
        with contextlib.suppress(OSError, ValueError):
            said = self.steps.read_text(encoding="utf-8") if self.steps else ""
            step, steps = map(int, said.split())
            words.append(f"step {step:,} of {steps:,}")
        return f"{self.name} ({', '.join(words)})"


def clock(seconds: float) -> str:
    """Write a time as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def remaining_seconds(jobs: Sequence[Job], at_once: int) -> float:
    """Estimate how long the jobs that are left will take, some at a time."""
    waiting = [job for job in jobs if job.seconds is None]
    late = [job for job in waiting if job.so_far() > job.expected]
    known = [*late, *(job for job in jobs if job.seconds is not None)]
    expected = sum(job.expected for job in known)
    pace = sum(job.so_far() for job in known) / expected if known else 1.0
    left = [max(pace * job.expected - job.so_far(), 0.0) for job in waiting]
    return max(sum(left) / at_once, max(left, default=0.0))


@contextmanager
def watch(jobs: list[Job], at_once: int) -> Iterator[Callable[[str], None]]:
    """Show how far some jobs are, until they have ended."""
    begun = time.monotonic()

    def state() -> str:
        done = sum(job.seconds is not None for job in jobs)
        running = "; ".join(job.where() for job in jobs if job.running)
        rest = remaining_seconds(jobs, at_once)
        left = f"about {clock(rest)} left" if rest >= 1 else "nearly done"
        return f"{done} of {len(jobs)} done, {left}{': ' if running else ''}{running}"

    if not sys.stdout.isatty():

        def say(line: str) -> None:
            print(f"[{clock(time.monotonic() - begun):>5}] {line}", flush=True)

        with heartbeat(state, say):
            yield say
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, transient=True) as bars:
        whole = bars.add_task("", total=len(jobs))

        def draw() -> str:
            done = sum(job.seconds is not None for job in jobs)
            bars.update(whole, description=state(), completed=done)
            return ""

        with heartbeat(draw, lambda line: None, every=0.5):
            yield lambda line: bars.console.print(line, highlight=False)


@contextmanager
def heartbeat(
    state: Callable[[], str], say: Callable[[str], None], every: float | None = None
) -> Iterator[None]:
    """Say how things stand again and again, in a thread of its own."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(every or SECONDS_BETWEEN_LINES):
            say(state())

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def median_cost(costs: Mapping[str, float]) -> float:
    """Return what to expect of a page that was never measured."""
    return statistics.median(costs.values()) if costs else UNKNOWN_SECONDS
