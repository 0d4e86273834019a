"""What the results of a page depend on: the code that its cells import, and what that
code imports in turn.

A change elsewhere in the library, e.g. in the grader, executes no page again, and
neither does a changed docstring or comment. What this does not see: a module that is
imported by a name made at run time.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["cells_of", "digest_of_files", "imported_modules"]

CELL = re.compile(
    r"^(`{3,})\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n|(?::[^\n]*\n)*)(.*?)^\1$",
    re.MULTILINE | re.DOTALL,
)
MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)  # IPython's, which Python cannot parse


def cells_of(page: str) -> str:
    """Return the code of a page's cells, one after the other."""
    return MAGIC.sub("", "".join(match[2] for match in CELL.finditer(page)))


#: The packages of the course: what a page can import of it.
PACKAGES = ("course_lib", "course_lab", "course_tools")


def imported_modules(sources: Iterable[str], root: Path) -> list[Path]:
    """Return the files of the course's packages that some code imports, directly or
    through others of them."""
    found: set[Path] = set()
    new = {file for source in sources for file in _imports(ast.parse(source), root, ())}
    while new:
        found |= new
        code = {file: ast.parse(file.read_text(encoding="utf-8")) for file in new}
        new = {
            imported
            for file, tree in code.items()
            for imported in _imports(tree, root, file.parent.relative_to(root).parts)
        } - found
    return sorted(found)


def _imports(tree: ast.AST, root: Path, package: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files that a piece of code names, with the `__init__` of every package
    above them."""
    for node in ast.walk(tree):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = (*above, *(node.module.split(".") if node.module else ()))
            names = [(*base, alias.name) for alias in node.names]
        for parts in names:
            if parts[0] not in PACKAGES:
                continue
            folder = root
            for part in parts:
                if (module := folder / f"{part}.py").is_file():
                    yield module
                folder = folder / part
                if (module := folder / "__init__.py").is_file():
                    yield module


def digest_of_files(paths: Iterable[Path]) -> str:
    """Name the state of some files and folders, and of this Python, by 64 hexadecimal
    digits."""
    digest = hashlib.sha256(sys.version.encode())
    for top in paths:
        files = [top] if top.is_file() else top.rglob("*")
        for file in sorted(
            path for path in files if path.is_file() and "__pycache__" not in path.parts
        ):
            digest.update(f"{file.relative_to(top.parent).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
