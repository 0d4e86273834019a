"""Pages of the book that are written from code before it is built: API reference, data,
mutants, closing ledgers."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import course_lib
from course_lib._files import digest_of_code, write_whole
from course_tools.site.key import digest_of_files, imported_modules

__all__ = [
    "public_modules",
    "write_api_pages",
    "write_data_cards",
    "write_generated_pages",
]


def write_generated_pages(root: Path) -> None:
    """Write every generated page but the data cards afresh under `book/_generated`."""
    generated = root / "book" / "_generated"
    write_api_pages(generated / "api", root)
    _write_mutants_pages(generated / "mutants", root)
    _write_ledgers(generated / "ledger", root)
    _write_recorded_of_graders(generated / "grading")


def _write_mutants_pages(folder: Path, root: Path) -> None:
    """Write what caught every assignment's known wrong answers, as recorded."""
    from course_tools.grading.assignments.mutants_page import mutants_page
    from course_tools.grading.assignments.release import assignments

    _replace(
        folder, {f"{name}.md": mutants_page(name, root) for name in assignments(root)}
    )


def _write_ledgers(folder: Path, root: Path) -> None:
    """Write claims, coverage and deviations as the library states them; live figures
    are filled in by the build."""
    from course_tools.claims.pages import pages

    _replace(folder, pages(root / "book"))


def _write_recorded_of_graders(folder: Path) -> None:
    """Write for the instructor's guide how fast graders were recorded to be, and what
    attacks got from them."""
    from course_tools.site.red_team_page import red_team
    from course_tools.site.throughput_page import throughput

    _replace(folder, {"throughput.inc.md": throughput(), "red_team.inc.md": red_team()})


def write_data_cards(root: Path) -> None:
    """Let the loaders describe their data sets, under `book/_generated`, unless no code
    that is behind them changed."""
    from course_lib.data.cards import write_cards

    folder, key = root / "book" / "_generated" / "data", data_cards_key(root)
    made_from = folder.with_name(".data-cards")
    if (
        folder.is_dir()
        and made_from.is_file()
        and made_from.read_text(encoding="utf-8") == key
    ):
        return
    made_from.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        pages = {
            card.name: card.read_text(encoding="utf-8")
            for card in write_cards(Path(fresh))
        }
    _replace(folder, pages)
    write_whole(made_from, key)


def data_cards_key(root: Path) -> str:
    """Name the state of what the data cards are made from."""
    code = digest_of_code(imported_modules(["import course_lib.data.cards"], root))
    files = [
        path
        for path in (root / "course_lib" / "data").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    return f"{code} {digest_of_files([*sorted(files), root / 'constraints.txt'])}"


def write_api_pages(folder: Path, root: Path) -> list[str]:
    """Write one page a public module, from which Sphinx lays out its docstrings."""
    order = course_order(root)
    modules = sorted(
        public_modules(),
        key=lambda module: order.index(_short(module).partition(".")[0]),
    )
    home = _homes(modules)
    pages = {f"{_short(module)}.md": _page(module, home) for module in modules}
    pages["_table.inc.md"] = "\n".join(
        f"- {{doc}}`/_generated/api/{_short(module)}`: {_summary(module)}"
        for module in modules
    )
    _replace(folder, pages)
    return [module.__name__ for module in modules]


def public_modules() -> Iterator[ModuleType]:
    """Import and yield each module of the library that has no leading underscore."""
    yield course_lib
    for found in pkgutil.walk_packages(course_lib.__path__, "course_lib."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield importlib.import_module(found.name)


def _short(module: ModuleType) -> str:
    return module.__name__.removeprefix("course_lib.")


@functools.cache
def course_order(root: Path) -> tuple[str, ...]:
    """The library's packages in the order of the course, which `pyproject.toml` holds
    as a contract of imports: first the chapters, then what serves them."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["course_lib"]
    )
    chapters = [layer for layer in layers if "|" not in layer]
    services = [name for layer in layers if "|" in layer for name in layer.split(" | ")]
    return ("course_lib", *reversed(chapters), *services)


def _summary(module: ModuleType) -> str:
    """A module's first sentence, which its docstring has in reStructuredText, in
    Markdown."""
    if not module.__doc__:
        raise ValueError(
            f"{module.__name__} has no docstring; its first line is its line in the API"
            " reference"
        )
    summary = module.__doc__.strip().split("\n\n")[0].replace("\n", " ")
    return re.sub(r":(\w+):`", r"{\1}`", summary)  # a role as Markdown writes it


def _page(module: ModuleType, home: dict[int, str]) -> str:
    elsewhere = [
        name
        for name, thing in _public_objects(module)
        if home[id(thing)] != module.__name__
    ]
    options = [
        "members:",
        "show-inheritance:",
        *([f"exclude-members: {', '.join(elsewhere)}"] if elsewhere else []),
    ]
    directive = "\n".join(
        [f".. automodule:: {module.__name__}", *(f"   :{option}" for option in options)]
    )
    return f"# `{module.__name__}`\n\n```{{eval-rst}}\n{directive}\n```\n"


def _homes(modules: Iterable[ModuleType]) -> dict[int, str]:
    """Say under which module each function and class is described, so that none is
    described twice."""
    home: dict[int, str] = {}
    for module in sorted(modules, key=lambda module: not hasattr(module, "__path__")):
        for _, thing in _public_objects(module):
            if hasattr(module, "__path__"):
                home.setdefault(id(thing), module.__name__)
            else:
                home.setdefault(id(thing), thing.__module__)
    return home


def _public_objects(module: ModuleType) -> list[tuple[str, Any]]:
    """Return a module's functions and classes: those in `__all__`, or else those that
    it defines and does not hide."""
    found = []
    for name, thing in vars(module).items():
        if not (inspect.isfunction(thing) or inspect.isclass(thing)):
            continue
        own = not name.startswith("_") and thing.__module__ == module.__name__
        if name in getattr(module, "__all__", ()) or (
            own and not hasattr(module, "__all__")
        ):
            found.append((name, thing))
    return found


def _replace(folder: Path, pages: dict[str, str]) -> None:
    """Make a folder hold these pages and no others, and touch only what changes: Sphinx
    reads modified files again."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.name not in pages:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
