"""Run a class behind the wall, several submissions at a time, in the order in which they were handed in.

Only few submissions are open at any time: the next is read when a worker is about to be free. Of those that would run
the same cells only one is run.
"""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Protocol, runtime_checkable

from course_lib.grading.execute import Run, Steps, Transcript, packed_transcript, unpacked_transcript
from course_lib.grading.flaky import run_settled
from course_lib.grading.intake import Submission
from course_lib.grading.sandbox import Limits, Warm, Worker

MANY = 8  # submissions from which on it pays to make the worker's forks cheap
Todo = queue.SimpleQueue[tuple[bytes, Steps] | None]
Finished = queue.SimpleQueue[tuple[bytes, Transcript | BaseException]]


@runtime_checkable
class Elsewhere(Protocol):
    """Something that runs submissions on other machines (:class:`course_lib.grading.cluster.Cluster`)."""

    def hands(self, files: dict[str, bytes], limits: Limits, chancy: Mapping[str, float]) -> list[Run]:
        """Give as many functions that run one submission as shall be called at a time."""
        ...


def run_class(
    submissions: Sequence[Submission],
    plan: Callable[[Submission], Steps],
    files: dict[str, bytes],
    workers: int,
    warm: Warm | Elsewhere,
    limits: Limits,
    chancy: Mapping[str, float],
) -> Iterator[tuple[Submission, Transcript | None]]:
    """Run submissions.

    Args:
        submissions: of a class.
        plan: gives the steps of one.
        files: what the assignment ships beside the notebook.
        workers: submissions at a time.
        warm: forks the workers, or has its own on other machines.
        limits: what a submission may use.
        chancy: tests that are run again where they fail, and their points (:mod:`course_lib.grading.flaky`).

    Yields:
        Each submission, as soon as it has run, with what the referee said; None if it cannot be run.

    Raises:
        NoIsolation: nothing can be run here.
    """
    runnable = [submission for submission in submissions if not submission.problem]
    yield from ((submission, None) for submission in submissions if submission.problem)
    if not runnable:
        return
    todo, finished = Todo(), Finished()
    running: dict[bytes, list[Submission]] = {}  # by a checksum of their steps
    packed: dict[bytes, bytes] = {}
    with ExitStack() as stack:
        if isinstance(warm, Elsewhere):
            runs = warm.hands(files, limits, chancy)[: len(runnable)]
        else:
            sockets = warm.fork(min(workers, len(runnable)), many=len(runnable) >= MANY)
            here = [stack.enter_context(Worker(limits, warm, orders)) for orders in sockets]
            runs = [partial(run_settled, worker, files, chancy) for worker in here]
        workers = len(runs)
        for run in runs:
            threading.Thread(target=_work, args=(run, todo, finished), daemon=True).start()
            stack.callback(todo.put, None)
        waiting = iter(runnable)
        while True:
            while len(running) < 2 * workers and (submission := next(waiting, None)) is not None:
                steps = plan(submission)
                key = hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).digest()
                if key in packed:
                    yield submission, unpacked_transcript(packed[key])
                elif key in running:
                    running[key].append(submission)
                else:
                    running[key] = [submission]
                    todo.put((key, steps))
            if not running:
                return
            key, transcript = finished.get()
            if isinstance(transcript, BaseException):
                raise transcript
            packed[key] = packed_transcript(transcript)
            for submission in running.pop(key):
                yield submission, transcript


def _work(run: Run, todo: Todo, finished: Finished) -> None:
    """Run what there is to do, one after the other, in a thread of its own."""
    while (item := todo.get()) is not None:
        key, steps = item
        try:
            finished.put((key, run(steps)))
        except BaseException as error:
            finished.put((key, error))
            return
