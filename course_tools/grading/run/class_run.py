"""Run a class behind the wall: every visible round, then every hidden one.

:mod:`course_tools.grading.run.rounds` says why. Only few submissions are open at any
time: the next is read when a worker is about to be free. Of those that would run the
same cells only one is run.

What the clock stops while other submissions run may have been stopped because of them.
Such a round is run once more at the end of its phase, when nothing else runs, and that
counts.

An assignment asks for a GPU in its source's header, ``course: device: gpu``, or ``gpu
or cpu`` where a machine without one does as well: then there are as many workers as
devices, and each sees its own alone. The device is in the worker's wall, not only in
its environment: no node of another one is there. Nothing asks for CUDA before a worker
forks a submission, since a process that has asked cannot be forked.
"""

import hashlib
import json
import queue
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, runtime_checkable

from course_tools.grading.collect.intake import Submission
from course_tools.grading.run.execute import (
    Round,
    Run,
    Steps,
    Transcript,
    hidden_round,
    packed_transcript,
    run_settled,
    unpacked_transcript,
    visible_round,
)
from course_tools.grading.run.rounds import Rounds, joined, without_words
from course_tools.grading.sandbox.devices import Device, devices
from course_tools.grading.sandbox.sandbox import Limits, NoIsolation, Warm, Worker

MANY = 8  # submissions from which on it pays to make the worker's forks cheap
Todo = queue.SimpleQueue[tuple[str, Round] | None]
Finished = queue.SimpleQueue[tuple[str, Transcript | BaseException]]


@runtime_checkable
class Elsewhere(Protocol):
    """What runs submissions elsewhere: a cluster, or devices."""

    def hands(
        self, files: dict[str, bytes], limits: Limits, chancy: Mapping[str, float]
    ) -> list[Run]:
        """Give as many functions that run one round as may run at a time."""
        ...


@dataclass
class Work:
    """Submissions that run the same cells. What may be long is packed, because a class
    may be large."""

    steps: bytes  # of :func:`course_tools.grading.run.plan.steps`
    visible: bytes = b""  # what their visible round gave; nothing yet if it is empty
    submissions: list[Submission] = field(default_factory=list)  # who handed them in

    def round(self, hidden: bool) -> Round:
        """Give the one or the other round."""
        steps = json.loads(zlib.decompress(self.steps))
        seen = unpacked_transcript(self.visible) if hidden else None
        return visible_round(steps) if seen is None else hidden_round(steps, seen)


def run_class(
    submissions: Sequence[Submission],
    plan: Callable[[Submission], Steps],
    files: dict[str, bytes],
    workers: int,
    warm: Warm | Elsewhere,
    limits: Limits,
    chancy: Mapping[str, float],
    rounds: Rounds | None,
) -> Iterator[tuple[Submission, Transcript | None]]:
    """Run submissions."""
    runnable = [submission for submission in submissions if not submission.problem]
    yield from ((submission, None) for submission in submissions if submission.problem)
    if not runnable:
        return
    works: dict[str, Work] = {}
    with ExitStack() as stack:
        if isinstance(warm, Elsewhere):
            runs = warm.hands(files, limits, chancy)[: len(runnable)]
        else:
            runs, many = [], len(runnable) >= MANY
            for orders in warm.fork(min(workers, len(runnable)), many):
                worker = stack.enter_context(Worker(limits, warm, orders))
                runs.append(partial(run_settled, worker, files, chancy))
        crew = _Crew(runs, stack)
        unseen = _to_be_seen(runnable, plan, files, rounds, works)
        for key, visible in crew.run(unseen, works, hidden=False):
            work = works[key]
            if rounds is None:
                work.visible = packed_transcript(visible)
                continue
            if rounds.hidden_began():  # so it may have met what a hidden round left
                visible = without_words(visible)
            work.visible = work.visible or packed_transcript(visible)
            for submission in work.submissions:
                rounds.keep(submission.student, key, work.visible)
        for key, work in list(works.items()):
            if (visible := unpacked_transcript(work.visible)).trouble:
                yield from ((submission, visible) for submission in work.submissions)
                del works[key]
        if rounds and works:
            rounds.begin_hidden()
        for key, hidden in crew.run(list(works), works, hidden=True):
            work = works.pop(key)
            transcript = joined(unpacked_transcript(work.visible), hidden)
            yield from ((submission, transcript) for submission in work.submissions)


