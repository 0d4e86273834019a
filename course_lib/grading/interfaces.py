"""The classes of modules that a notebook declares: what of them is given, and so is the grader's own.

A student writes what a module does; what it consists of is mostly given, as ``__init__``. From such a class the
grader's process makes one of its own: the same parts with the same names, made by the instructor's ``__init__`` from
the grader's own torch, and methods that ask the student's process (:mod:`course_lib.grading.modules_across`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import torch


def interfaces(instructor: str, released: str) -> dict[str, str]:
    """Find the classes of modules in an answer cell whose ``__init__`` is given.

    Args:
        instructor: the cell with its solution.
        released: the same as students got it.

    Returns:
        By name, the source of each class as the instructor wrote it.

    >>> written = "class Half(torch.nn.Module):\\n    def forward(self, x):\\n        return "
    >>> list(interfaces(written + "x / 2", written + "None"))
    ['Half']
    >>> interfaces(written + "x / 2", "# paste yours here")
    {}
    """
    theirs = _module_classes(released)
    return {
        name: ast.unparse(node)
        for name, node in _module_classes(instructor).items()
        if name in theirs and _start(node) == _start(theirs[name])
    }


def _module_classes(source: str) -> dict[str, ast.ClassDef]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {node.name: node for node in classes if any(ast.unparse(b).endswith("nn.Module") for b in node.bases)}


def _start(node: ast.ClassDef) -> str:
    """All that decides how an object of this class begins, and what of it will not be asked for."""
    return "".join(ast.dump(part) for part in node.body if not _is_asked_for(part))


def _is_asked_for(part: ast.stmt) -> bool:
    """Whether the referee's class asks the student's process for it; a property would be the instructor's own."""
    return isinstance(part, ast.FunctionDef) and not part.name.startswith("__") and not part.decorator_list


def declare(made: type[torch.nn.Module], ask: Callable[..., Any]) -> None:
    """Let a class of the instructor's ask for what its methods do.

    Args:
        made: the class, in the grader's process. Its objects will know what they were made of, and what of their
            fields a test has changed since.
        ask: called as ``ask(method, module, args, kwargs)`` for each method but ``__init__``.

    >>> class Half(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x / 2
    >>> declare(Half, lambda method, module, args, kwargs: (method, args))
    >>> Half()(3)
    ('forward', (3,))
    """
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
    """The plain values among the fields of a module.

    >>> simple_fields(torch.nn.Dropout(0.5))
    {'p': 0.5, 'inplace': False}
    """
    return {
        name: value
        for name, value in vars(module).items()
        if name not in BARE and not name.startswith("_") and type(value) in (int, float, bool, str, type(None), tuple)
    }
