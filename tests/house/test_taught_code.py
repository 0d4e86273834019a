"""What a chapter teaches fits on the page: at most 36 lines without its docstrings."""

import ast
import inspect
from importlib import import_module

LINES = 36
TAUGHT = (
    "seq2seq.model:Encoder",
    "seq2seq.model:Decoder",
    "seq2seq.model:Seq2Seq",
    "seq2seq.search:greedy",
    "seq2seq.search:sample",
    "seq2seq.search:generate",
    "seq2seq.search:beam_search",
)


def lines_of_code(name: str) -> int:
    """Lines that are neither empty nor of a docstring."""
    module, _, attribute = name.partition(":")
    found = getattr(import_module(f"course_lib.{module}"), attribute)
    source = inspect.getsource(inspect.unwrap(found))
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node)
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    lines = enumerate(source.splitlines(), start=1)
    return sum(bool(line.strip()) and n not in docstrings for n, line in lines)


def test_taught_code_fits_on_the_page():
    lengths = {name: lines_of_code(name) for name in TAUGHT}
    assert {name: n for name, n in lengths.items() if n > LINES} == {}
