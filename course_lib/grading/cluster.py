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
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict

from course_lib.grading.class_run import Run, Steps, packed_transcript, run_settled, unpacked_transcript
from course_lib.grading.execute import Transcript
from course_lib.grading.record import environment
from course_lib.grading.sandbox import Limits, NoIsolation, Warm, Worker

#: Submissions that each thread of the cluster has in hand or waits for: the grader's memory stays flat.
AHEAD = 2
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


def there(packed: bytes, files: bytes, isolation: str, settings: str, wanted: str) -> bytes:
    """Run one submission on a machine of the cluster.

    Args:
        packed: its steps as compressed JSON.
        files: what the assignment ships, packed by :func:`pack_files`.
        isolation: the name of a rung.
        settings: limits, and tests that depend on chance, as JSON.
        wanted: what :func:`course_lib.grading.record.environment` says where the grader runs.

    Returns:
        The transcript as compressed JSON.

    Raises:
        NoCluster: this machine would give other marks, or cannot shut submissions in.
    """
    from distributed import get_worker

    if environment() != wanted:
        raise NoCluster(f"A machine of the cluster has {environment()}; the grader has {wanted}. Install the same.")
    limits, chancy = json.loads(settings)
    threads = get_worker().state.nthreads
    crew = _KEEPER.submit(_crew, isolation, json.dumps(limits), threads).result()
    worker = crew.free.get()
    try:
        steps = json.loads(zlib.decompress(packed))
        return packed_transcript(run_settled(worker, unpack_files(files), chancy, steps))
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

    def hands(self, files: dict[str, bytes], limits: Limits, chancy: Mapping[str, float]) -> list[Run]:
        """Give functions that each run one submission somewhere in the cluster, two for each thread of it.

        Args:
            files: what the assignment ships.
            limits: what each submission may use.
            chancy: tests that are run again where they fail, and their points.

        Raises:
            NoCluster: nobody works in the cluster.
        """
        threads = sum(self.client.nthreads().values())
        if not threads:
            raise NoCluster("The Dask cluster has no worker. Start one, with dask worker, and this command again.")
        shipped = self.client.scatter(pack_files(files), broadcast=True, hash=False)
        more = (shipped, self.isolation, json.dumps([asdict(limits), dict(chancy)]), environment())

        def run(steps: Steps) -> Transcript:
            with _in_words():
                future = self.client.submit(there, zlib.compress(json.dumps(steps).encode()), *more, pure=False)
                return unpacked_transcript(future.result())

        return [run] * (AHEAD * threads)

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
