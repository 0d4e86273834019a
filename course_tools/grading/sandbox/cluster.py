"""Grade on a Dask cluster: bytes go out, bytes come back.

A machine of the cluster needs this package, the same versions of what marks depend on,
and a wall of its own (:mod:`course_tools.grading.sandbox.isolation`); no course folder,
no gradebook, no file of the grader's. What travels is a submission's steps, in a hidden
round with the hidden tests, and the referee's report as JSON: nothing that a student's
code made is ever an object of Dask's, which moves objects by pickle. A machine that is
lost costs the work it had in hand, which another one does again, with the same marks.

Nothing here imports nbgrader, a notebook's format or torch: a machine of the cluster
imports this module too, and torch is imported behind the wall alone.
"""

import atexit
import json
import queue
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from typing import Any

from course_tools.grading.run.execute import (
    Round,
    Run,
    Transcript,
    environment,
    packed_transcript,
    run_settled,
    unpacked_transcript,
)
from course_tools.grading.sandbox.sandbox import Limits, NoIsolation, Warm, Worker

#: Submissions that each thread of the cluster has in hand or waits for: the grader's
#: memory stays flat.
AHEAD = 2
SECONDS_TO_CONNECT = 30


class Cluster(AbstractContextManager["Cluster"]):
    """A Dask cluster in the place of this machine's workers."""

    def __init__(
        self, address: str, isolation: str, memory: int = Limits.memory
    ) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            install = "pip install -c constraints.txt -e '.[dask]'"
            raise NoCluster(f"Dask is not installed. Run: {install}") from error
        self.isolation = isolation
        patience = SECONDS_TO_CONNECT
        try:
            self.client = Client(address, timeout=patience, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            silent = f"No Dask scheduler answers at {address}"
            raise NoCluster(f"{silent}: {error}") from error
        self._ready = [
            self.client.submit(get_ready, isolation, memory, workers=[one], pure=False)
            for one in self.client.nthreads()
        ]
        # a machine that is lost later is not asked to have been ready
        for hiring in self._ready:
            hiring.add_done_callback(lambda done: done.release())

    def hands(
        self, files: dict[str, bytes], limits: Limits, chancy: Mapping[str, float]
    ) -> list[Run]:
        """Give functions that run a round on the cluster, two for each thread."""
        threads = sum(self.client.nthreads().values())
        if not threads:
            raise NoCluster(
                "The Dask cluster has no worker. Start one, with dask worker, and this"
                " command again."
            )
        shipped = self.client.scatter(pack_files(files), broadcast=True, hash=False)
        settings = json.dumps([asdict(limits), dict(chancy)])
        more = (shipped, self.isolation, settings, environment())

        def run(one: Round) -> Transcript:
            packed = zlib.compress(json.dumps(vars(one)).encode())
            with _in_words():
                future = self.client.submit(there, packed, *more, pure=False)
                return unpacked_transcript(future.result())

        return [run] * (AHEAD * threads)

    def __exit__(self, *_: object) -> None:
        self.client.close()  # what it still has of ours it forgets


@contextmanager
def _in_words() -> Iterator[None]:
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        lost = "Machines of the cluster were lost again and again with one submission"
        raise NoCluster(f"{lost}: {error}") from error
    except FutureCancelledError as error:
        raise NoCluster(
            "The cluster was lost. Graded work is kept: start the command again."
        ) from error


class NoCluster(NoIsolation):
    """The cluster cannot be used; the text says why and what to do."""


class Crew:
    """What a process of the cluster keeps: a warm process and idle workers."""

    def __init__(self, isolation: str, memory: int, threads: int) -> None:
        self.warm = Warm(isolation, memory)
        self.free: queue.LifoQueue[Worker] = queue.LifoQueue()
        for orders in self.warm.fork(threads, many=True):
            self.free.put(Worker(Limits(), self.warm, orders))
        atexit.register(self.warm.close)


#: Starts what belongs to this process of the cluster: bubblewrap ends when the thread
#: that started it ends.
_KEEPER = ThreadPoolExecutor(max_workers=1)
_CREWS: dict[tuple[str, int], Crew] = {}


def _crew(isolation: str, memory: int, threads: int) -> Crew:
    if (isolation, memory) not in _CREWS:
        _CREWS[isolation, memory] = Crew(isolation, memory, threads)
    return _CREWS[isolation, memory]


def hire(isolation: str, memory: int) -> Future[Crew]:
    """Let this process of the cluster get a crew, and do not wait for it."""
    from distributed import get_worker

    return _KEEPER.submit(_crew, isolation, memory, get_worker().state.nthreads)


def get_ready(isolation: str, memory: int) -> None:
    """Begin to hire, while the grader still reads; who needs it hears errors."""
    hire(isolation, memory)


def dask_setup(worker: Any) -> None:
    """Get ready before any grader comes, for `dask worker --preload`."""
    _KEEPER.submit(_crew, "bubblewrap", Limits.memory, worker.state.nthreads)


def there(
    packed: bytes, files: bytes, isolation: str, settings: str, wanted: str
) -> bytes:
    """Run one round of a submission on a machine of the cluster."""
    if (has := environment()) != wanted:
        both = f"A machine of the cluster has {has}; the grader has {wanted}."
        raise NoCluster(f"{both} Install the same.")
    told, chancy = json.loads(settings)
    limits = Limits(**told)
    crew = hire(isolation, limits.memory).result()
    worker = crew.free.get()
    worker.limits = limits
    try:
        one = Round(**json.loads(zlib.decompress(packed)))
        return packed_transcript(run_settled(worker, unpack_files(files), chancy, one))
    finally:
        crew.free.put(worker)


def pack_files(files: dict[str, bytes]) -> bytes:
    """Put files one after the other, behind a line that says how long each is."""
    sizes = json.dumps([[name, len(data)] for name, data in files.items()]).encode()
    return sizes + b"\n" + b"".join(files.values())


def unpack_files(packed: bytes) -> dict[str, bytes]:
    """Undo :func:`pack_files`."""
    sizes, rest = packed.split(b"\n", 1)
    files, at = {}, 0
    for name, size in json.loads(sizes):
        files[name] = rest[at : at + size]
        at += size
    return files
