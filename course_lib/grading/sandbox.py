"""The grader's side of the wall: bubblewrap around a warm worker, and the pipes that lead in.

Inside there is Python, what pip installed, and ``course_lib``, all read-only; no network, no environment, no gradebook,
no submissions, no hidden tests, no other file of this machine. See :mod:`course_lib.grading.confine` for what shuts in
each submission on its own.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib.findings import Finding
from course_lib.grading import confine

OWN = confine.OWN
LIBRARY = Path(__file__).resolve().parents[1]
SECONDS_TO_START = 120
MOST_WORKERS = 200
INSTALL = "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap)."
#: What the machine's own programs and libraries need; each is bound only where it is there.
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/alternatives",
)


class NoIsolation(Exception):
    """This machine cannot shut submissions in; the text says why and what to do."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Attributes:
        memory: bytes that each of its processes may take beside what a worker has.
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


def bound() -> list[Path]:
    """Folders of Python and of the course that are seen inside."""
    return [Path(sys.base_prefix), Path(sys.prefix), Path(sys.executable).resolve().parents[1], LIBRARY]


def _binds() -> list[str]:
    """Read-only views of the system's libraries, this Python and course_lib."""
    places = [Path(place) for place in SYSTEM if Path(place).exists()]
    arguments: list[str] = []
    for place in places:
        kind = ["--symlink", os.readlink(place)] if place.is_symlink() else ["--ro-bind", str(place)]
        arguments += [*kind, str(place)]
    seen: list[Path] = [place for place in places if not place.is_symlink()]
    made: set[Path] = set()
    for place in bound():
        if any(place == other or other in place.parents for other in seen):
            continue
        for parent in reversed(place.parents[:-1]):
            if parent not in made and not any(parent == other or other in parent.parents for other in seen):
                arguments += ["--perms", "0755", "--dir", str(parent)]
                made.add(parent)
        arguments += ["--ro-bind", str(place), str(place)]
        seen.append(place)
    return arguments


def command(bwrap: str) -> list[str]:
    """The command line that runs a program behind the wall.

    As root no user namespace is made here: the worker keeps the right to become nobody, and its children use it.
    """
    root = os.getuid() == 0
    apart = ["ipc", "pid", "net", "uts"] if root else ["user", "ipc", "pid", "net", "uts"]
    rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if root else []
    own = [item for name in ("/home", "/tmp", OWN) for item in ("--perms", "0755", "--tmpfs", name)]
    closed = [item for name in ("/home", "/tmp", "/") for item in ("--remount-ro", name)]
    settings = {
        "PATH": "/usr/bin:/bin",
        "HOME": OWN,
        "TMPDIR": OWN,
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(LIBRARY.parent),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "agg",
        "CUDA_VISIBLE_DEVICES": "",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }
    return [
        bwrap,
        *(f"--unshare-{space}" for space in apart),
        "--unshare-cgroup-try",
        *rights,
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        *("--proc", "/proc", "--dev", "/dev"),
        *own,
        *_binds(),
        *closed,
        *("--chdir", "/"),
        *(item for name, value in settings.items() for item in ("--setenv", name, value)),
    ]


class Warm:
    """The process that imports torch behind the wall, once for all workers.

    It is started and not waited for: while it imports, the grader imports and reads what was handed in.
    """

    def __init__(self, unsafe: bool = False) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        bwrap = shutil.which("bwrap")
        if bwrap is None and not unsafe:
            return
        self._orders, theirs = socket.socketpair()
        module = "course_lib.grading.worker"
        program = [sys.executable, "-s", "-m", module, str(theirs.fileno()), "unsafe" if unsafe else "confined"]
        whole = program if unsafe else [*command(str(bwrap)), *program]
        environment = {**os.environ, "PYTHONPATH": str(LIBRARY.parent)} if unsafe else None
        self._process = subprocess.Popen(
            whole, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        theirs.close()

    def fork(self, workers: int, many: bool = False) -> list[socket.socket]:
        """Wait until torch is there, and fork workers.

        Args:
            workers: how many.
            many: whether so many submissions come that it pays to make forks cheap first, for half a second.

        Returns:
            The socket of each, for :class:`Worker`.

        Raises:
            NoIsolation: the process does not start.
        """
        if self._process is None:
            raise NoIsolation(f"Submissions cannot be shut in: there is no program bwrap. {INSTALL}")
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
        pairs = [socket.socketpair() for _ in range(min(workers, MOST_WORKERS))]
        socket.send_fds(self._orders, [b"many" if many else b"few"], [theirs.fileno() for _, theirs in pairs])
        for _, theirs in pairs:
            theirs.close()
        return [ours for ours, _ in pairs]

    def close(self) -> None:
        """End the process and all that it started."""
        if self._process is None:
            return
        self._orders.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._process = None

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker:
    """A warm worker, and the processes that it has started.

    Args:
        limits: what each of them may use.
        unsafe: run without a sandbox.
        orders: a socket that :meth:`Warm.fork` gave; without one the worker has a warm process of its own.
    """

    def __init__(self, limits: Limits, unsafe: bool = False, orders: socket.socket | None = None) -> None:
        self.limits, self._number, self._warm = limits, 0, None
        if orders is None:
            self._warm = Warm(unsafe)
            try:
                (orders,) = self._warm.fork(1)
            except BaseException:
                self._warm.close()
                raise
        self._orders = orders
        self._orders.settimeout(SECONDS_TO_START)

    def start(self, role: str, pipes: Sequence[socket.socket]) -> int:
        """Start a process of this role that holds these ends of pipes, and return its number.

        Raises:
            NoIsolation: the kernel refuses a namespace of its own to a submission.
        """
        self._number += 1
        limits = asdict(self.limits)
        hide = [place for place in ("/tmp", "/home") if not any(str(b).startswith(place + "/") for b in bound())]
        order = {"do": "start", "role": role, "number": self._number, "limits": limits, "hide": [*hide, str(LIBRARY)]}
        answer = self._order(order, [pipe.fileno() for pipe in pipes])
        if not answer["ok"]:
            raise NoIsolation(
                f"The kernel does not let a submission have namespaces of its own ({answer['why']}). On Ubuntu 24.04: "
                "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
            )
        return self._number

    def end(self, number: int) -> None:
        """Kill a process that :meth:`start` started, and its whole tree."""
        self._order({"do": "end", "number": number}, [])

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
        """Let go of the worker; one that has a warm process of its own ends with all that it started."""
        self._orders.close()
        if self._warm is not None:
            self._warm.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def isolation() -> str:
    """Say how submissions are shut in on this machine.

    Raises:
        NoIsolation: they cannot be; the text says why and what to do.
    """
    with Worker(Limits()) as worker:
        one, other = socket.socketpair()
        with one, other:
            worker.end(worker.start("student", [other]))
    version = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{version}, a namespace for each submission"


def check_sandbox() -> Finding:
    """Say, for `course doctor`, how submissions are shut in here; who grades nobody needs nothing."""
    try:
        return Finding("sandbox", True, isolation())
    except NoIsolation as error:
        return Finding("sandbox", True, f"none, which those who run `course grade` need. {error}")
