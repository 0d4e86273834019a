"""How far a grading is and how long it will take, on a terminal; lines alone where
nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOBase

import typer
from tqdm import tqdm

from course_tools.grading.shown import shown

MOST = 2000  # letters of a line on the terminal


@contextmanager
def progress(
    stream: TextIOBase | None = None,
) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """Show a bar with the time that is left while submissions are graded."""
    with tqdm(
        file=stream or sys.stderr,
        disable=None,
        unit="submission",
        dynamic_ncols=True,
        smoothing=0.1,
    ) as bar:

        def expect(count: int) -> None:
            bar.reset(total=count)

        def say(words: str) -> None:
            words = shown(words, MOST)
            if bar.disable:
                typer.echo(words)
            else:
                bar.write(words)
                bar.update()

        yield say, expect
