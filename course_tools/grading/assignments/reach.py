"""Which test cells a changed answer can reach, so that no others are run for it.

A test is reached if it names what a changed cell defines, or what a statement defines
that does, or so on; with it go the tests that define what it uses. The others would do
what they do for the reference. An answer that touches what all cells share, torch's own
state say, reaches all.
"""

import ast
import re
import symtable
from collections.abc import Collection, Sequence
from functools import cache

from nbformat import NotebookNode

from course_tools.grading.assignments.comparisons import asked_of
from course_tools.grading.run.given_objects import parsed
from course_tools.grading.run.plan import role

#: What may change more than the names that a cell defines.
SHARED = re.compile(
    r"seed|rng_state|\bset_|[sg]etattr|globals|builtins|__(?!init__)[a-z]|course_|import"
    r"|\b(?:torch|math|random|F|nn)(?:\.\w+)+ *=[^=]"
)

Names = tuple[frozenset[str], frozenset[str]]  # what is defined, and what is used


def reached(cells: Sequence[NotebookNode], changed: Sequence[NotebookNode]) -> set[str]:
    """Return the ``grade_id`` of each test cell that a change can reach.

    Parameters
    ----------
    cells, changed
        The code cells of the reference, and the same with an answer in them.
    """
    tests = _tests(cells)
    pairs = zip(cells, changed, strict=True)
    new = [(old.source, it.source) for old, it in pairs if old.source != it.source]
    try:
        known = {
            n for pair in new for text in pair for n in defined_in(ast.parse(text))
        }
    except SyntaxError:
        return {*tests}
    if any(SHARED.search(text) for _, text in new):
        return {*tests}
    others = [cell.source for cell in cells if role(cell) != "test"]
    statements = [names for source in others for names in _by_statement(source)]
    while True:
        more = {name for its, used in statements if used & known for name in its}
        if more <= known:
            break
        known |= more
    found = {name for name, (_, used) in tests.items() if used & known}
    return with_what_they_use(cells, found)


def with_what_they_use(
    cells: Sequence[NotebookNode], names: Collection[str]
) -> set[str]:
    """Add to tests those that define what they use, the last one before it."""
    needs, defined_by = dict[str, set[str]](), dict[str, str]()
    for cell in cells:
        defined, _ = _names(cell.source)
        test = cell.metadata.nbgrader.grade_id if role(cell) == "test" else ""
        if test:
            asked = _asked_for(cell.source) - defined
            needs[test] = {defined_by.get(name, "") for name in asked} - {""}
        defined_by |= dict.fromkeys(defined, test)
    found, more = set[str](), {*names}
    while more:
        found |= more
        more = {need for test in more for need in needs[test]} - found
    return found


def _tests(cells: Sequence[NotebookNode]) -> dict[str, Names]:
    """By test cell, the names that it defines and those that it uses."""
    tests = [cell for cell in cells if role(cell) == "test"]
    return {cell.metadata.nbgrader.grade_id: _names(cell.source) for cell in tests}


# Hundreds of answers are asked about with the same cells of the reference.
@cache
def _names(source: str) -> Names:
    tree = parsed(source)
    return frozenset(defined_in(tree)), frozenset(used_in(tree) | asked_of(source))


@cache
def _asked_for(source: str) -> frozenset[str]:
    """The names that a cell reads and that are no variables of its functions."""
    tables = [symtable.symtable(ast.unparse(parsed(source)), "a cell", "exec")]
    found = asked_of(source)
    for table in tables:
        tables += table.get_children()
        symbols = [symbol for symbol in table.get_symbols() if symbol.is_referenced()]
        outer = table.get_type() == "module"
        found |= {x.get_name() for x in symbols if outer or x.is_global()}
    return frozenset(found)


@cache
def _by_statement(source: str) -> tuple[Names, ...]:
    parts = ast.parse(source).body
    return tuple((frozenset(defined_in(x)), frozenset(used_in(x))) for x in parts)


def defined_in(tree: ast.Module | ast.stmt) -> set[str]:
    """The names that a cell or a statement defines for what comes after it."""
    found = set[str]()
    for statement in tree.body if isinstance(tree, ast.Module) else [tree]:
        function = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for node in [statement] if function else ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
    return found


def used_in(tree: ast.AST) -> set[str]:
    """The names in a cell or a statement, those that it writes as texts among them."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found
