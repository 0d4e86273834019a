"""The grader's side of the wall: bubblewrap around a warm worker, and the pipes that lead in.

Inside there is Python, what pip installed, and ``course_lib``, all read-only; no network, no environment, no gradebook,
no submissions, no hidden tests, no other file of this machine. See :mod:`course_lib.grading.confine` for what shuts in
each submission on its own.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib.grading.isolation import DOOR, LIBRARY, SYSTEM, Container, NoIsolation, bound, rung

SECONDS_TO_START = 120


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Attributes:
        memory: bytes that all its processes together may take beside what a worker has.
        cpu_seconds: processor time of each process.
        processes: at a time.
        file_bytes: of one file.
        disk: of home, of the temporary folder and of shared memory, each, as tmpfs writes sizes.
        cell_seconds: by the clock, for one cell or one call from a test.
        total_seconds: by the clock, for all of it.
    """

    memory: int = 3 * 2**30
    cpu_seconds: int = 300
    processes: int = 48
    file_bytes: int = 64 * 2**20
    disk: str = "64m"
    cell_seconds: float = 60.0
    total_seconds: float = 600.0


class Worker:
    """A warm worker, and the processes that it has started."""

    def __init__(self, limits: Limits, unsafe: bool = False, isolation: str = "bubblewrap") -> None:
        self.limits = limits
        self.isolation = rung("unsafe" if unsafe else isolation)
        with tempfile.TemporaryDirectory() as door:
            self._orders, self._process = self._begin(Path(door))
        self._number = 0
        self._orders.settimeout(SECONDS_TO_START)
        try:
            ready = self._orders.recv(64)
        except TimeoutError:
            ready = b""
        if ready != b"ready":
            self._process.kill()
            assert self._process.stderr is not None
            said = self._process.stderr.read().decode(errors="replace").strip().splitlines()
            raise NoIsolation(f"The worker does not start: {said[-1] if said else 'it says nothing'}.")

    def _begin(self, door: Path) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        """Start the worker's process, and return the grader's end of the socket to it."""
        rung = self.isolation
        program = [sys.executable, "-s", "-m", "course_lib.grading.worker"]
        nowhere = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        if isinstance(rung, Container):
            rung.make_image()
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(door / Path(DOOR).name))
                listener.listen(1)
                listener.settimeout(SECONDS_TO_START)
                line = rung.command([*program, DOOR, rung.way], self.limits.memory, str(door))
                process = subprocess.Popen(line, **nowhere)  # type: ignore[call-overload]
                try:
                    return listener.accept()[0], process
                except TimeoutError as error:
                    process.kill()
                    raise NoIsolation(f"The container does not start in {SECONDS_TO_START} s.") from error
        ours, theirs = socket.socketpair()
        with theirs:
            line = rung.command([*program, str(theirs.fileno()), rung.way], self.limits.memory, str(door))
            more = {"pass_fds": [theirs.fileno()], "env": rung.environment(), **nowhere}
            return ours, subprocess.Popen(line, **more)  # type: ignore[call-overload]

    def start(self, role: str, pipes: Sequence[socket.socket]) -> int:
        """Start a process of this role that holds these ends of pipes, and return its number.

        Raises:
            NoIsolation: the kernel refuses a namespace of its own to a submission.
        """
        self._number += 1
        limits = asdict(self.limits)
        hide = [place for place in ("/tmp", "/home") if not any(str(b).startswith(place + "/") for b in bound())]
        order = {
            "do": "start", "role": role, "number": self._number, "limits": limits, "hide": [*hide, str(LIBRARY)],
            "read": [place for place in [*SYSTEM, *map(str, bound())] if place != str(LIBRARY)],
            "count_disk": self.isolation.count_disk,
        }  # fmt: skip
        answer = self._order(order, [pipe.fileno() for pipe in pipes])
        if not answer["ok"]:
            raise NoIsolation(f"A submission cannot be shut in by {self.isolation.name}: {answer['why']}.")
        return self._number

    def end(self, number: int) -> str:
        """Kill a process that :meth:`start` started, and its whole tree.

        Returns:
            What it took more of than it may, for which it was ended before; "" if nothing.
        """
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
        """End the worker and all that it started."""
        self._orders.close()
        if self.isolation.way != "namespaces":  # the worker itself ends its trees, where no kernel does
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=10)
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def isolation(name: str = "bubblewrap") -> str:
    """Shut in a process by this rung, and say which it is.

    Raises:
        NoIsolation: it cannot be; the text says why and what to do.
    """
    with Worker(Limits(), isolation=name) as worker:
        one, other = socket.socketpair()
        with one, other:
            worker.end(worker.start("student", [other]))
    return name


__all__ = ["Limits", "NoIsolation", "Worker", "isolation"]
