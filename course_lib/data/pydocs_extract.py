"""Where the text of `pydocs` comes from: docstrings in the source files of installed
packages, and `pydoc`'s topics.

Source files are parsed, never imported: an import runs code, needs optional
dependencies and may change what other imports see. What C code documents itself is out
of reach, save where a package keeps those docstrings in a Python file
(`numpy/_core/_add_newdocs.py`, `torch/_torch_docs.py`, ...): they are read there.
"""

import ast
import gc
import inspect
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

# Folders that hold no documentation of the package itself: tests, and copies of other
# packages.
SKIPPED = frozenset(
    {
        "tests",
        "test",
        "_internal",
        "_vendor",
        "vendor",
        "_vendored",
        "externals",
        "extern",
        "__pycache__",
    }
)
# Parts of the standard library that some systems package separately: with them, the
# corpus would depend on the system.
OPTIONAL = frozenset(
    {
        "distutils",
        "ensurepip",
        "idlelib",
        "lib2to3",
        "pydoc_data",
        "tkinter",
        "turtledemo",
        "venv",
    }
)
# Distributions whose folder has another name, or that have a second one.
FOLDERS = {
    "fonttools": ("fontTools",),
    "pillow": ("PIL",),
    "python-dateutil": ("dateutil",),
    "scikit-learn": ("sklearn",),
    "matplotlib": ("matplotlib", "mpl_toolkits"),
}
# Functions that attach a docstring, given as text, to something that C code defines.
ATTACHING = frozenset({"add_docstr", "_add_docstr", "add_docstr_all", "add_newdoc"})


class Docstring(NamedTuple):
    """One docstring as its author wrote it, and what it belongs to: a module, class,
    function or method."""

    module: str
    owner: str
    text: str

    @property
    def title(self) -> str:
        """The outermost class or function it belongs to, or the module."""
        outermost = self.owner.split(".")[0]
        return f"{self.module}.{outermost}" if outermost else self.module


def docstrings(package: str) -> Iterator[Docstring]:
    """Yield the docstrings of an installed package: modules by name, in a module as
    they stand in its source."""
    if package == "python":
        for name in sorted(sys.stdlib_module_names - SKIPPED - OPTIONAL):
            yield from _of_folder(Path(sysconfig.get_path("stdlib")), name)
        yield from _topics()
    else:
        root = installed_folder(package).parent
        for name in FOLDERS.get(package, (package,)):
            yield from _of_folder(root, name)


def installed_folder(package: str) -> Path:
    """Return the folder of an installed package without importing it."""
    try:
        folder = Path(
            str(distribution(package).locate_file(FOLDERS.get(package, (package,))[0]))
        )
    except PackageNotFoundError:
        folder = None
    if folder is None or not folder.is_dir():
        raise ModuleNotFoundError(
            f"pydocs is made from the documentation of {package}, which is not"
            f" installed; run: pip install {package}"
        )
    return folder


def _of_folder(root: Path, name: str) -> Iterator[Docstring]:
    """Docstrings of the module or package `name` under `root`, in the order of the
    modules' dotted names."""
    files = [root / f"{name}.py", *(root / name).rglob("*.py")]
    modules = {}
    for file in files:
        parts = file.relative_to(root).with_suffix("").parts
        if file.is_file() and not SKIPPED.intersection(parts):
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    for module in sorted(modules):
        for owner, text in in_source(
            modules[module].read_bytes(), str(modules[module])
        ):
            yield Docstring(module, owner, text)


def in_source(source: bytes, where: str = "<source>") -> Iterator[tuple[str, str]]:
    """Yield the owner ("" for the module, "Class.method") and the text of each
    docstring in Python source."""
    yield from _in_body(_parse(source, where), "")


def _parse(source: bytes, where: str) -> ast.Module:
    collecting = gc.isenabled()
    # a tree is many new objects and no garbage: looking for some takes half of the time
    gc.disable()
    try:
        with warnings.catch_warnings():
            # of escapes and comparisons in other people's source
            warnings.simplefilter("ignore")
            return ast.parse(source, where)
    finally:
        if collecting:
            gc.enable()


def _in_body(node: ast.AST, owner: str) -> Iterator[tuple[str, str]]:
    if isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ):
        text = ast.get_docstring(node)
        if text:
            yield owner, text
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
    for child in _statements(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _in_body(child, f"{owner}.{child.name}".lstrip("."))
        elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
            yield from _attached(child.value)
        elif isinstance(child, ast.If | ast.Try | ast.With | ast.For | ast.While):
            yield from _in_body(child, owner)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for block in ("body", "orelse", "finalbody"):
        yield from getattr(node, block, ())
    for handler in getattr(node, "handlers", ()):
        yield from handler.body


def _attached(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Docstrings that a call such as add_newdoc('numpy', 'ndarray', ('sum', "..."))
    attaches."""
    function = (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else getattr(call.func, "id", "")
    )
    if function not in ATTACHING or len(call.args) < 2:
        return
    *target, text = call.args
    name = ".".join(ast.unparse(part).strip("'\"") for part in target).split(".")[-1]
    for part in text.elts if isinstance(text, ast.List) else [text]:
        if isinstance(part, ast.Tuple) and len(part.elts) == 2:
            name, part = ast.unparse(part.elts[0]).strip("'\""), part.elts[1]
        # "...".format(**common_args): the text without its substitutions
        while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            part = part.func.value
        while isinstance(part, ast.BinOp):
            part = part.left
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield name, inspect.cleandoc(part.value)


def _topics() -> Iterator[Docstring]:
    from pydoc_data.topics import topics

    for name in sorted(topics):
        yield Docstring("pydoc_data.topics", name, topics[name])
