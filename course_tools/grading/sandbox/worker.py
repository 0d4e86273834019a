"""Warm workers, with torch imported, fork each student's and referee's process.

They run behind a wall (:mod:`course_tools.grading.sandbox.isolation`) and never run a
line of a student's themselves. The first of them imports torch, and forks one for each
submission at a time. The grader sends each of these one order a message over a socket,
with the ends of the pipes that the new process is to hold.
"""

import contextlib
import ctypes
import gc
import json
import os
import random
import select
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_tools.grading.bridge.torch_here import HAS_TORCH
from course_tools.grading.run import referee, student_side
from course_tools.grading.run.shell import shell
from course_tools.grading.sandbox import confine
from course_tools.grading.sandbox.ways import (
    SECONDS,
    WAYS,
    ProcessorTime,
    Way,
    adopt,
    memory_of,
    resident,
)

ROLES = {"student": student_side.play, "referee": referee.play}
LARGEST_ORDER = 2**16
#: The size of a huge page, and the kernel's MADV_COLLAPSE (Linux 6.1).
HUGE, COLLAPSE = 2 * 2**20, 25
QUIET = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "MPLBACKEND": "agg"}
QUIET |= {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
QUIET |= {"USER": "student"}  # some ask at import, and no wall has a list of users


@dataclass
class Tree:
    """The processes of one student or referee."""

    first: int  # the process from which all descend
    order: dict[str, Any]  # what asked for it
    folder: Path  # its home and its temporary folder
    over: str = ""  # of what it took more than it may, in words; then it is ended
    time: ProcessorTime = field(default_factory=ProcessorTime)


def start(order: dict[str, Any], pipes: list[int], way: Way) -> Tree:
    """Fork the process that an order asks for."""
    folder = way.folder()
    reading, writing = os.pipe()
    outer = os.fork()
    if outer != 0:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told = pipe.read()  # the number of the inner process, or why there is none
        os.waitpid(outer, 0)
        number = told.replace("+", "", 1)  # the two processes write in either order
        if "+" not in told or not number.isdigit():
            why = told or "the process ended while it was shut in"
            raise confine.CannotConfine(why)
        return Tree(int(number), order, folder)
    os.close(reading)
    try:
        confine.default_signals()
        if order["role"] == "student":
            confine.give_way()
        way.before_the_tree(order)
        mapped = confine.virtual_bytes()
        inner = os.fork()
        if inner != 0:
            os.write(writing, str(inner).encode())
            os._exit(0)
        os.setsid()
        way.first_of_tree(order)
        _inside(order, pipes, mapped, way, folder, writing)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(writing, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)


def _inside(
    order: dict[str, Any],
    pipes: list[int],
    mapped: int,
    way: Way,
    folder: Path,
    writing: int,
) -> None:
    """Go on as the first process of the tree, and fork the one that works."""
    confine.only_these_files([*pipes, writing])
    child = os.fork()
    if child != 0:
        for pipe in [*pipes, writing]:
            os.close(pipe)
        confine.init(child, way.end_the_others)
    confine.limit(order["limits"], None if order["device"] else mapped)
    home, temporary = folder / "home", folder / "tmp"
    os.environ.clear()
    os.environ.update({"HOME": str(home), "TMPDIR": str(temporary), **QUIET})
    os.environ["CUDA_VISIBLE_DEVICES"] = order["device"]
    way.before_the_role(order)
    work = home / "work"
    work.mkdir()
    os.chdir(work)
    os.write(writing, b"+")
    os.close(writing)
    try:
        ROLES[order["role"]](*pipes)
    finally:
        os._exit(0)


def serve(orders: socket.socket, way: Way) -> None:
    """Carry out the grader's orders, and watch those who work meanwhile."""
    trees: dict[int, Tree] = {}
    adopt()  # ended trees are waited for here: a container has nobody else who would
    # Ctrl-C is for the grader, which ends this process with itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        while not select.select([orders], [], [], SECONDS if trees else None)[0]:
            for tree in trees.values():
                watch(tree, way)
        message, pipes, _, _ = socket.recv_fds(orders, LARGEST_ORDER, 8)
        if not message:
            for tree in trees.values():
                way.end(tree.first, tree.folder)
            return
        order = json.loads(message)
        answer: dict[str, Any] = {"ok": True}
        if order["do"] == "start":
            try:
                trees[order["number"]] = start(order, pipes, way)
            except (confine.CannotConfine, OSError) as error:
                answer = {"ok": False, "why": str(error)}
            finally:
                for pipe in pipes:
                    os.close(pipe)
        elif order["do"] == "end":
            ended = trees.pop(order["number"], None)
            if ended is not None:
                way.end(ended.first, ended.folder)
                answer["over"] = ended.over
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        orders.sendall(json.dumps(answer).encode())


def watch(tree: Tree, way: Way) -> None:
    """End a tree whose processes take more together than a submission may."""
    if tree.over:
        return
    limits, may = tree.order["limits"], "that a submission may take"
    memory, seconds = limits["memory"] + resident(os.getpid()), limits["cpu_seconds"]
    if memory_of(tree.first, memory) > memory:
        tree.over = f"more memory than the {limits['memory'] / 2**30:g} GiB {may}"
    elif tree.time.seconds(tree.first) > seconds:
        tree.over = f"more processor time than the {seconds} s {may}"
    if tree.over:
        way.end(tree.first, tree.folder)


def cheap_forks() -> None:
    """Ask for memory in pages of 2 MiB: a fork copies one entry for each page."""
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, *_, name = [*line.split()[:5], *(line.split()[5:] or [""])]
        begin, end = (int(address, 16) for address in place.split("-"))
        if rights == "rw-p" and name in ("", "[heap]"):
            begin, end = -(-begin // HUGE) * HUGE, end // HUGE * HUGE
            for page in range(begin, end, HUGE):
                # or it stays as it is
                libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(HUGE), COLLAPSE)


def connected(where: str) -> socket.socket:
    """The grader's socket: of an open one's number, or a path into a container."""
    if where.isdigit():
        return socket.socket(fileno=int(where))
    orders = socket.socket(socket.AF_UNIX)
    orders.connect(where)
    return orders


def main() -> None:
    """Import what takes long, say so, and fork a worker for each socket."""
    import numpy

    if HAS_TORCH:
        import torch._dynamo

        torch.set_num_threads(1)
        torch.ones(2, 3).matmul(torch.ones(3, 2))
        torch.manual_seed(0)
    shell()
    random.seed(0)  # every submission starts from here
    numpy.random.seed(0)  # noqa: NPY002 - students draw from it
    gc.collect()
    gc.freeze()  # no fork copies memory because it looks for garbage here
    grader = connected(sys.argv[1])
    grader.sendall(b"ready")
    wish, sockets, _, _ = socket.recv_fds(grader, 64, confine.MOST_WORKERS)
    if wish == b"many":
        cheap_forks()
    for number in sockets:
        if os.fork() == 0:
            grader.close()
            for other in sockets:
                if other != number:
                    os.close(other)
            serve(socket.socket(fileno=number), WAYS[sys.argv[2]]())
            os._exit(0)
    for number in sockets:
        os.close(number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    grader.recv(1)  # comes to an end with the grader
    with contextlib.suppress(ChildProcessError):
        while True:  # until each worker has ended what it started
            os.wait()


if __name__ == "__main__":
    main()
