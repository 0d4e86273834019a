"""A limited child process for each look that the grader takes at a submission.

Whatever reads, compares, judges or lays out a submission runs here: a notebook can be
made so that a parser, a regular expression or a page takes hours or all memory. What
one submission costs, or breaks, is then its own problem, in words, and the class goes
on. The children are forked from a server that has imported everything and knows the
assignment; the answers are JSON.
"""

import contextlib
import gc
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from course_tools.grading.shown import shown


class CannotRead(Exception):
    """A submission cannot be read within bounds; the text says why."""


@dataclass(frozen=True)
class Bounds:
    """What one look at one submission may take."""

    memory: int = 2**30  # bytes of address space beside what the server has
    cpu_seconds: int = 10  # of processor time; released notebooks take a few hundredths
    seconds: float = 600.0  # by the clock, for a child that waits for something
    answer: int = 64 * 2**20  # bytes of the answer


BOUNDS = Bounds()


class Reader(contextlib.AbstractContextManager["Reader"]):
    """The server of children; where there is no `os.fork`, this process."""

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]], bounds: Bounds = BOUNDS
    ) -> None:
        self._functions, self._bounds, self._lock = functions, bounds, threading.Lock()
        self._server = 0
        if not hasattr(os, "fork"):
            return
        self._requests, theirs = Pipe()
        self._server = os.fork()
        if self._server == 0:
            try:
                self._requests.close()
                _serve(theirs, functions, bounds)
            finally:
                os._exit(0)
        theirs.close()

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a function in a child of its own."""
        request = json.dumps([name, arguments]).encode()
        if self._server:
            with self._lock:
                self._requests.send_bytes(request)
                answer = self._requests.recv_bytes()
        else:
            answer = _answer(request, self._functions)
        done, value = json.loads(answer)
        if not done:
            raise CannotRead(value)
        return value

    def close(self) -> None:
        """End the server; a child that is still at work ends at its limits."""
        if self._server:
            self._requests.close()
            os.kill(self._server, signal.SIGTERM)
            os.waitpid(self._server, 0)
            self._server = 0

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(
    requests: Connection, functions: Mapping[str, Callable[..., Any]], bounds: Bounds
) -> None:
    # Ctrl-C is for the grader, which ends this process with itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()
    while True:
        try:
            request = requests.recv_bytes()
        except EOFError:
            return
        requests.send_bytes(_in_child(request, functions, bounds))


def _in_child(
    request: bytes, functions: Mapping[str, Callable[..., Any]], bounds: Bounds
) -> bytes:
    ours, theirs = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            _limit(bounds)
            theirs.send_bytes(_answer(request, functions))
        finally:
            os._exit(0)
    theirs.close()
    why = ""
    try:
        if ours.poll(bounds.seconds):
            return ours.recv_bytes(bounds.answer)
        why = f"it was not done after {bounds.seconds:g} s"
    except EOFError:
        pass  # what ended the child is told by its status
    except OSError:
        why = f"it gives more than {bounds.answer // 2**20} MiB"
    finally:
        ours.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if not why and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        why = f"it takes more than {bounds.cpu_seconds} s of processor time"
    return _failed(why or "it ends the process that reads it")


def _limit(bounds: Bounds) -> None:
    """Bound a child, and lead its output nowhere: libraries quote strangers."""
    import resource  # not on Windows, where there is no child either

    from course_tools.grading.sandbox import confine

    confine.silence()
    limits = {resource.RLIMIT_CPU: bounds.cpu_seconds, resource.RLIMIT_CORE: 0}
    if sys.platform == "linux":  # macOS does not keep this limit
        limits[resource.RLIMIT_AS] = confine.virtual_bytes() + bounds.memory
    for what, most in limits.items():
        _, hard = resource.getrlimit(what)
        resource.setrlimit(
            what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


def _answer(request: bytes, functions: Mapping[str, Callable[..., Any]]) -> bytes:
    name, arguments = json.loads(request)
    try:
        return json.dumps([True, functions[name](*arguments)]).encode()
    except CannotRead as error:
        return json.dumps([False, str(error)]).encode()
    except MemoryError:
        return _failed("it takes more memory than there is for reading one")
    except RecursionError:
        return _failed("it is nested more deeply than Python can read")
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        what = f"{type(error).__name__} in {where}"
        return _failed(f"{what}: {shown(error, 200)}")


def _failed(why: str) -> bytes:
    words = (
        f"The grader cannot read this notebook: {shown(why)}. Start again from the"
        " released one and copy your answers."
    )
    return json.dumps([False, words]).encode()
