"""The grader's side of the wall, and the pipes that lead in.

Inside there is Python, what pip installed, and ``course_lib``, all read-only; no
network, no environment, no gradebook, no submissions, no hidden tests, no other file of
this machine. See :mod:`course_tools.grading.sandbox.confine` for what shuts in each
submission on its own.
"""

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_tools.grading.sandbox import confine
from course_tools.grading.sandbox.devices import Device
from course_tools.grading.sandbox.isolation import (
    DOOR,
    PACKAGES,
    NoIsolation,
    bound,
    wall,
)

SECONDS_TO_START = 120


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    memory: int = 3 * 2**30  # bytes of all its processes together, beside a worker's
    cpu_seconds: int = 300  # processor time that all its processes together may take
    processes: int = 16  # and threads; a data loader with two workers needs 10
    file_bytes: int = 64 * 2**20  # of one file
    disk: str = "64m"  # of home, temporary folder and shared memory, each
    cell_seconds: float = 60.0  # by the clock, for one cell or one call from a test
    total_seconds: float = 600.0  # by the clock, for all of it


class Warm(contextlib.AbstractContextManager["Warm"]):
    """The process that imports torch behind the wall, once for all workers."""

    def __init__(
        self,
        isolation: str = "bubblewrap",
        memory: int = Limits.memory,
        device: Device | None = None,
    ) -> None:
        self.name, self.device = isolation, device
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._refused = ""
        self._door = tempfile.TemporaryDirectory()
        try:
            self.isolation = wall(isolation)
            self._begin(memory)
        except NoIsolation as error:
            # said by those who would run something; marks that are there need no wall
            self._refused = str(error)

    def _begin(self, memory: int) -> None:
        if self.isolation.by_socket:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(Path(self._door.name, Path(DOOR).name)))
            self._listener.listen(1)
            self._process = self._started(DOOR, memory)
            return
        self._orders, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = self._started(str(number), memory, number)

    def _started(self, orders: str, memory: int, *fds: int) -> subprocess.Popen[bytes]:
        around, nowhere = self.isolation, subprocess.DEVNULL
        program = [sys.executable, "-s", "-m", "course_tools.grading.sandbox.worker"]
        program += [orders, around.way]
        return subprocess.Popen(
            around.command(program, memory, self._door.name, self.device),
            env=around.environment(),
            pass_fds=fds,
            stdin=nowhere,
            stdout=nowhere,
            stderr=subprocess.PIPE,
        )

    def fork(self, workers: int, many: bool = False) -> list[socket.socket]:
        """Wait until torch is there, and fork workers."""
        if self._process is None:
            raise NoIsolation(self._refused)
        try:
            if self._orders is None:
                self._orders = self._connected()
            self._orders.settimeout(SECONDS_TO_START)
            ready = self._orders.recv(64)
        except TimeoutError:
            ready = b""
        if ready != b"ready" or self._orders is None:
            self._process.kill()
            assert self._process.stderr is not None
            said = self._process.stderr.read().decode(errors="replace").strip()
            last = (said or "it says nothing").splitlines()[-1]
            raise NoIsolation(f"The worker does not start: {last}.")
        pairs = [socket.socketpair() for _ in range(min(workers, confine.MOST_WORKERS))]
        wish, numbers = b"many" if many else b"few", [two.fileno() for _, two in pairs]
        socket.send_fds(self._orders, [wish], numbers)
        for _, theirs in pairs:
            theirs.close()
        return [ours for ours, _ in pairs]

    def _connected(self) -> socket.socket:
        """Wait until the process inside connects; one that has ended will not."""
        assert self._process is not None
        until = time.monotonic() + SECONDS_TO_START
        self._listener.settimeout(0.2)
        while True:
            try:
                orders = self._listener.accept()[0]
                self._listener.close()  # nobody else is let in by that door
                return orders
            except TimeoutError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise

    def close(self) -> None:
        """End the process and all that it started."""
        self._door.cleanup()
        if self._process is None:
            return
        if self._orders is not None:
            self._orders.close()
        if self.isolation.by_socket:
            self._listener.close()
        # the others end by themselves when their orders do
        if self.isolation.name != "bubblewrap":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=10)
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._process = None

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker(contextlib.AbstractContextManager["Worker"]):
    """A warm worker, and the processes that it has started."""

    def __init__(
        self,
        limits: Limits,
        warm: Warm | None = None,
        orders: socket.socket | None = None,
    ) -> None:
        self.limits, self._number, self._own = limits, 0, None
        # by tests, what their references give
        self.expected: dict[tuple[str, ...], str] = {}
        if warm is None or orders is None:
            warm = self._own = Warm(memory=limits.memory)
            try:
                (orders,) = warm.fork(1)
            except BaseException:
                warm.close()
                raise
        self.isolation, self.device, self._orders = warm.isolation, warm.device, orders
        self._orders.settimeout(SECONDS_TO_START)

    def start(self, role: str, pipes: Sequence[socket.socket]) -> int:
        """Start a process that holds these ends of pipes; return its number."""
        self._number += 1
        seen = [str(place) for place in bound()]
        hide = [
            place
            for place in ("/tmp", "/home", *self.isolation.hides)
            if not any(folder.startswith(f"{place}/") for folder in seen)
        ]
        order = {
            "do": "start",
            "role": role,
            "number": self._number,
            "limits": asdict(self.limits),
            "hide": [*hide, *map(str, PACKAGES)],
            "device": self.device.name if self.device else "",
        }
        answer = self._order(order, [pipe.fileno() for pipe in pipes])
        if not answer["ok"]:
            why = f"by {self.isolation.name}: {answer['why']}"
            raise NoIsolation(f"A submission cannot be shut in {why}.")
        return self._number

    def end(self, number: int) -> str:
        """Kill a process that :meth:`start` started, and its whole tree."""
        return str(self._order({"do": "end", "number": number}, []).get("over", ""))

    def _order(self, order: dict[str, Any], pipes: list[int]) -> dict[str, Any]:
        try:
            socket.send_fds(self._orders, [json.dumps(order).encode()], pipes)
            answer = self._orders.recv(2**16)
        except OSError as error:
            raise NoIsolation(f"The worker has ended: {error}") from error
        if not answer:
            raise NoIsolation("The worker has ended.")
        return json.loads(answer)

    def close(self) -> None:
        """Let go of the worker, and of a warm process of its own."""
        self._orders.close()
        if self._own is not None:
            self._own.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def isolation(name: str = "bubblewrap") -> str:
    """Shut in a process behind this wall, and say which it is."""
    with Warm(name) as warm, Worker(Limits(), warm, warm.fork(1)[0]) as worker:
        one, other = socket.socketpair()
        with one, other:
            worker.end(worker.start("student", [other]))
    return name


__all__ = ["Limits", "NoIsolation", "Warm", "Worker", "isolation"]
