"""Exceptions that cross the pipe: as descriptions, of which the other side makes
builtin ones."""

from __future__ import annotations

import builtins
import traceback
from typing import Any

from course_tools.grading.bridge.codec import Refused

MESSAGE_CHARACTERS = 20_000


class StudentError(Exception):
    """An exception of the student's that is no builtin one, or none that a test may see
    (SystemExit)."""


def describe(error: BaseException, hide: bool = False) -> dict[str, Any]:
    """Say what an exception is, as data; hide the lines that it went through if they
    are a test's."""
    bases = [
        base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins"
    ]
    try:
        message = str(error)
    except Exception:
        message = "an error whose text cannot be read"
    trace = (
        ""
        if hide
        else "".join(traceback.format_exception(error, limit=-8))[-MESSAGE_CHARACTERS:]
    )
    message = message[:MESSAGE_CHARACTERS]
    return {
        "type": type(error).__name__,
        "bases": bases,
        "message": str.__str__(message),
        "trace": trace,
    }


def rebuild(told: Any) -> BaseException:
    """Rebuild an exception from its description: a builtin class, or a StudentError."""
    fields = ("type", "bases", "message", "trace")
    if type(told) is not dict or any(
        type(told.get(f)) is not (list if f == "bases" else str) for f in fields
    ):
        raise Refused("an error of a form that no error has")
    message = told["message"][:MESSAGE_CHARACTERS]
    for name in told["bases"]:
        kind = getattr(builtins, name, None) if type(name) is str else None
        if kind in (StopIteration, StopAsyncIteration):
            break  # in a test it would end a loop, with no word
        if (
            isinstance(kind, type)
            and issubclass(kind, Exception)
            and kind is not Exception
        ):
            try:
                error = kind(_key(message) if kind is KeyError else message)
            except TypeError:
                break
            error.trace_there = told["trace"][:MESSAGE_CHARACTERS]  # type: ignore[attr-defined]
            return error
    error = StudentError(f"{told['type'][:80]}: {message}")
    error.trace_there = told["trace"][:MESSAGE_CHARACTERS]  # type: ignore[attr-defined]
    return error


def _key(message: str) -> str:
    """What a KeyError was raised with: its text is the key as Python writes it, with
    its quotes."""
    return inner if repr(inner := message[1:-1]) == message else Written(message)


class Written(str):
    """A text that is written as it is, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str.__str__(self)
