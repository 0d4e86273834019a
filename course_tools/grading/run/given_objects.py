"""Which classes both processes know because the notebook gives them: their objects can
cross as fields."""

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
