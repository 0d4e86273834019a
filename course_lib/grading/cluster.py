"""Grade on a Dask cluster: bytes go out, bytes come back, and one process here writes the marks.

A machine of the cluster needs this package, the same versions of what marks depend on, and a wall of its own
(:mod:`course_lib.grading.isolation`); no course folder, no gradebook, no file of the grader's. What travels is a
submission's steps with the hidden tests, and the referee's report as JSON: nothing that a student's code made is ever
an object of Dask's, which moves objects by pickle. A machine that is lost costs the work it had in hand, which another
one does again, with the same marks.
"""

from __future__ import annotations

import atexit
import json
import queue
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from course_lib.grading.execute import Transcript, execute
from course_lib.grading.record import environment
from course_lib.grading.sandbox import Limits, NoIsolation, Warm, Worker

#: Submissions that each thread of the cluster has in hand or waits for: the grader's memory stays flat.
AHEAD = 3
SECONDS_TO_CONNECT = 30


class NoCluster(NoIsolation):
    """The cluster cannot be used; the text says why and what to do."""


class _Crew:
    """What a process of the cluster keeps between submissions: a warm process, and workers that nobody uses now."""

    def __init__(self, isolation: str, limits: Limits) -> None:
        self.limits = limits
        self.warm = Warm(isolation, limits.memory)
        self.free: queue.LifoQueue[Worker] = queue.LifoQueue()

    def hire(self, threads: int) -> None:
        for orders in self.warm.fork(threads, many=True):
            self.free.put(Worker(self.limits, self.warm, orders))


#: Starts what belongs to this process of the cluster: bubblewrap ends when the thread that started it ends.
_KEEPER = ThreadPoolExecutor(max_workers=1)
_CREWS: dict[str, _Crew] = {}


def _crew(isolation: str, limits: str, threads: int) -> _Crew:
    key = f"{isolation} {limits}"
    if key not in _CREWS:
        crew = _Crew(isolation, Limits(**json.loads(limits)))
        crew.hire(threads)
        atexit.register(crew.warm.close)
        _CREWS[key] = crew
    return _CREWS[key]


def there(packed: bytes, files: bytes, isolation: str, limits: str, wanted: str) -> bytes:
    """Run one submission on a machine of the cluster.

    Args:
        packed: its steps as compressed JSON.
        files: what the assignment ships, packed by :func:`pack_files`.
        isolation: the name of a rung.
        limits: of :class:`course_lib.grading.sandbox.Limits`, as JSON.
        wanted: what :func:`course_lib.grading.record.environment` says where the grader runs.

    Returns:
        The transcript as JSON.

    Raises:
        NoCluster: this machine would give other marks, or cannot shut submissions in.
    """
    from distributed import get_worker

    if environment() != wanted:
        raise NoCluster(f"A machine of the cluster has {environment()}; the grader has {wanted}. Install the same.")
    threads = get_worker().state.nthreads
    crew = _KEEPER.submit(_crew, isolation, limits, threads).result()
    worker = crew.free.get()
    try:
        transcript = execute(worker, json.loads(zlib.decompress(packed)), unpack_files(files))
    finally:
        crew.free.put(worker)
    return json.dumps(asdict(transcript)).encode()


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


def read_transcript(told: bytes) -> Transcript:
    """Read what :func:`there` returned; JSON writes the places of cells as texts."""
    fields: dict[str, Any] = json.loads(told)
    fields["cells"] = {int(place): cell for place, cell in fields["cells"].items()}
    return Transcript(**fields)


class Cluster:
    """A Dask cluster in the place of this machine's workers.

    Args:
        address: of its scheduler, as tcp://host:8786.
        isolation: the name of the rung that every machine of it must give.

    Raises:
        NoCluster: Dask is not installed, or nobody answers at the address.
    """

    def __init__(self, address: str, isolation: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise NoCluster("Dask is not installed. Run: pip install -c constraints.txt -e '.[dask]'") from error
        self.isolation = isolation
        try:
            self.client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise NoCluster(f"No Dask scheduler answers at {address}: {error}") from error

    def transcripts(
        self, groups: list[bytes], files: dict[str, bytes], limits: Limits
    ) -> Iterator[tuple[bytes, Transcript]]:
        """Run submissions anywhere in the cluster, and yield each as it is done.

        Args:
            groups: steps, packed.
            files: what the assignment ships.
            limits: what each may use.

        Raises:
            NoCluster: the cluster is gone, or a machine of it cannot be used.
        """
        from distributed import as_completed

        shipped = self.client.scatter(pack_files(files), broadcast=True, hash=False)
        more = (shipped, self.isolation, json.dumps(asdict(limits)), environment())
        waiting, running = iter(groups), {}

        def submit(packed: bytes) -> Any:
            future = self.client.submit(there, packed, *more, pure=False, retries=0)
            running[future.key] = packed
            return future

        threads = sum(self.client.nthreads().values()) or 1
        first = [submit(packed) for _, packed in zip(range(AHEAD * threads), waiting, strict=False)]
        coming = as_completed(first, loop=self.client.loop)
        with _in_words():
            for future in coming:
                transcript = read_transcript(future.result())
                packed = running.pop(future.key)
                future.release()
                if (another := next(waiting, None)) is not None:
                    coming.add(submit(another))
                yield packed, transcript

    def close(self) -> None:
        """Leave the cluster; what it still has of ours it forgets."""
        self.client.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _in_words() -> Iterator[None]:
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise NoCluster(f"Machines of the cluster were lost again and again with one submission: {error}") from error
    except FutureCancelledError as error:
        raise NoCluster("The cluster was lost. Graded work is kept: start the command again.") from error
