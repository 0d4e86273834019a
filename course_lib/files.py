"""Files: where those lie that come with the library, how one is written whole or not
at all, and a name for what code does.

In a checkout records, checkpoints and released assignments lie in ``book/`` and
``exercises/``. A wheel has them inside the package, where ``pyproject.toml`` maps them,
so that a notebook finds them wherever it is opened.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent


def shipped_folder(path: str, package: Path = PACKAGE) -> Path:
    """Return a folder of the checkout or, where the library is installed from a wheel,
    the package's copy of it."""
    inside = package / Path(path).name
    return inside if inside.is_dir() else package.parent / path


RESULTS = shipped_folder("book/results")
CHECKPOINTS = shipped_folder("book/checkpoints")
EXERCISES = shipped_folder("exercises")


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
