"""What a page's results depend on: cells, code, files read, and pins.

A change elsewhere, e.g. in the grader, executes no page again, and neither does a
changed docstring or comment. What this does not see: a module that is imported by a
name made at run time.
"""

import ast
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from course_lib.files import digest_of_code

#: The packages of the course: what a page can import of it.
PACKAGES = ("course_lib", "course_lab", "course_tools")
#: Where else a page finds what it shows.
READ_FROM = (*PACKAGES, "book")
CHECKPOINTS = "book/checkpoints"
#: A page may show a record once it is there, so one that it looks for counts.
RECORDS = "book/results"
CELL = re.compile(
    r"^(`{3,})\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n|(?::[^\n]*\n)*)(.*?)^\1$",
    re.MULTILINE | re.DOTALL,
)
MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)  # IPython's, which Python cannot parse
Name = tuple[str, ...]  # a dotted name, in its parts


def cells_of(page: str) -> str:
    """Return the code of a page's cells, one after the other."""
    return MAGIC.sub("", "".join(match[2] for match in CELL.finditer(page)))


def code_state(page: Path, root: Path) -> dict[str, str]:
    """Name the state of what a page imports, and of the pins below it."""
    cells = cells_of(page.read_text(encoding="utf-8"))
    state = {"Python": sys.version}
    imported = {name[0] for name in _names(ast.parse(cells), (), {})}
    for file in imported_modules([cells], root):
        code = _code(file, root)
        state[file.relative_to(root).as_posix()] = code.digest
        imported |= {name[0] for name in code.names}
    pins = _pins((root / "constraints.txt").read_text(encoding="utf-8"))
    for package in {"torch", "numpy", *_distributions(imported)} & pins.keys():
        state[f"the pin of {package}"] = pins[package]
    return state


def files_state(names: Iterable[str], root: Path) -> dict[str, str]:
    """Name the state of each of some files, which may be gone."""
    return {name: digest_of_files([root / name]) for name in names}


def files_read(paths: Iterable[str], root: Path) -> list[str]:
    """Return which files are the course's and no code; all of a checkpoint, and of
    records those that are not there, too."""
    found: set[Path] = set()
    for path in map(Path, paths):
        own = path.is_relative_to(root) and path.is_file()
        own = own or (path.parent == root / RECORDS and not path.exists())
        if own and not path.suffix.startswith(".py"):
            inside = path.relative_to(root)
            if inside.is_relative_to(CHECKPOINTS):
                found |= set(path.parent.iterdir())
            elif inside.parts[0] in READ_FROM:
                found.add(path)
    return sorted(path.relative_to(root).as_posix() for path in found)


def _pins(constraints: str) -> dict[str, str]:
    pinned = (line.split("==") for line in constraints.splitlines() if "==" in line)
    return {canonicalize_name(line[0].strip()): line[1].strip() for line in pinned}


def _distributions(modules: Iterable[str]) -> set[str]:
    """Name the distributions that have these top-level modules."""
    known = _packages_distributions()
    others = set(modules) - {*PACKAGES, *sys.stdlib_module_names}
    return {
        canonicalize_name(distribution)
        for module in others
        for distribution in known.get(module, [module])
    }


_packages_distributions = cache(packages_distributions)


def public_names(root: Path) -> dict[str, str]:
    """Return the public names of the library, each with the module that has it."""
    stub = root / "course_lib" / "__init__.pyi"
    if not stub.is_file():
        return {}
    return {
        alias.name: str(statement.module)
        for statement in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def imported_modules(sources: Iterable[str], root: Path) -> list[Path]:
    """Return the course's files that some code imports, directly or not."""
    public = public_names(root)
    found: set[Path] = set()
    new = {
        file
        for source in sources
        for name in _names(ast.parse(source), (), public)
        for file in _files(name, root)
    }
    while new:
        found |= new
        names = {name for file in new for name in _code(file, root).names}
        new = {file for name in names for file in _files(name, root)} - found
    return sorted(found)


class _Code(NamedTuple):
    """What a module does, by its digest, and the names that it imports."""

    digest: str
    names: frozenset[Name]


def _code(file: Path, root: Path) -> _Code:
    files = (file, root / "course_lib" / "__init__.pyi")
    return _code_of(file, root, *(one.read_bytes() for one in files if one.is_file()))


@lru_cache(maxsize=2048)
def _code_of(file: Path, root: Path, *texts: bytes) -> _Code:
    package = file.parent.relative_to(root).parts
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = frozenset(_names(tree, package, public_names(root)))
    return _Code(digest_of_code([file]), names)


def _names(tree: ast.AST, package: Name, public: dict[str, str]) -> Iterator[Name]:
    """Yield the dotted names that code imports, public names at their home."""
    library = {"course_lib"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
                if alias.name == "course_lib" and alias.asname:
                    library.add(alias.asname)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = (*above, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                if base == ("course_lib",) and alias.name == "*":
                    yield from (tuple(home.split(".")) for home in public.values())
                yield _home((*base, alias.name), public)
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    for part in parts:  # course_lib.BertModel, wherever it is imported
        owner = part.value.id if isinstance(part.value, ast.Name) else ""
        if owner in library and part.attr in public:
            yield _home(("course_lib", part.attr), public)


def _home(name: Name, public: dict[str, str]) -> Name:
    if len(name) == 2 and name[0] == "course_lib" and name[1] in public:
        return tuple(public[name[1]].split("."))
    return name


def _files(name: Name, root: Path) -> Iterator[Path]:
    """Yield the files that a dotted name imports, with `__init__` above."""
    if name[0] not in PACKAGES:
        return
    folder = root
    for part in name:
        if (module := folder / f"{part}.py").is_file():
            yield module
        folder = folder / part
        if (module := folder / "__init__.py").is_file():
            yield module


def digest_of_files(paths: Iterable[Path]) -> str:
    """Name the state of files, folders and this Python by 64 hex digits; what tools
    leave in a folder, such as `.ruff_cache`, is not of it."""
    digest = hashlib.sha256(sys.version.encode())
    for top in paths:
        inside = [path for path in top.rglob("*") if path.is_file()]
        files = [top] if top.is_file() else inside
        for file in sorted(path for path in files if not _left(path, top)):
            digest.update(f"{file.relative_to(top.parent).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _left(path: Path, top: Path) -> bool:
    parts = path.relative_to(top).parts
    return any(part.startswith(".") or part == "__pycache__" for part in parts)
