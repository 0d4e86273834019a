"""The classes of modules that a notebook declares, read as text: what of them is given,
and so is the grader's own.

A student writes what a module does; what it consists of is mostly given, as
``__init__``. From such a class the referee makes one of its own
(:mod:`course_tools.grading.bridge.asking_modules`). The grader reads names alone: it
imports no torch, and the first submission starts the sooner.
"""

from __future__ import annotations

import ast


def interfaces(instructor: str, released: str) -> dict[str, str]:
    """Find the classes of modules in an answer cell whose ``__init__`` is given."""
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
    return {
        node.name: node
        for node in classes
        if any(ast.unparse(b).endswith("nn.Module") for b in node.bases)
    }


def _start(node: ast.ClassDef) -> str:
    """All that decides how an object of this class begins, and what of it will not be
    asked for."""
    return "".join(ast.dump(part) for part in node.body if not _is_asked_for(part))


def _is_asked_for(part: ast.stmt) -> bool:
    """Whether the referee's class asks the student's process for it; a property would
    be the instructor's own."""
    return (
        isinstance(part, ast.FunctionDef)
        and not part.name.startswith("__")
        and not part.decorator_list
    )
