"""Modules in the grader's own process that ask the student's what they do.

From a class that a notebook declares (:mod:`course_tools.grading.run.interfaces`) the
referee makes one of its own: the same parts with the same names, made by the
instructor's ``__init__`` from the referee's own torch, and methods that ask the
student's process (:mod:`course_tools.grading.bridge.modules`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def declare(made: type[torch.nn.Module], ask: Callable[..., Any]) -> None:
    """Let a class of the instructor's ask for what its methods do."""
    for method, function in list(vars(made).items()):
        if callable(function) and not method.startswith("__"):
            setattr(made, method, _asking(ask, method))
    given = made.__init__

    def begin(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        given(self, *args, **kwargs)
        if type(self) is made:
            self.__dict__["_course_begin"] = (args, kwargs)
            self.__dict__["_course_fields"] = simple_fields(self)

    made.__init__ = begin  # type: ignore[method-assign]


def _asking(ask: Callable[..., Any], method: str) -> Callable[..., Any]:
    def asking(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        return ask(method, self, args, kwargs)

    asking.__name__ = asking.__qualname__ = method
    return asking


#: What every module has: none of it is a field of its own.
BARE = frozenset(vars(torch.nn.Module()))


def simple_fields(module: torch.nn.Module) -> dict[str, Any]:
    """The plain values among the fields of a module."""
    return {
        name: value
        for name, value in vars(module).items()
        if name not in BARE
        and not name.startswith("_")
        and type(value) in (int, float, bool, str, type(None), tuple)
    }
