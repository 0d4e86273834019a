"""Grade on a Dask cluster: bytes go out, bytes come back, and one process here writes
the marks.

A machine of the cluster needs this package, the same versions of what marks depend on,
and a wall of its own (:mod:`course_tools.grading.sandbox.isolation`); no course folder,
no gradebook, no file of the grader's. What travels is a submission's steps, in a hidden
round with the hidden tests, and the referee's report as JSON: nothing that a student's
code made is ever an object of Dask's, which moves objects by pickle. A machine that is
lost costs the work it had in hand, which another one does again, with the same marks.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict

from course_tools.grading.run.environment import environment
from course_tools.grading.run.execute import Round, Run, Transcript, unpacked_transcript
from course_tools.grading.sandbox.cluster_side import (
    NoCluster,
    get_ready,
    pack_files,
    there,
)
from course_tools.grading.sandbox.sandbox import Limits

#: Submissions that each thread of the cluster has in hand or waits for: the grader's
#: memory stays flat.
AHEAD = 2
SECONDS_TO_CONNECT = 30


class Cluster:
    """A Dask cluster in the place of this machine's workers."""

    def __init__(
        self, address: str, isolation: str, memory: int = Limits.memory
    ) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise NoCluster(
                "Dask is not installed. Run: pip install -c constraints.txt -e"
                " '.[dask]'"
            ) from error
        self.isolation = isolation
        try:
            self.client = Client(
                address, timeout=SECONDS_TO_CONNECT, set_as_default=False
            )
        except (OSError, ValueError, TimeoutError) as error:
            raise NoCluster(
                f"No Dask scheduler answers at {address}: {error}"
            ) from error
        self._ready = [
            self.client.submit(
                get_ready, isolation, memory, workers=[machine], pure=False
            )
            for machine in self.client.nthreads()
        ]
        for hiring in (
            self._ready
        ):  # a machine that is lost later is not asked to have been ready
            hiring.add_done_callback(lambda done: done.release())

    def hands(
        self, files: dict[str, bytes], limits: Limits, chancy: Mapping[str, float]
    ) -> list[Run]:
        """Give functions that each run one round of a submission somewhere in the
        cluster, two for each thread of it."""
        threads = sum(self.client.nthreads().values())
        if not threads:
            raise NoCluster(
                "The Dask cluster has no worker. Start one, with dask worker, and this"
                " command again."
            )
        shipped = self.client.scatter(pack_files(files), broadcast=True, hash=False)
        more = (
            shipped,
            self.isolation,
            json.dumps([asdict(limits), dict(chancy)]),
            environment(),
        )

        def run(one: Round) -> Transcript:
            with _in_words():
                future = self.client.submit(
                    there,
                    zlib.compress(json.dumps(vars(one)).encode()),
                    *more,
                    pure=False,
                )
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
        raise NoCluster(
            "Machines of the cluster were lost again and again with one submission:"
            f" {error}"
        ) from error
    except FutureCancelledError as error:
        raise NoCluster(
            "The cluster was lost. Graded work is kept: start the command again."
        ) from error
