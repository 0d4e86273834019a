"""Run a class behind the wall, several submissions at a time, in the order in which they were handed in.

Only few submissions are open at any time: the next is read when a worker is about to be free. Of those that would run
the same cells only one is run.
"""

from __future__ import annotations

import hashlib
import json
import queue
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

from course_lib.grading import flaky
from course_lib.grading.execute import Transcript, execute
from course_lib.grading.intake import Submission
from course_lib.grading.sandbox import Limits, Warm, Worker

MANY = 8  # submissions from which on it pays to make the worker's forks cheap
Steps = list[dict[str, Any]]
Todo = queue.SimpleQueue[tuple[bytes, Steps] | None]
Finished = queue.SimpleQueue[tuple[bytes, Transcript | BaseException]]


def run_class(
    submissions: Sequence[Submission],
    plan: Callable[[Submission], Steps],
    files: dict[str, bytes],
    workers: int,
    warm: Warm,
    limits: Limits,
    chancy: Mapping[str, float],
) -> Iterator[tuple[Submission, Transcript | None]]:
    """Run submissions.

    Args:
        submissions: of a class.
        plan: gives the steps of one.
        files: what the assignment ships beside the notebook.
        workers: submissions at a time.
        warm: forks the workers.
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
    workers = min(workers, len(runnable))
    todo, finished = Todo(), Finished()
    running: dict[bytes, list[Submission]] = {}  # by a checksum of their steps
    packed: dict[bytes, bytes] = {}
    with ExitStack() as stack:
        for orders in warm.fork(workers, many=len(runnable) >= MANY):
            worker = stack.enter_context(Worker(limits, warm, orders))
            threading.Thread(target=_work, args=(worker, files, chancy, todo, finished), daemon=True).start()
            stack.callback(todo.put, None)
        waiting = iter(runnable)
        while True:
            while len(running) < 2 * workers and (submission := next(waiting, None)) is not None:
                steps = plan(submission)
                key = hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).digest()
                if key in packed:
                    yield submission, _unpacked(packed[key])
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
            packed[key] = _packed(transcript)
            for submission in running.pop(key):
                yield submission, transcript


def _packed(transcript: Transcript) -> bytes:
    return zlib.compress(json.dumps(asdict(transcript)).encode())


def _unpacked(data: bytes) -> Transcript:
    transcript = Transcript(**json.loads(zlib.decompress(data)))
    transcript.cells = {int(index): told for index, told in transcript.cells.items()}
    return transcript


def _work(worker: Worker, files: dict[str, bytes], chancy: Mapping[str, float], todo: Todo, finished: Finished) -> None:
    """Run what there is to do in one worker, in a thread of its own."""
    while (item := todo.get()) is not None:
        key, steps = item
        try:
            finished.put((key, flaky.settled(partial(execute, worker, steps, files), chancy)))
        except BaseException as error:
            finished.put((key, error))
            return