def _to_be_seen(
    submissions: Iterable[Submission],
    plan: Callable[[Submission], Steps],
    files: dict[str, bytes],
    rounds: Rounds | None,
    works: dict[str, Work],
) -> Iterator[str]:
    """Fill the works, and name those whose visible round is still to be run."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    for submission in submissions:
        steps = plan(submission)
        seen = [visible_round(steps).steps, sorted(digests.items())]
        key = hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()
        packed = zlib.compress(json.dumps(steps).encode(), level=1)
        work = works.setdefault(key, Work(packed))
        work.submissions.append(submission)
        if rounds and work.visible:
            rounds.keep(submission.student, key, work.visible)
        elif rounds and (kept := rounds.kept(submission.student, key)):
            work.visible = kept
        elif len(work.submissions) == 1:
            yield key


class _Crew:
    """Threads that run rounds, each with a worker of its own."""

    def __init__(self, runs: list[Run], stack: ExitStack) -> None:
        self.todo, self.finished, self.size = Todo(), Finished(), len(runs)
        self._lock = threading.Lock()
        # of each that runs now: how many others did at the same time, at most
        self._beside: dict[str, int] = {}
        for run in runs:
            threading.Thread(target=self._work, args=(run,), daemon=True).start()
            stack.callback(self.todo.put, None)

    def run(
        self, keys: Iterable[str], works: Mapping[str, Work], hidden: bool
    ) -> Iterator[tuple[str, Transcript]]:
        """Run a round of works, then again, one at a time, of those made late."""
        waiting, in_hand, late = iter(keys), 0, dict[str, int]()
        while True:
            while in_hand < 2 * self.size and (key := next(waiting, None)) is not None:
                self.todo.put((key, works[key].round(hidden)))
                in_hand += 1
            if not in_hand:
                break
            key, transcript = self._next()
            in_hand -= 1
            if transcript.late_beside:
                late[key] = transcript.late_beside
            else:
                yield key, transcript
        for key, others in late.items():
            self.todo.put((key, works[key].round(hidden)))
            key, transcript = self._next()
            transcript.late_beside = others
            yield key, transcript

    def _next(self) -> tuple[str, Transcript]:
        key, transcript = self.finished.get()
        if isinstance(transcript, BaseException):
            raise transcript
        return key, transcript

    def _work(self, run: Run) -> None:
        """Run what there is to do, one after the other, in a thread of its own."""
        while (item := self.todo.get()) is not None:
            key, one = item
            with self._lock:
                self._beside[key] = 0
                for other, beside in self._beside.items():
                    self._beside[other] = max(beside, len(self._beside) - 1)
            try:
                transcript = run(one)
            except BaseException as error:
                self.finished.put((key, error))
                return
            with self._lock:
                beside = self._beside.pop(key)
            late = set(transcript.late) - set(one.slow)
            transcript.late_beside = beside if late else 0
            self.finished.put((key, transcript))


#: What an assignment may say: it needs a GPU, or takes one.
NEEDS, TAKES = "gpu", "gpu or cpu"


class OneWorkerADevice:
    """A warm process behind a wall of its own for each device."""

    def __init__(self, isolation: str, found: list[Device], memory: int) -> None:
        self.warms: list[Warm] = [Warm(isolation, memory, device) for device in found]
        self._workers = ExitStack()

    def hands(
        self, files: dict[str, bytes], limits: Limits, chancy: Mapping[str, float]
    ) -> list[Run]:
        """Give a function for each device that runs one round of a submission there."""
        runs: list[Run] = []
        for warm in self.warms:
            worker = self._workers.enter_context(Worker(limits, warm, warm.fork(1)[0]))
            runs.append(partial(run_settled, worker, files, chancy))
        return runs

    def close(self) -> None:
        """End all that runs on the devices."""
        self._workers.close()
        for warm in self.warms:
            warm.close()


@contextmanager
def on_what_it_asks_for(
    wish: str, warm: Warm | Elsewhere, memory: int
) -> Iterator[Warm | Elsewhere]:
    """Run an assignment's submissions on GPUs, if it asks for them."""
    if wish not in ("", NEEDS, TAKES):
        write = f"write {NEEDS!r}, or {TAKES!r}, or nothing"
        raise NoIsolation(f"The assignment's header says device: {wish!r}; {write}.")
    found = devices() if wish and isinstance(warm, Warm) else []
    if wish == NEEDS and not found:
        here = isinstance(warm, Warm)
        where = "on this machine, by its own torch" if here else "through Dask"
        raise NoIsolation(
            f"The assignment needs a GPU, and none is found {where}. Grade on a machine"
            " where nvidia-smi lists one and torch.cuda.is_available() is true,"
            f" without --dask; or, if a CPU does as well, write device: {TAKES} into"
            " the header of its source and release it again."
        )
    if not found or not isinstance(warm, Warm):
        yield warm
        return
    on_devices = OneWorkerADevice(warm.name, found, memory)
    try:
        yield on_devices
    finally:
        on_devices.close()
