"""What runs in the student's process: cells, and functions that are asked for.

Nothing that this process says about itself decides a mark. A student's code can change
everything here, and gains the power to send wrong data.
"""

import contextlib
import io
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from course_tools.grading.assignments.guard import guard_withheld
from course_tools.grading.bridge.errors import describe
from course_tools.grading.bridge.peer import Peer, PeerGone
from course_tools.grading.run.given_objects import given_classes
from course_tools.grading.run.shell import fresh_shell, put_files, shell

PRINTED = 100_000


class CellTooSlow(BaseException):
    """Raised in a cell that has used up its time; swallowed, it ends the process."""


class LimitedText(io.StringIO):
    """Holds what a cell prints, and drops what is too much."""

    def write(self, text: str) -> int:
        if self.tell() < PRINTED:
            super().write(text[: PRINTED - self.tell()])
        return len(text)


@contextlib.contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise CellTooSlow

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_cell(source: str, seconds: float) -> dict[str, Any]:
    """Run one cell and say what it printed and what it raised."""
    printed = LimitedText()
    error: BaseException | None = None
    result = None
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            _stopped_after(seconds),
        ):
            done = shell().run_cell(source, store_history=True)
            error = done.error_before_exec or done.error_in_exec
            result = done.result
    except CellTooSlow as slow:
        error = slow
    told = None if error is None else describe(error)
    text = printed.getvalue()[:PRINTED]
    return {"error": told, "printed": text, "result": _short(result)}


def _short(result: Any) -> str | None:
    try:
        return None if result is None else repr(result)[:PRINTED]
    except BaseException as error:
        return f"(a result whose repr raises {type(error).__name__})"


def each(function: Callable[..., Any], calls: list[Any]) -> list[Any]:
    """Call a function on many inputs, one after the other, and say what each gave."""
    results: list[Any] = []
    for args, kwargs in calls:
        try:
            results.append(("returned", function(*args, **kwargs)))
        except Exception as error:
            told = describe(error)
            kinds = [told["type"], *told["bases"]]
            results.append(("raised", kinds, told["message"]))
    return results


def student_peer(connection: socket.socket) -> Peer:
    """Make the student's end of the bridge, with an empty notebook."""
    _, namespace = fresh_shell()

    def find(key: str) -> Any:
        kind, _, name = key.partition(":")
        if kind in ("name", "each") and name in namespace:
            function = namespace[name]
            return function if kind == "name" else partial(each, function)
        raise NameError(f"name {name!r} is not defined")

    peer = Peer(connection, strict=False, find=find)

    def describe_names(names: list[str]) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for name in (name for name in names if name in namespace):
            value, told[name] = namespace[name], ("value",)
            if callable(value):
                text = str(getattr(value, "__doc__", None) or "")[:5000]
                told[name] = ("callable", isinstance(value, type), text)
        return told

    def withhold(names: list[str]) -> None:
        guard_withheld(names, beside_tests=False)

    def learn_classes(sources: list[str]) -> None:
        peer.classes.update(given_classes(sources, namespace))

    peer.handlers = {
        "run": run_cell,
        "names": describe_names,
        "value": lambda name: namespace[name],
        "files": put_files,
        "classes": learn_classes,
        "withhold": withhold,
    }
    return peer


def serve(peer: Peer) -> None:
    """Answer the referee until it closes the pipe."""
    with contextlib.suppress(PeerGone):
        while True:
            _, data = peer.receive()
            out, err = LimitedText(), LimitedText()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                peer.answer(data)


def play(pipe: int) -> None:
    """Serve the referee until it closes the pipe."""
    serve(student_peer(socket.socket(fileno=pipe)))
