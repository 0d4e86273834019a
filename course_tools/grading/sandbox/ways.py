"""How a worker shuts processes in, watches over them, and ends them.

``namespaces`` is for inside bubblewrap or a container; ``unsafe`` shuts nobody in. A
process's tree begins with a process that runs no line of a student's and adopts whoever
loses a parent, so that the tree can be found and ended.

The kernel's own limits are for each process. The worker, which knows the first process
of each tree, adds up the rest some times a second: memory that several processes share
counts once (proportional set size), as long as they let themselves be asked, and a
socket or pipe as what the kernel may hold in it, since that is in no process.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_tools.grading.sandbox import confine
from course_tools.grading.sandbox.system_calls import BY_ARGUMENT, refuse_system_calls

ADOPT = 36  # prctl: be the parent of those who lose theirs
#: What CUDA's driver reads of /proc.
DRIVER = ("/proc/driver/nvidia", "/proc/devices")

Order = dict[str, Any]


class Way:
    """Only limits, where the instructor asked for no more by name."""

    def folder(self) -> Path:
        """Say where the process will have its home; make it unless it does."""
        folder = Path(tempfile.mkdtemp(prefix="course-grade-"))
        for name in ("home", "tmp"):
            (folder / name).mkdir(mode=0o700)
        return folder

    def before_the_tree(self, order: Order) -> None:
        """Get ready to fork the first process of a tree."""
        # The kernel counts all processes and threads of this user, those outside too.
        order["limits"]["processes"] += _threads_of_this_user()

    def first_of_tree(self, order: Order) -> None:
        """Shut in the process from which all others of the tree descend."""
        adopt()

    def before_the_role(self, order: Order) -> None:
        """Take the last rights away from what goes on to run students' code."""

    def end_the_others(self) -> None:
        """Kill, in the first process of a tree, all others."""
        # Ended without its first process a tree falls apart: nobody knows any more who
        # belonged to it.
        if sys.platform == "linux":
            with contextlib.suppress(ChildProcessError):
                while True:
                    _kill_below(os.getpid())
                    os.wait()

    def end(self, tree: int, folder: Path) -> None:
        """Kill the tree and remove what it wrote."""
        _kill_all(tree)
        shutil.rmtree(folder, ignore_errors=True)


class Namespaces(Way):
    """A namespace of its own for everything; the kernel ends it as a whole."""

    def folder(self) -> Path:
        return Path(confine.OWN)

    def before_the_tree(self, order: Order) -> None:
        confine.become_nobody()
        confine.leave_the_world()

    def first_of_tree(self, order: Order) -> None:
        driver = DRIVER if order["device"] else ()
        confine.own_folders(order["limits"]["disk"], order["hide"], driver)
        confine.drop_privileges()

    def before_the_role(self, order: Order) -> None:
        # CUDA shares pages of no file between its processes and the device.
        needed = "mmap" if order["device"] else ""
        rules = tuple(rule for rule in BY_ARGUMENT if rule[0] != needed)
        refuse_system_calls(rules=rules)

    def end_the_others(self) -> None:
        pass  # the kernel does

    def end(self, tree: int, folder: Path) -> None:
        _kill(tree)


WAYS: dict[str, Callable[[], Way]] = {"namespaces": Namespaces, "unsafe": Way}


def adopt(orphans: bool = True) -> None:
    """Be, or no longer be, the parent of descendants who lose theirs."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(ADOPT, int(orphans), 0, 0, 0)


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _kill_all(tree: int) -> None:
    """Kill everybody, the first last: with it the others would be lost."""
    if sys.platform != "linux":  # no list of processes: those of the group, then
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(tree, signal.SIGKILL)
        return
    _kill_below(tree)
    _kill(tree)


def _kill_below(tree: int) -> None:
    """Stop, then kill all descendants, so that nobody starts another one."""
    stopped: set[int] = set()
    while found := set(tree_of(tree)) - stopped - {tree}:
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGSTOP)
        stopped |= found
    for process in stopped:
        _kill(process)


def _threads_of_this_user() -> int:
    threads = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                threads += len(os.listdir(process / "task"))
    return threads


#: Seconds between two looks; what is taken and given back between them is not seen.
SECONDS = 0.1
PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
#: Bytes that the kernel holds at most, where nobody asked it for more:
#: net.core.wmem_default, and 16 pages.
BUFFERS = {"socket": 212_992, "pipe": 16 * PAGE}


def tree_of(first: int) -> Iterator[int]:
    """Yield a process and its descendants; those that end meanwhile are left out."""
    waiting, seen = [first], set()
    while waiting:
        process = waiting.pop()
        if process in seen:
            continue
        seen.add(process)
        yield process
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue


def resident(process: int) -> int:
    """Bytes of a process in memory, shared ones too; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def share(process: int) -> int:
    """Bytes of a process in memory, shared ones by share; all, if it hides."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resident(process)


def buffers(processes: Iterable[int]) -> int:
    """Bytes of full sockets and pipes, each counted once."""
    found: set[str] = set()
    for process in processes:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{process}/fd") as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    found.add(os.readlink(file.path))
    return sum(BUFFERS.get(name.partition(":")[0], 0) for name in found)


def memory_of(first: int, enough: int) -> int:
    """Bytes that a tree takes, exact only above ``enough``: sharing costs time."""
    processes = list(tree_of(first))
    held = buffers(processes)
    most = held + sum(map(resident, processes))
    return most if most <= enough else held + sum(map(share, processes))


@dataclass
class ProcessorTime:
    """Adds up, look by look, the processor time of a tree of processes."""

    ended: int = 0
    seen: dict[tuple[int, str], int] = field(default_factory=dict)

    def seconds(self, first: int) -> float:
        """Look, and say what the tree has taken so far."""
        now, waited_for = dict[tuple[int, str], int](), 0
        for process in tree_of(first):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                stat = Path(f"/proc/{process}/stat").read_text()
                words = stat.rpartition(")")[2].split()
                # the same number may be given twice
                now[process, words[19]] = int(words[11]) + int(words[12])
                waited_for += int(words[13]) + int(words[14])
        self.ended += sum(self.seen[process] for process in self.seen.keys() - now)
        self.seen = now
        return (sum(now.values()) + max(self.ended, waited_for)) / TICKS
