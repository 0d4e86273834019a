"""Classes in which somebody copies: answers as cells, disguised or not, and as files.

The disguises know nothing of fingerprints: they work on Python's own syntax tree.
"""

from __future__ import annotations

import ast
import copy
import functools
import random
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
from classroom import REPOSITORY, write_notebook
from nbformat import NotebookNode
from nbgrader.utils import is_solution

from course_tools.grading.assignments.mutants import change, load_cases
from course_tools.grading.assignments.source import read_source

sys.path.append(str(REPOSITORY / "tests" / "assignments"))
import fresh

Cells = dict[str, str]  # answers by grade_id


@functools.cache
def model(name: str) -> NotebookNode:
    return read_source(REPOSITORY / "solutions" / name / f"{name}.py")


@functools.cache
def released(name: str) -> NotebookNode:
    path = REPOSITORY / "exercises" / name / f"{name}.ipynb"
    return nbformat.read(path, as_version=4)


def answers(notebook: NotebookNode) -> Cells:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return {c.metadata.nbgrader.grade_id: c.source for c in cells if is_solution(c)}


@functools.cache
def right_answers(name: str) -> dict[str, Cells]:
    """What the authors of right answers wrote, those of the catalogue and fresh ones:
    no cell that they left as the model answer has it."""
    found = {}
    there = REPOSITORY / "tests/assignments/mutants/fresh" / f"{name}.py"
    both = (
        load_cases(name, REPOSITORY)[1],
        fresh.load(name)[1] if there.exists() else [],
    )
    for kind, listed in zip(("catalogue", "fresh"), both, strict=True):
        for answer in listed:
            cells = answers(change(model(name), answer.changes))
            found[f"{kind}-{answer.name}"] = {key: cells[key] for key in answer.changes}
    return found


@functools.cache
def texts(name: str) -> dict[str, list[str]]:
    """By cell, the ways to answer it that are no edited model answer: of right
    answers and of mistakes."""
    wrong, right = load_cases(name, REPOSITORY)
    found: dict[str, list[str]] = {}
    for case in [*right, *wrong]:
        for cell, changed in case.changes.items():
            if isinstance(changed, str):
                found.setdefault(cell, []).append(changed)
    return found


@functools.cache
def laboratory() -> list[str]:
    """Functions of the book's experiments: what students write besides."""
    files = sorted((REPOSITORY / "course_lab").rglob("*.py"))
    return [
        ast.unparse(node)
        for path in files
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    ]


def somebody(name: str, chance: random.Random) -> Cells:
    """One who copies from nobody: one cell in a known way, and for the rest what nobody
    else has, functions of the laboratory."""
    own = {
        cell: "\n\n".join(chance.sample(laboratory(), 2))
        for cell in answers(model(name))
    }
    cell = chance.choice(sorted(texts(name)))
    return own | {cell: chance.choice(texts(name)[cell])}


@functools.cache
def usual(name: str) -> Cells:
    """Right answers in the most usual way, by one who had not seen the model answer."""
    path = REPOSITORY / "tests" / "assignments" / "mutants" / f"usual_{name}.py"
    _, *cells = path.read_text(encoding="utf-8").split("# %% ")
    return {text.partition("\n")[0]: text.partition("\n")[2] for text in cells}


# -- disguises


def _functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def renamed(source: str, chance: random.Random) -> str:
    """Other names for all variables of functions, and other words in docstrings."""
    tree = ast.parse(source)
    for function in _functions(tree):
        inside = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        stored = {node.id for node in inside if isinstance(node.ctx, ast.Store)}
        new = {name: f"v{chance.randrange(10**6)}" for name in sorted(stored)}
        for node in inside:
            node.id = new.get(node.id, node.id)
        if ast.get_docstring(function):
            function.body[0] = ast.Expr(ast.Constant("My own words."))
    return ast.unparse(tree)


def _apart(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether two statements may change places."""
    kinds = {type(one), type(other)}
    if kinds != {ast.Assign}:
        return kinds == {ast.FunctionDef}
    both = [
        {n.id: type(n.ctx) for n in ast.walk(node) if isinstance(n, ast.Name)}
        for node in (one, other)
    ]
    return not any(
        ast.Store in {of[n] for of in both} for n in both[0].keys() & both[1]
    )


def reordered(source: str, chance: random.Random) -> str:
    """Functions and methods in another order, and so are assignments next to each
    other where neither needs the other."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", [])
        for n in range(len(body) - 1 if isinstance(body, list) else 0):
            if _apart(*body[n : n + 2]) and chance.random() < 0.8:
                body[n : n + 2] = reversed(body[n : n + 2])
    return ast.unparse(tree)


def reformatted(source: str, chance: random.Random) -> str:
    """Other line breaks, quotes and comments, and types."""
    tree = ast.parse(source)
    for function in _functions(tree):
        for argument in function.args.args:
            argument.annotation = ast.Name("object")
    lines = ast.unparse(tree).splitlines()
    return "\n".join(f"{line}  # {chance.randrange(999)}" for line in lines)


def all_of_it(source: str, chance: random.Random) -> str:
    for disguise in (renamed, reordered, reformatted):
        source = disguise(source, chance)
    return source


def plain(source: str, chance: random.Random) -> str:
    return source


DISGUISES: dict[str, Callable[[str, random.Random], str]] = {
    one.__name__: one for one in (plain, renamed, reordered, reformatted, all_of_it)
}


def disguised(cells: Cells, how: str, chance: random.Random) -> Cells:
    return {cell: DISGUISES[how](source, chance) for cell, source in cells.items()}


def notebook(name: str, cells: Cells) -> NotebookNode:
    """The released notebook with these answers; other cells are added."""
    made = copy.deepcopy(released(name))
    left = dict(cells)
    for cell in made.cells:
        if cell.cell_type == "code" and is_solution(cell):
            cell.source = left.pop(cell.metadata.nbgrader.grade_id, "") or cell.source
    made.cells += [nbformat.v4.new_code_cell(source) for source in left.values()]
    return made


def hand_in(folder: Path, name: str, work: dict[str, Cells]) -> Path:
    for student, cells in work.items():
        place = folder / student / name / f"{name}.ipynb"
        write_notebook(notebook(name, cells), place)
    return folder
