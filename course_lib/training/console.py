"""What a training run shares with who watches it: a bar of steps, a file that tells the
step, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from course_lib.training.config import History, TrainingConfig


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a wish to stop after the step; the second stops at
    once, as usual."""
    wish = threading.Event()
    # only the main thread may handle signals
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    before = signal.getsignal(signal.SIGINT) or signal.default_int_handler

    def note(number: int, frame: Any) -> None:
        wish.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield wish
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(
    config: TrainingConfig, done: int, rank: int
) -> Iterator[Callable[[History], None]]:
    """Show a bar of steps, if the settings or the terminal want one, and only in
    process 0."""
    file = os.environ.get("COURSE_PROGRESS")
    if file and rank == 0:
        yield _writer(file, config.steps)
        return
    wanted = sys.stderr.isatty() if config.progress is None else config.progress
    if not wanted or rank != 0:
        yield lambda history: None
        return
    # its import warns in notebooks without widgets: only when it is wanted
    from tqdm.auto import tqdm

    with tqdm(total=config.steps, initial=done, unit="step") as bar:

        def show(history: History) -> None:
            bar.set_postfix(loss=f"{history.losses[-1]:.3f}", refresh=False)
            bar.update(1)

        yield show


def _writer(file: str, steps: int) -> Callable[[History], None]:
    written = 0.0

    def write(history: History) -> None:
        nonlocal written
        if time.monotonic() - written >= 1:
            with open(file, "w", encoding="utf-8") as target:
                target.write(f"{history.steps[-1]} {steps}")
            written = time.monotonic()

    return write
