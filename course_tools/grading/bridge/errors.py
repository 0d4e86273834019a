"""Exceptions cross the pipe as descriptions, and become builtin ones again."""

import builtins
import traceback
from typing import Any

from course_tools.grading.bridge.codec import Refused

MESSAGE_CHARACTERS = 20_000


class StudentError(Exception):
    """An exception of the student's that is no builtin one a test may see."""


def describe(error: BaseException, hide: bool = False) -> dict[str, Any]:
    """Say what an exception is, as data; hide its lines if they are a test's."""
    kinds = type(error).__mro__
    try:
        message = str(error)[:MESSAGE_CHARACTERS]
    except Exception:
        message = "an error whose text cannot be read"
    lines = [] if hide else traceback.format_exception(error, limit=-8)
    return {
        "type": type(error).__name__,
        "bases": [base.__name__ for base in kinds if base.__module__ == "builtins"],
        "message": str.__str__(message),
        "trace": "".join(lines)[-MESSAGE_CHARACTERS:],
    }


def rebuild(told: Any) -> BaseException:
    """Rebuild an exception from its description: a builtin class, or a StudentError."""
    fields = {"type": str, "bases": list, "message": str, "trace": str}
    if type(told) is not dict or any(
        type(told.get(name)) is not kind for name, kind in fields.items()
    ):
        raise Refused("an error of a form that no error has")
    error: Any = _builtin(told["bases"], told["message"][:MESSAGE_CHARACTERS])
    if error is None:
        message = told["message"][:MESSAGE_CHARACTERS]
        error = StudentError(f"{told['type'][:80]}: {message}")
    error.trace_there = told["trace"][:MESSAGE_CHARACTERS]
    return error


def _builtin(bases: list[Any], message: str) -> BaseException | None:
    """The first builtin kind among the bases of an error that a test may see."""
    for name in bases:
        kind = getattr(builtins, name, None) if type(name) is str else None
        if kind in (StopIteration, StopAsyncIteration):
            return None  # in a test it would end a loop, with no word
        if not isinstance(kind, type) or kind is Exception:
            continue
        if issubclass(kind, Exception):
            try:
                return kind(_key(message) if kind is KeyError else message)
            except TypeError:
                return None
    return None


def _key(message: str) -> str:
    """What a KeyError was raised with: its text is the key's repr."""
    return inner if repr(inner := message[1:-1]) == message else Written(message)


class Written(str):
    """A text that is written as it is, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str.__str__(self)
