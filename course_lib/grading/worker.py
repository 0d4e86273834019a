"""Warm workers: they have torch imported, and fork a process for each student and each referee.

They run inside bubblewrap (:mod:`course_lib.grading.sandbox`) and never run a line of a student's themselves. The first
of them imports torch, and forks one for each submission at a time. The grader sends each of these one order a message
over a socket, with the ends of the pipes that the new process is to hold.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from course_lib.grading import confine, referee, student_side
from course_lib.grading.shell import shell

ROLES = {"student": student_side.play, "referee": referee.play}
LARGEST_ORDER = 2**16
MOST_WORKERS = 200
#: The size of a huge page, and the kernel's MADV_COLLAPSE (Linux 6.1).
HUGE, COLLAPSE = 2 * 2**20, 25
QUIET = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}


def start(order: dict[str, Any], pipes: list[int], confined: bool) -> int:
    """Fork the process that an order asks for.

    Args:
        order: ``role``, ``number``, ``limits`` and what the role needs.
        pipes: file descriptors for it.
        confined: whether it is shut in; False only where the instructor asked for that by name.

    Returns:
        The process to kill when it is over: with it goes its whole tree.
    """
    reading, writing = os.pipe()
    outer = os.fork()
    if outer != 0:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told = pipe.read()  # the number of the inner process, or why there is none
        os.waitpid(outer, 0)
        number = told.replace("+", "", 1)  # the two processes write in either order
        if "+" not in told or not number.isdigit():
            raise confine.CannotConfine(told or "the process ended while it was shut in")
        return int(number)
    os.close(reading)
    try:
        confine.default_signals()
        if confined:
            confine.become_nobody()
            confine.leave_the_world()
        mapped = confine.virtual_bytes()
        inner = os.fork()
        if inner != 0:
            os.write(writing, str(inner).encode())
            os._exit(0)
        os.setsid()
        if confined:
            confine.own_folders(order["limits"]["disk"], order["hide"])
            confine.drop_privileges()
        os.write(writing, b"+")
        os.close(writing)
        _inside(order, pipes, mapped, confined)
    except BaseException as error:
        os.write(writing, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)
    return 0


def _inside(order: dict[str, Any], pipes: list[int], mapped: int, confined: bool) -> None:
    """Go on as the first process of the tree, and fork the one that works."""
    confine.only_these_files(pipes)
    child = os.fork()
    if child != 0:
        for pipe in pipes:
            os.close(pipe)
        confine.init(child)
    confine.limit(order["limits"], mapped)
    home, temporary = Path(confine.OWN, "home"), Path(confine.OWN, "tmp")
    if not confined:
        home = temporary = Path(tempfile.mkdtemp())
    folder = home / "work"
    folder.mkdir()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({"HOME": str(home), "TMPDIR": str(temporary), "PATH": "/usr/bin:/bin", **QUIET})
    try:
        ROLES[order["role"]](*pipes)
    finally:
        os._exit(0)


def serve(orders: socket.socket, confined: bool) -> None:
    """Carry out the grader's orders until it closes the socket."""
    trees: dict[int, int] = {}
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the grader, which ends this process with itself
    while True:
        message, pipes, _, _ = socket.recv_fds(orders, LARGEST_ORDER, 8)
        if not message:
            return
        order = json.loads(message)
        answer: dict[str, Any] = {"ok": True}
        if order["do"] == "start":
            try:
                trees[order["number"]] = start(order, pipes, confined)
            except (confine.CannotConfine, OSError) as error:
                answer = {"ok": False, "why": str(error)}
            finally:
                for pipe in pipes:
                    os.close(pipe)
        elif order["do"] == "end":
            tree = trees.pop(order["number"], None)
            if tree is not None:
                end(tree, confined)
        orders.sendall(json.dumps(answer).encode())


def end(tree: int, confined: bool) -> None:
    """Kill a process tree: the kernel ends all of a namespace with its first process."""
    try:
        os.kill(tree, signal.SIGKILL)
        if not confined:
            os.killpg(tree, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def cheap_forks() -> None:
    """Let the kernel keep this process's memory in pages of 2 MiB where it can: a fork copies one entry for each page.

    With torch imported, a fork and its end take 14 ms of processor time before and 4 ms after; a submission needs nine.
    """
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, *_, name = [*line.split()[:5], *(line.split()[5:] or [""])]
        begin, end = (int(address, 16) for address in place.split("-"))
        if rights == "rw-p" and name in ("", "[heap]"):
            begin, end = -(-begin // HUGE) * HUGE, end // HUGE * HUGE
            for page in range(begin, end, HUGE):
                libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(HUGE), COLLAPSE)  # or it stays as it is


def main() -> None:
    """Import what takes long, say that it is done, and fork as many workers as the grader sends sockets."""
    import numpy
    import torch
    import torch._dynamo

    torch.set_num_threads(1)
    torch.ones(2, 3).matmul(torch.ones(3, 2))
    shell()
    torch.manual_seed(0)  # every submission starts from here
    random.seed(0)
    numpy.random.seed(0)  # noqa: NPY002 - students draw from it
    gc.collect()
    gc.freeze()  # no fork copies memory because it looks for garbage here
    grader = socket.socket(fileno=int(sys.argv[1]))
    grader.sendall(b"ready")
    wish, sockets, _, _ = socket.recv_fds(grader, 64, MOST_WORKERS)
    if wish == b"many":
        cheap_forks()
    for number in sockets:
        if os.fork() == 0:
            grader.close()
            for other in sockets:
                if other != number:
                    os.close(other)
            serve(socket.socket(fileno=number), sys.argv[2] == "confined")
            os._exit(0)
    for number in sockets:
        os.close(number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    grader.recv(1)  # comes to an end with the grader


if __name__ == "__main__":
    main()
