"""Changes of one line of a student's code, each a mistake that people make.

They are the mistakes of ``tests/assignments/mutants``: an index or a dimension off by
one, a sign, ``<`` for ``<=``, a scaling, a copy or a step left out, a sum for a mean,
arguments swapped, another variable. The rest of the line stays as the student wrote it.
"""

import ast
import random
from collections.abc import Iterator
from typing import NamedTuple

OPERATORS: dict[type, type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
OPERATORS |= {ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div}
OPERATORS |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
COMPARED: dict[type, type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt}
COMPARED |= {ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
TWINS: tuple[str, ...] = (
    "sum mean",
    "max min",
    "argmax argmin",
    "amax amin",
    "any all",
    "sin cos",
)
TWINS += ("zeros_like ones_like", "log_softmax softmax", "tril triu", "minimum maximum")
OTHER = {a: b for pair in TWINS for a, b in (pair.split(), pair.split()[::-1])}
#: Steps that people leave out.
STEPS = {
    "sqrt",
    "tanh",
    "exp",
    "log",
    "relu",
    "abs",
    "clamp",
    "clone",
    "detach",
    "list",
}
STEPS |= {"copy", "deepcopy", "sorted", "reversed", "flip", "square", "strip", "lower"}
LARGEST = 20  # a number above this is no index and no dimension


class Change(NamedTuple):
    """A line of a cell, counted from 1, and what stands there instead."""

    line: int
    new: str


def changes(
    source: str, name: str, given: set[str], chance: random.Random
) -> list[Change]:
    """Find the changes of a function or class, none of a given line. Those that put
    another variable come last."""
    body, found = definition(source, name), dict[Change, bool]()
    lines = source.split("\n")
    for node, names in _within(body, []):
        number, begin, end = node.lineno, node.col_offset, node.end_col_offset
        if number != node.end_lineno or lines[number - 1].strip() in given:
            continue
        old = lines[number - 1].encode()  # the tree counts bytes
        for new in _mistakes(node, names):
            if hasattr(new, "lineno"):  # a part of the node, as it is written
                text = ast.get_source_segment(source, new) or ""
                text = f"({text})" if isinstance(new, ast.BinOp) else text
            else:
                text = ast.unparse(new)
            changed = old[:begin] + text.encode() + old[end:]
            change = Change(number, changed.decode())
            found.setdefault(change, isinstance(node, ast.Name))
    mixed = chance.sample(list(found), len(found))
    return sorted(mixed, key=lambda change: found[change])


def apply(source: str, change: Change) -> str:
    """The cell with the change."""
    lines = source.split("\n")
    lines[change.line - 1] = change.new
    return "\n".join(lines)


def definition(source: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """The last definition of a name at the top level of a cell."""
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    raise ValueError(f"{name} is not defined here")


def _within(node: ast.AST, names: list[str]) -> Iterator[tuple[ast.expr, list[str]]]:
    """The parts of a tree that have a place, with the parameters known there."""
    if isinstance(node, ast.FunctionDef):
        names = [one.arg for one in node.args.args if one.arg != "self"]
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr | ast.stmt):
            yield part, names  # type: ignore[misc]
        if not isinstance(part, ast.UnaryOp) or not _number(part.operand):
            yield from _within(part, names)


def _number(node: ast.AST) -> bool:
    value = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and type(value) is int and value <= LARGEST


def _mistakes(node: ast.AST, names: list[str]) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left, op, right):
            if type(op) in OPERATORS:
                yield ast.BinOp(left, OPERATORS[type(op)](), right)
            if isinstance(op, ast.Div | ast.Mult | ast.Pow):
                yield left
        case ast.Compare(left, [op], right) if type(op) in COMPARED:
            yield ast.Compare(left, [COMPARED[type(op)]()], right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
        case ast.UnaryOp(ast.USub(), ast.Constant(int(n))):
            yield from (ast.Constant(-n - 1), ast.Constant(1 - n))
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(n)) if _number(node):
            yield from (ast.Constant(n + 1), ast.Constant(n - 1))
        case ast.Call(func, args, keywords):
            called = getattr(func, "attr", getattr(func, "id", ""))
            of = getattr(func, "value", None)
            module = getattr(of, "id", "") in {"torch", "math", "copy"}
            if called in OTHER and isinstance(of, ast.expr):
                yield ast.Call(ast.Attribute(of, OTHER[called]), args, keywords)
            elif called in OTHER:
                yield ast.Call(ast.Name(OTHER[called]), args, keywords)
            if called in STEPS and of is not None and not module:
                yield of
            elif called in STEPS and args:
                yield args[0]
            match args:
                case [ast.Name() as one, ast.Name() as other]:
                    yield ast.Call(func, [other, one], keywords)
                case [ast.List([one, other]), *rest]:
                    yield ast.Call(func, [ast.List([other, one]), *rest], keywords)
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Assign([ast.Name(target)], value):
            if any(getattr(one, "id", "") == target for one in ast.walk(value)):
                yield ast.Pass()
        case ast.Name(name, ast.Load()) if name in names and len(names) > 1:
            yield ast.Name(names[names.index(name) - 1])
