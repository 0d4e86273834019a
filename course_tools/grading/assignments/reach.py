"""Which test cells a changed answer can reach, so that no others are run for it.

A test is reached if it names what a changed cell defines, or what a statement defines
that does, or so on; with it go the tests that define what it uses. The others would do
what they do for the reference. An answer that touches what all cells share, torch's own
state say, reaches all.
"""

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution

from course_tools.grading.assignments.comparisons import asked_of

#: What may change more than the names that a cell defines.
SHARED = re.compile(
    r"seed|rng_state|\bset_|[sg]etattr|globals|builtins|__(?!init__)[a-z]|course_|import"
    r"|\b(?:torch|math|random|F|nn)(?:\.\w+)+ *=[^=]"
)


def is_test(cell: NotebookNode) -> bool:
    """Tell a cell that marks answers and is none."""
    return is_grade(cell) and not is_solution(cell)


def reached(cells: Sequence[NotebookNode], changed: Sequence[NotebookNode]) -> set[str]:
    """Return the ``grade_id`` of each test cell that a change can reach.

    Parameters
    ----------
    cells, changed
        The code cells of the reference, and the same with an answer in them.
    """
    tests = {
        cell.metadata.nbgrader.grade_id: cell.source for cell in cells if is_test(cell)
    }
    others = [cell.source for cell in cells if not is_test(cell)]
    pairs = zip(cells, changed, strict=True)
    new = [(old.source, it.source) for old, it in pairs if old.source != it.source]
    try:
        known = {name for pair in new for text in pair for name in _defined(text)}
        statements = [(_defined(x), _used(x)) for text in others for x in _parts(text)]
        of_tests = {name: _used(text) for name, text in tests.items()}
    except SyntaxError:
        return {*tests}
    if any(SHARED.search(text) for _, text in new):
        return {*tests}
    while True:
        more = {name for its, used in statements if used & known for name in its}
        if more <= known:
            break
        known |= more
    return with_what_they_use(
        cells, {name for name, used in of_tests.items() if used & known}
    )


def with_what_they_use(
    cells: Sequence[NotebookNode], names: Collection[str]
) -> set[str]:
    """Add to tests those that define what they use."""
    tests = {
        cell.metadata.nbgrader.grade_id: cell.source for cell in cells if is_test(cell)
    }
    defined = {name: _defined(text) for name, text in tests.items()}
    wants = {name: _used(text) - defined[name] for name, text in tests.items()}
    found = {*names}
    while True:
        wanted = set[str]().union(*(wants[name] for name in found))
        more = {name for name, its in defined.items() if its & wanted}
        if more <= found:
            return found
        found |= more


def _parts(source: str) -> Iterator[str]:
    """The statements of a cell, each as a text of its own."""
    for statement in ast.parse(source).body:
        yield ast.unparse(statement)


def _defined(source: str) -> set[str]:
    """The names that a text defines for what comes after it."""
    found = set[str]()
    for statement in ast.parse(source).body:
        function = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for node in [statement] if function else ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
    return found


def _used(source: str) -> set[str]:
    """The names that a text has, those that it writes as texts among them."""
    found = asked_of(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found
