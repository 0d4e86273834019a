"""The public names of the library, as its stub lists them."""

import ast

from house import ROOT

STUB = ROOT / "course_lib" / "__init__.pyi"


def public_names() -> dict[str, str]:
    """Return each name with the module that has it, in the order of the course."""
    return {
        alias.name: str(statement.module)
        for statement in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
