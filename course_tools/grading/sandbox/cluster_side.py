"""What runs on a machine of a Dask cluster: a crew of warm workers, hired when the
grader arrives.

Nothing here imports nbgrader, a notebook's format or torch: a process of the cluster is
busy with submissions at once, and torch is imported behind the wall alone.
"""

from __future__ import annotations

import atexit
import json
import queue
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from course_tools.grading.run.environment import environment
from course_tools.grading.run.execute import Round, packed_transcript
from course_tools.grading.run.flaky import run_settled
from course_tools.grading.sandbox.sandbox import Limits, NoIsolation, Warm, Worker


class NoCluster(NoIsolation):
    """The cluster cannot be used; the text says why and what to do."""


class Crew:
    """What a process of the cluster keeps between submissions: a warm process, and
    workers that nobody uses now."""

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
    """Begin to hire, while the grader still reads what was handed in; who needs the
    crew hears what went wrong."""
    hire(isolation, memory)


def dask_setup(worker: Any) -> None:
    """Get ready before any grader comes: what `dask worker --preload
    course_tools.grading.sandbox.cluster_side` calls."""
    _KEEPER.submit(_crew, "bubblewrap", Limits.memory, worker.state.nthreads)


def there(
    packed: bytes, files: bytes, isolation: str, settings: str, wanted: str
) -> bytes:
    """Run one round of a submission on a machine of the cluster."""
    if environment() != wanted:
        raise NoCluster(
            f"A machine of the cluster has {environment()}; the grader has {wanted}."
            " Install the same."
        )
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
