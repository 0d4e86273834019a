"""What the notebook gives of classes: plain ones, whose objects can cross as fields,
and modules, of which the grader has its own.

A student writes what a module does; what it consists of is mostly given, as
``__init__``. Of a class whose ``__init__`` is given the referee makes one of its own
(:func:`course_tools.grading.bridge.held.declare`). The grader reads names alone: it
imports no torch, and the first submission starts the sooner.
"""

from __future__ import annotations

import ast
from typing import Any


def given_classes(sources: list[str], namespace: dict[str, Any]) -> dict[str, type]:
    """Name the plain classes that given cells define."""
    import torch  # here, because the grader reads names and needs no torch

    found = {}
    for source in sources:
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        for node in tree.body:
            if not isinstance(node, ast.ClassDef):
                continue
            kind = namespace.get(node.name)
            if (
                isinstance(kind, type)
                and not issubclass(kind, torch.nn.Module)
                and kind.__name__ == node.name
            ):
                found[node.name] = kind
    return found


def defined_names(source: str) -> list[str]:
    """Name what a cell defines at its top level."""
    names: list[str] = []
    for node in ast.walk(_shallow(ast.parse(source))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names += [
                (alias.asname or alias.name).partition(".")[0] for alias in node.names
            ]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
    return list(dict.fromkeys(name for name in names if name != "*"))


def _shallow(tree: ast.Module) -> ast.Module:
    """The same code with the bodies of its functions and classes left out, and what
    comprehensions bind."""

    class Cut(ast.NodeTransformer):
        def cut(self, node: Any) -> Any:
            node.body, node.decorator_list = [], []
            node.args = (
                ast.arguments([], [], None, [], [], None, [])
                if hasattr(node, "args")
                else None
            )
            return node

        visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = cut

        def drop(self, node: Any) -> Any:
            return ast.Constant(None)

        visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = (
            visit_GeneratorExp
        ) = drop

    return Cut().visit(tree)


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
