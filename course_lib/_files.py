"""Files: written whole or not at all, and code named by what it does."""

import ast
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: str | Callable[[Path], Any]) -> None:
    r"""Write a file under another name beside its place, and give it its own name when
    it is complete."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        if isinstance(content, str):
            unfinished.write_text(content, encoding="utf-8", newline="\n")
        else:
            content(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def digest_of_code(files: Iterable[Path | str], imports: bool = True) -> str:
    """Name what some Python files do, by 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for file in files:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [  # type: ignore[attr-defined]
                    child for child in body if _counts(child, imports)
                ]
        digest.update(ast.dump(tree).encode() + b"\0")
    return digest.hexdigest()


def _counts(node: ast.AST, imports: bool) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return imports
    # A string that stands alone documents what is above it.
    return not (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
