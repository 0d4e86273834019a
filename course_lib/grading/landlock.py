"""Shut this process out of the file system, of TCP and of other processes by Landlock, which needs no privilege.

Landlock restricts what a process may *open*; it hides nothing and counts nothing. What else is needed is done beside
it: limits (:mod:`course_lib.grading.confine`), refused calls (:mod:`course_lib.grading.system_calls`), a watch
(:mod:`course_lib.grading.watch`). Documented in the kernel: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from course_lib.grading.confine import NO_NEW_PRIVILEGES, CannotConfine

CREATE, ADD_RULE, RESTRICT = 444, 445, 446  # one number on every processor
ASK_VERSION = 1
#: The first version that keeps a process from sending signals to those outside (Linux 6.12).
NEEDED = 6
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, USE_DEVICE = 1, 2, 4, 8, 1 << 14, 1 << 15
EVERYTHING = (1 << 16) - 1  # of files, as of version 5
READ = EXECUTE | READ_FILE | READ_DIR
OWN = EVERYTHING & ~USE_DEVICE
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | USE_DEVICE
TCP = 1 | 2  # bind, connect
OUTSIDE = 1 | 2  # abstract sockets, signals


def landlock_version() -> int:
    """The kernel's version of Landlock; 0 where there is none."""
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(CREATE, None, ctypes.c_size_t(0), ASK_VERSION))


def rules(read: Iterable[Path], own: Iterable[Path], use: Iterable[Path] = ()) -> list[tuple[Path, int]]:
    """Say what may be done beneath each place that exists; what no rule names may not be opened at all."""
    devices = [Path(os.devnull), *use]
    wanted = [*((p, READ) for p in read), *((p, OWN) for p in own), *((p, OF_FILES) for p in devices)]
    found = []
    for place, rights in wanted:
        if place.exists():
            found.append((place, rights if place.is_dir() else rights & OF_FILES))
    return found


def restrict(read: Iterable[Path], own: Iterable[Path], use: Iterable[Path] = ()) -> None:
    """Let this process, and all that it starts, read beneath some places, write beneath others, and nothing else.

    Args:
        read: folders and files to read and execute.
        own: folders in which files may be made, changed and removed.
        use: devices that may be read, written and asked.

    Raises:
        CannotConfine: the kernel has no Landlock, or too old a one.
    """
    if landlock_version() < NEEDED:
        raise CannotConfine(f"Landlock of version {landlock_version()}, where {NEEDED} is needed")
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("<QQQ", EVERYTHING, TCP, OUTSIDE)
    ruleset = libc.syscall(CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    _check(ruleset, "a set of rules")
    for place, rights in rules(read, own, use):
        folder = os.open(place, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(folder).st_mode):
                rights &= OF_FILES
            _check(libc.syscall(ADD_RULE, ruleset, 1, struct.pack("<Qi", rights, folder), 0), f"a rule for {place}")
        finally:
            os.close(folder)
    _check(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    _check(libc.syscall(RESTRICT, ruleset, 0), "the rules")
    os.close(ruleset)


def _check(result: int, what: str) -> None:
    if result < 0:
        raise CannotConfine(f"Landlock, {what}: {os.strerror(ctypes.get_errno())}")
