"""Changes of one line of a student's code, each a mistake that people make.

They are the mistakes of ``tests/assignments/mutants``: an index or a dimension off by
one, a sign, ``<`` for ``<=``, a scaling, a copy or a step left out, a sum for a mean,
arguments swapped, another variable. The rest of the line stays as the student wrote it.
"""

import ast
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

PAIRS = "Add Sub,FloorDiv Div,Mult Div,BitAnd BitOr,Lt LtE,Gt GtE,Eq NotEq,And Or"
PAIRS += ",sum mean,max min,argmax argmin,amax amin,any all,sin cos,triu tril"
PAIRS += ",zeros_like ones_like,softmax log_softmax,minimum maximum"
BOTH = [pair.split() for pair in PAIRS.split(",")]
OTHER = {b: a for a, b in BOTH} | dict(BOTH)
#: Steps that people leave out.
STEPS = {"sqrt", "tanh", "exp", "log", "relu", "abs", "clamp", "clone", "detach"}
STEPS |= {"copy", "deepcopy", "sorted", "reversed", "flip", "square", "strip", "list"}
LARGEST = 20  # a number above this is no index and no dimension


class Change(NamedTuple):
    """A line of a cell, counted from 1, and what stands there instead."""

    line: int
    new: str


def apply(source: str, change: Change) -> str:
    """The cell with the change."""
    lines = source.split("\n")
    return "\n".join([*lines[: change.line - 1], change.new, *lines[change.line :]])


def definition(source: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """The last definition of a name at the top level of a cell."""
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    raise ValueError(f"{name} is not defined here")


def changes(
    source: str, name: str, given: set[str], chance: random.Random
) -> list[Change]:
    """Find the changes of a function or class, none of a given line. Those that put
    another variable come last."""
    found, lines = dict[Change, bool](), source.split("\n")
    for node, names in _within(definition(source, name), []):
        old = lines[node.lineno - 1].encode()  # the tree counts bytes
        if node.lineno != node.end_lineno or old.strip().decode() in given:
            continue
        for new in _mistakes(node, names):
            # a part of the node stays as it is written
            text = ast.get_source_segment(source, new) if hasattr(new, "lineno") else ""
            text = f"({text})" if text and isinstance(new, ast.BinOp) else text
            put = (text or ast.unparse(new)).encode()
            line = old[: node.col_offset] + put + old[node.end_col_offset :]
            change = Change(node.lineno, line.decode())
            found.setdefault(change, isinstance(node, ast.Name))
    mixed = chance.sample([*found], len(found))
    return sorted(mixed, key=lambda change: found[change])


def _within(node: ast.AST, names: list[str]) -> Iterator[tuple[Any, list[str]]]:
    """The parts of a tree that have a place, with the parameters known there."""
    if isinstance(node, ast.FunctionDef):
        names = [one.arg for one in node.args.args if one.arg != "self"]
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr | ast.stmt):
            yield part, names
        if not (isinstance(part, ast.UnaryOp) and _whole(part.operand)):
            yield from _within(part, names)


def _whole(node: ast.AST) -> bool:
    value = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and type(value) is int and value <= LARGEST


def _other(kind: ast.AST) -> Any:
    return getattr(ast, OTHER.get(type(kind).__name__, ""), lambda: None)()


def _mistakes(node: ast.AST, names: list[str]) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left, op, right):
            if new := _other(op):
                yield ast.BinOp(left, new, right)
            if isinstance(op, ast.Div | ast.Mult | ast.Pow):
                yield left
        case ast.Compare(left, [op], right) if new := _other(op):
            yield ast.Compare(left, [new], right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(_other(op), values)
        case ast.UnaryOp(ast.USub(), ast.Constant(int(n))):
            yield from (ast.Constant(-n - 1), ast.Constant(1 - n))
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(n)) if _whole(node):
            yield from (ast.Constant(n + 1), ast.Constant(n - 1))
        case ast.Call(func, args, keywords):
            yield from _calls(func, args, keywords)
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Assign([ast.Name(target)], value):
            if any(getattr(one, "id", "") == target for one in ast.walk(value)):
                yield ast.Pass()
        case ast.Name(name, ast.Load()) if name in names and len(names) > 1:
            yield ast.Name(names[names.index(name) - 1])


def _calls(func: Any, args: list[Any], keywords: list[Any]) -> Iterator[ast.AST]:
    called, of = getattr(func, "attr", ""), getattr(func, "value", None)
    called = called or getattr(func, "id", "")
    if called in OTHER:
        new = OTHER[called]
        named = ast.Attribute(of, new) if of else ast.Name(new)
        yield ast.Call(named, args, keywords)
    module = getattr(of, "id", "") in {"torch", "math", "copy"}
    if called in STEPS and (args or (of and not module)):
        yield of if of and not module else args[0]
    match args:
        case [ast.Name() as one, ast.Name() as other]:
            yield ast.Call(func, [other, one], keywords)
        case [ast.List([one, other]), *rest]:
            yield ast.Call(func, [ast.List([other, one]), *rest], keywords)
