"""Fingerprints of Python code that survive another layout, other names, another order.

Each statement is taken by itself, as the preorder of its syntax tree without what is
nested in it: so comments, docstrings, types, line breaks and parentheses are gone, and
functions, methods and statements may stand in any order. Names count by their first
use within a run of RUN nodes, so that a renamed copy has the same runs; attributes
stay (they tell one way of solving from another), but for those of ``self``. Of each
WINDOW hashes in a row the least is kept (Schleimer, Wilkerson and Aiken 2003,
"Winnowing: local algorithms for document fingerprinting", section 3).
"""

import ast
import builtins
import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping

from IPython.core.inputtransformer2 import TransformerManager

from course_tools.grading.run.shell import NO_PYTHON
from course_tools.grading.shown import shown

RUN, WINDOW = 8, 4
#: A statement of fewer nodes tells nothing: ``return weights``, ``x = y[0]``.
SHORTEST = 5
BUILTINS = frozenset(dir(builtins))
#: Syntax with statements inside; each of its parts is taken by itself.
STATEMENT = (ast.stmt, ast.excepthandler, ast.match_case)
LEFT_OUT = (ast.expr_context, ast.type_ignore)

#: By the text of a line, the fingerprints of what stands there.
Lines = dict[str, list[int]]
Node = tuple[str, bool, int]  # what it is, whether that is a chosen name, its line


def parsed(source: str) -> tuple[ast.Module, list[str]]:
    """Parse a cell, and give the lines that were parsed: magics become calls, and the
    magic of a whole cell goes."""
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source), source.split("\n")
        except SyntaxError:
            first, _, rest = source.lstrip().partition("\n")
            inside = rest if first.startswith("%%") else source
            plain = TransformerManager().transform_cell(inside)
            return ast.parse(plain), plain.split("\n")


def nodes(statement: ast.AST) -> Iterator[Node]:
    """Name the nodes of a statement in preorder, without the statements in it."""
    waiting, line = [statement], getattr(statement, "lineno", 1)
    while waiting:
        node = waiting.pop()
        line = getattr(node, "lineno", line)
        word, chosen = type(node).__name__, False
        inside = list(ast.iter_child_nodes(node))
        match node:
            case ast.Name(id=word):
                chosen = word not in BUILTINS
            case ast.arg(arg=word):
                chosen, inside = True, []
            case ast.Attribute(attr=name, value=value):
                own = isinstance(value, ast.Name) and value.id == "self"
                word = "." if own else f".{name}"
            case ast.keyword(arg=name):
                word = f"{name}="
            case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
                word, inside = "text", []
            case ast.Constant(value=int(value)):  # digits of a decimal have a limit
                word = f"{value:x}"
            case ast.Constant(value=value):
                word = repr(value)
            case ast.AnnAssign(target=target, value=value):
                word, inside = "Assign", [target, *([value] if value else [])]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                word, inside = "def", [*node.decorator_list, node.args]
        yield word, chosen, line
        kept = [n for n in inside if not isinstance(n, (*STATEMENT, *LEFT_OUT))]
        waiting += reversed(kept)


def _hash(run: list[Node]) -> int:
    chosen: dict[str, str] = {}
    words = [chosen.setdefault(w, f"n{len(chosen)}") if n else w for w, n, _ in run]
    digest = hashlib.blake2b("\0".join(words).encode(errors="replace"), digest_size=6)
    return int.from_bytes(digest.digest())


def fingerprints(sources: Iterable[str]) -> tuple[Lines, int]:
    """Return the fingerprints of some cells, and how many cells are no Python."""
    found: dict[str, set[int]] = {}
    unread = 0
    for source in sources:
        try:
            tree, lines = parsed(source)
        except NO_PYTHON:
            unread += 1
            continue
        for statement in ast.walk(tree):
            cut = list(nodes(statement)) if isinstance(statement, STATEMENT) else []
            if len(cut) < SHORTEST:
                continue
            runs = [cut[n : n + RUN] for n in range(max(len(cut) - RUN + 1, 1))]
            hashes = [(_hash(run), run[0][2]) for run in runs]
            for start in range(max(len(hashes) - WINDOW + 1, 1)):
                least, number = min(hashes[start : start + WINDOW])
                line = shown(lines[number - 1].strip(), 100)
                found.setdefault(line, set()).add(least)
    return {line: sorted(marks) for line, marks in found.items()}, unread


def of(lines: Mapping[str, Iterable[int]]) -> frozenset[int]:
    """All fingerprints of some lines."""
    return frozenset(mark for marks in lines.values() for mark in marks)
