"""How a worker shuts in the processes that it starts: what is done before a student's code runs, and after.

``namespaces`` is the strongest, and inside bubblewrap. ``users`` is for inside a container, where namespaces cannot be
nested: each process belongs to a user of its own. ``landlock`` needs no privilege at all. ``unsafe`` shuts nobody in.
A process's tree begins with a process that runs no line of a student's and adopts whoever loses a parent, so that the
tree can be found and ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from course_lib.grading import confine
from course_lib.grading.landlock import restrict
from course_lib.grading.system_calls import refuse_system_calls
from course_lib.grading.watch import tree_of

ADOPT = 36  # prctl: be the parent of those who lose theirs
#: What CUDA's driver reads of /proc.
DRIVER = ("/proc/driver/nvidia", "/proc/devices")
FIRST_USER, USERS_OF_A_LANE = 10_000, 200

Order = dict[str, Any]


@runtime_checkable
class Way(Protocol):
    """How one process of a worker is shut in."""

    def folder(self, order: Order) -> Path:
        """Say, in the worker, where the process will have its home; make it unless the process does."""
        ...

    def before_the_tree(self, order: Order) -> None:
        """Get ready to fork the first process of a tree."""
        ...

    def first_of_tree(self, order: Order) -> None:
        """Shut in the process from which all others of the tree descend."""
        ...

    def before_the_role(self, order: Order, folder: Path) -> None:
        """Take the last rights away, in the process that goes on to run a student's code."""
        ...

    def end_the_others(self) -> None:
        """Kill, in the first process of a tree, all others: the one that matters has ended."""
        ...

    def end(self, tree: int, order: Order, folder: Path) -> None:
        """Kill the tree and remove what it wrote."""
        ...


class Namespaces:
    """A namespace of its own for everything, whose processes the kernel ends with the first."""

    def folder(self, order: Order) -> Path:
        return Path(confine.OWN)

    def before_the_tree(self, order: Order) -> None:
        confine.become_nobody()
        confine.leave_the_world()

    def first_of_tree(self, order: Order) -> None:
        confine.own_folders(order["limits"]["disk"], order["hide"], DRIVER if order["device"] else ())
        confine.drop_privileges()

    def before_the_role(self, order: Order, folder: Path) -> None:
        refuse_system_calls(alone=False)

    def end_the_others(self) -> None:
        pass  # the kernel does

    def end(self, tree: int, order: Order, folder: Path) -> None:
        _kill(tree)


class Users:
    """A user of its own, who can neither signal nor read other processes; for root inside a container."""

    def folder(self, order: Order) -> Path:
        folder = Path(confine.OWN, str(self._user(order)))
        _empty_home(folder)
        for place in (folder / "home", folder / "tmp", folder):
            os.chown(place, self._user(order), self._user(order))
        return folder

    def before_the_tree(self, order: Order) -> None:
        adopt()

    def first_of_tree(self, order: Order) -> None:
        pass

    def before_the_role(self, order: Order, folder: Path) -> None:
        self._become(order)
        confine.drop_privileges()
        refuse_system_calls(alone=True)

    def end_the_others(self) -> None:
        pass  # whoever is left is found by the user

    def end(self, tree: int, order: Order, folder: Path) -> None:
        _kill(tree)
        cleaner = os.fork()
        if cleaner == 0:  # whoever has this user's rights can kill and remove all that is this user's
            with contextlib.suppress(BaseException):
                self._become(order)
                for _ in range(20):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(-1, signal.SIGKILL)
                for place in folder.iterdir():
                    shutil.rmtree(place, ignore_errors=True)
            os._exit(0)
        os.waitpid(cleaner, 0)
        with contextlib.suppress(OSError):
            folder.rmdir()

    @staticmethod
    def _user(order: Order) -> int:
        return FIRST_USER + order["lane"] * USERS_OF_A_LANE + order["number"] % USERS_OF_A_LANE

    def _become(self, order: Order) -> None:
        user = self._user(order)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


class Unsafe:
    """Nothing but limits: only where the instructor asked for that by name."""

    def folder(self, order: Order) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="course-grade-"))
        _empty_home(folder)
        return folder

    def before_the_tree(self, order: Order) -> None:
        # The kernel counts all processes and threads of this user, those outside too.
        order["limits"]["processes"] += _threads_of_this_user()

    def first_of_tree(self, order: Order) -> None:
        adopt()

    def before_the_role(self, order: Order, folder: Path) -> None:
        pass

    def end_the_others(self) -> None:
        # Ended without its first process a tree falls apart: nobody knows any more who belonged to it.
        if sys.platform == "linux":
            with contextlib.suppress(ChildProcessError):
                while True:
                    _kill_below(os.getpid())
                    os.wait()

    def end(self, tree: int, order: Order, folder: Path) -> None:
        _kill_all(tree)
        shutil.rmtree(folder, ignore_errors=True)


class Landlocked(Unsafe):
    """Landlock, limits and refused calls, for an ordinary user on a kernel that lets nobody have namespaces."""

    def before_the_role(self, order: Order, folder: Path) -> None:
        seen = [*order["read"], *(DRIVER if order["device"] else ())]
        restrict(map(Path, seen), [folder], map(Path, order["nodes"]))
        refuse_system_calls(alone=True)


WAYS: dict[str, Callable[[], Way]] = {
    "namespaces": Namespaces,
    "users": Users,
    "landlock": Landlocked,
    "unsafe": Unsafe,
}


def _empty_home(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in ("home", "tmp"):
        (folder / name).mkdir(mode=0o700)


def adopt(orphans: bool = True) -> None:
    """Be, or no longer be, the parent of descendants of this process who lose theirs."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(ADOPT, int(orphans), 0, 0, 0)


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _kill_all(tree: int) -> None:
    """Kill everybody; the first of the tree, with whom the others would be lost, goes last."""
    if sys.platform != "linux":  # no list of processes: those of the group, then
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(tree, signal.SIGKILL)
        return
    _kill_below(tree)
    _kill(tree)


def _kill_below(tree: int) -> None:
    """Kill who descends from a process: stop everybody first, so that nobody starts another one meanwhile."""
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
