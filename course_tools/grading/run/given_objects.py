"""What a notebook gives of classes: plain ones, whose objects cross, and modules.

A student writes what a module does; what it consists of is mostly given, as
``__init__``. Of a class whose ``__init__`` is given the referee makes one of its own
(:func:`course_tools.grading.bridge.held.declare`). The grader reads names alone: it
imports no torch, and the first submission starts the sooner.
"""

import ast
import contextlib
import functools
from typing import Any

IMPORTS = ast.Import | ast.ImportFrom


def given_classes(sources: list[str], namespace: dict[str, Any]) -> dict[str, type]:
    """Name the plain classes that given cells define."""
    # here, because the grader reads names and needs no torch
    from course_tools.grading.bridge.torch_here import torch

    found = {}
    for node in (node for source in sources for node in _classes(source)):
        kind = namespace.get(node.name)
        if not isinstance(kind, type) or issubclass(kind, torch.nn.Module):
            continue
        if kind.__name__ == node.name:
            found[node.name] = kind
    return found


def _classes(source: str) -> list[ast.ClassDef]:
    """The classes at the top level of a cell; none where it is no Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def parsed(source: str) -> ast.Module:
    """The code of a cell, with IPython's own lines as calls; what is no Python, such as
    a cell in another language, defines and uses nothing."""
    from IPython.core.inputtransformer2 import TransformerManager

    for text in (source, TransformerManager().transform_cell(source)):
        with contextlib.suppress(SyntaxError):
            return ast.parse(text)
    return ast.Module([], [])


def imported_in(tree: ast.AST) -> set[str]:
    """The names that imports give to what they import."""
    imports = (node for node in ast.walk(tree) if isinstance(node, IMPORTS))
    names = (alias for node in imports for alias in node.names)
    return {(alias.asname or alias.name).partition(".")[0] for alias in names}


def answer_names(source: str) -> list[str]:
    """Name what an answer defines, without what it imports."""
    imported = imported_in(parsed(source))
    return [name for name in defined_names(source) if name not in imported]


def imports_of(source: str) -> str:
    """The imports of a cell, one a line."""
    lines = (node for node in parsed(source).body if isinstance(node, IMPORTS))
    return "\n".join(map(ast.unparse, lines))


@functools.cache  # the same cells for each submission
def defined_names(source: str) -> list[str]:
    """Name what a cell defines at its top level."""
    names: list[str] = []
    for node in ast.walk(_Shallow().visit(parsed(source))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound = [alias.asname or alias.name for alias in node.names]
            names += [name.partition(".")[0] for name in bound]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
    return list(dict.fromkeys(name for name in names if name != "*"))


class _Shallow(ast.NodeTransformer):
    """Takes out the bodies of functions and classes, and comprehensions."""

    def cut(self, node: Any) -> Any:
        node.body, node.decorator_list = [], []
        if hasattr(node, "args"):
            node.args = ast.arguments([], [], None, [], [], None, [])
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = cut

    def drop(self, node: Any) -> Any:
        return ast.Constant(None)

    visit_Lambda = visit_ListComp = visit_SetComp = drop
    visit_DictComp = visit_GeneratorExp = drop


@functools.cache
def interfaces(instructor: str, released: str) -> dict[str, str]:
    """Find the classes of modules in an answer cell whose ``__init__`` is given."""
    theirs = _module_classes(released)
    return {
        name: ast.unparse(node)
        for name, node in _module_classes(instructor).items()
        if name in theirs and _start(node) == _start(theirs[name])
    }


def _module_classes(source: str) -> dict[str, ast.ClassDef]:
    return {
        node.name: node
        for node in _classes(source)
        if any(ast.unparse(base).endswith("nn.Module") for base in node.bases)
    }


def _start(node: ast.ClassDef) -> str:
    """All that decides how an object begins, and what is not asked for."""
    return "".join(ast.dump(part) for part in node.body if not _is_asked_for(part))


def _is_asked_for(part: ast.stmt) -> bool:
    """Whether the referee's class asks for it; a property is the instructor's."""
    if not isinstance(part, ast.FunctionDef) or part.decorator_list:
        return False
    return not part.name.startswith("__")
