"""`literalinclude` with one more option, `:without-docstring:`, so that a page shows a
function beside its formula.

The text explains, and the docstring is one link away in the library reference; on the
page it would hide the code.
"""

from __future__ import annotations

import ast
import textwrap
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.directives.code import LiteralInclude

WITHOUT_DOCSTRING = "without-docstring"


def without_docstring(source: str) -> str:
    """Return Python source, such as one function or class, without the docstrings in
    it.

    >>> print(without_docstring('def double(x):\\n    "Twice x."\\n    return 2 * x'))
    def double(x):
        return 2 * x
    """
    source = textwrap.dedent(source)
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
        ) and ast.get_docstring(node):
            docstring = node.body[0]
            following = (
                node.body[1].lineno - 1 if len(node.body) > 1 else docstring.end_lineno
            )
            # A blank line after a docstring parts it from the body; it goes with it.
            last = docstring.end_lineno
            while last < following and not lines[last].strip():
                last += 1
            lines[docstring.lineno - 1 : last] = [None] * (last - docstring.lineno + 1)
    return "\n".join(line for line in lines if line is not None)


class LibraryCode(LiteralInclude):
    """`literalinclude` that can leave docstrings out."""

    option_spec: ClassVar = LiteralInclude.option_spec | {
        WITHOUT_DOCSTRING: directives.flag
    }

    def run(self) -> list[nodes.Node]:
        bare = WITHOUT_DOCSTRING in self.options
        self.options.pop(WITHOUT_DOCSTRING, None)
        found = super().run()
        if bare:
            for block in [
                block for node in found for block in node.findall(nodes.literal_block)
            ]:
                text = without_docstring(block.rawsource)
                block.rawsource = text
                block[:] = [nodes.Text(text)]
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("literalinclude", LibraryCode, override=True)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
