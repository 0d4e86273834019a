"""Shut this process into namespaces and limits, before a student's code runs.

Called inside bubblewrap, which has already taken away the network, the file system and
the environment. Each submission gets, nested in that: its own process tree (which the
kernel ends as a whole), its own empty home, temporary folder and shared memory with a
size cap, no view of other processes, no course_lib on disk, no privilege, and limits on
memory, processor time, processes and file size.
"""

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NEW_USER = 0x10000000
NEW_MOUNTS = 0x20000
NEW_PIDS = 0x20000000
NEW_IPC = 0x08000000
NEW_NET = 0x40000000
NO_NEW_PRIVILEGES, NOT_DUMPABLE, DROP_BOUND = 38, 4, 24
NOSUID_NODEV = 0x2 | 0x4
PRIVATE_RECURSIVE = 0x40000 | 0x4000
BIND, MOVE = 0x1000, 0x2000
NOBODY = 65534
#: Where a submission has its own home and temporary folder.
OWN = "/own"
#: Sockets that one message can hand over, with room to spare.
MOST_WORKERS = 200

_LIBC = ctypes.CDLL(None, use_errno=True)


class CannotConfine(Exception):
    """The kernel refuses a namespace; the text says which step."""


def _check(result: int, what: str) -> None:
    if result != 0:
        raise CannotConfine(f"{what}: {os.strerror(ctypes.get_errno())}")


def become_nobody() -> None:
    """Give up root: the kernel limits the processes of others alone."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        # else /proc/self/uid_map stays root's
        _check(_LIBC.prctl(NOT_DUMPABLE, 1, 0, 0, 0), "prctl")


def give_way() -> None:
    """Let others have the processor, and be the first to go without memory."""
    os.nice(10)
    if sys.platform == "linux":
        Path("/proc/self/oom_score_adj").write_text("1000")


def leave_the_world() -> None:
    """Enter new namespaces; the next fork is the first process of its own tree."""
    user, group = os.getuid(), os.getgid()
    new = NEW_USER | NEW_MOUNTS | NEW_PIDS | NEW_IPC | NEW_NET
    _check(_LIBC.unshare(new), "new namespaces")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def own_folders(size: str, hide: list[str], keep: tuple[str, ...] = ()) -> None:
    """Cover what processes share by empty folders in memory."""
    _mount("none", "/", PRIVATE_RECURSIVE, "private mounts")
    for shared in (OWN, "/dev/shm"):
        _cover(shared, f"size={size},nr_inodes=20000,mode=0755")
    there = [place for place in map(Path, keep) if place.exists()]
    kept = {place: Path(OWN, f"kept-{n}") for n, place in enumerate(there)}
    for place, beside in kept.items():
        _empty(beside, place.is_dir())
        _mount(place, beside, BIND, f"a second view of {place}")
    _cover("/proc", f"size=4k,nr_inodes={4 + 4 * len(kept)},mode=0555")
    for place, beside in kept.items():
        folder = beside.is_dir()
        _empty(place, folder)
        _mount(beside, place, MOVE, f"{place} where it was")
        beside.rmdir() if folder else beside.unlink()
    for covered in hide:
        _cover(covered, "size=4k,nr_inodes=4,mode=0555")
    # Shared pages of /dev/zero are memory of no process, as those of no file are.
    _mount(os.devnull, "/dev/zero", BIND, "no pages of /dev/zero")
    for own in ("home", "tmp"):
        Path(OWN, own).mkdir()


def _empty(place: Path, folder: bool) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.mkdir() if folder else place.touch()


def _mount(what: str | Path, where: str | Path, flags: int, words: str) -> None:
    source, target = os.fsencode(what), os.fsencode(where)
    _check(_LIBC.mount(source, target, None, flags, None), words)


def _cover(place: str, options: str) -> None:
    about = (b"tmpfs", NOSUID_NODEV, options.encode())
    result = _LIBC.mount(b"tmpfs", place.encode(), *about)
    _check(result, f"an empty folder at {place}")


def drop_privileges() -> None:
    """Give up a user namespace's capabilities, for all that this starts."""
    for capability in range(64):
        if _LIBC.prctl(DROP_BOUND, capability, 0, 0, 0) != 0:
            break
    header = struct.pack("<Ii", 0x20080522, 0)
    _check(_LIBC.capset(header, struct.pack("<6I", *[0] * 6)), "capset")
    _check(_LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")


def virtual_bytes() -> int:
    """Address space that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def limit(limits: dict[str, Any], mapped: int | None) -> None:
    """Set the kernel's limits for this process and each that it starts."""
    for what, most in (
        *([] if mapped is None else [(resource.RLIMIT_AS, mapped + limits["memory"])]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def only_these_files(keep: list[int]) -> None:
    """Close every file but these; standard input and output lead nowhere."""
    silence()
    last = 2
    for number in sorted(keep):
        os.closerange(last + 1, number)
        last = number
    os.closerange(last + 1, 4096)


def silence() -> None:
    """Let standard input, output and error lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)


def default_signals() -> None:
    """Undo what the worker set."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def init(child: int, end_the_others: Callable[[], None] = lambda: None) -> None:
    """Be the first of a tree: wait for all, end with the child that matters."""
    while True:
        try:
            ended, _ = os.wait()
        except ChildProcessError:
            os._exit(0)
        if ended == child:
            end_the_others()
            os._exit(0)
