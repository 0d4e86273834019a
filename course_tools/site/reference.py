"""The library's reference: public names in order, with the pages that teach them.

Everything comes from the stub `course_lib/__init__.pyi`, whose comments are the
sections, from the docstrings, and from the book's own text.
"""

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from course_tools.site.key import cells_of

CHAPTER = re.compile(r"Chapter (\d+)")
INCLUDED = re.compile(
    r"^`{3,}\{literalinclude\} \.\./(\S+)\.py\n(?:[^`].*\n)*?:pyobject: (\w+)", re.M
)
ROLE = re.compile(r"\{py:\w+\}`(?:[^`<]*<)?~?(course_lib[\w.]*)>?`")
TABLE = "| name | what it is | page |\n| --- | --- | --- |"


@dataclass(frozen=True)
class Section:
    """Public names, each with its module, under a comment of the stub."""

    title: str
    names: dict[str, str] = field(default_factory=dict)

    @property
    def chapter(self) -> int | None:
        """The number of the chapter, unless the names serve all of them."""
        found = CHAPTER.match(self.title)
        return int(found[1]) if found else None

    @property
    def page(self) -> str:
        """The name of its page in the reference."""
        return "services" if self.chapter is None else f"chapter-{self.chapter:02d}"


@functools.cache
def sections(stub: Path) -> list[Section]:
    """Read the public names from the stub, section by section."""
    text = stub.read_text(encoding="utf-8")
    starts = {
        number: line.removeprefix("# ")
        for number, line in enumerate(text.splitlines(), start=1)
        if line.startswith("# ")
    }
    found = {number: Section(title) for number, title in starts.items()}
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.ImportFrom):
            start = max(number for number in starts if number < statement.lineno)
            for alias in statement.names:
                found[start].names[alias.name] = str(statement.module)
    return list(found.values())


def taught_in(root: Path) -> dict[str, str]:
    """Say which page teaches each public name: one that shows it, or its chapter."""
    stub = root / "course_lib" / "__init__.pyi"
    if not stub.is_file():
        return {}
    pages = sorted((root / "book").glob("*.md"))
    texts = {page.stem: page.read_text(encoding="utf-8") for page in pages}
    shown = {page: _shown(text) for page, text in texts.items()}
    linked = {page: set(ROLE.findall(text)) for page, text in texts.items()}
    imported = {page: _imported(text) for page, text in texts.items()}
    found = {}
    for section in sections(stub):
        own = [
            page for page in texts if page.startswith(f"{section.chapter or 0:02d}-")
        ]
        for name, module in section.names.items():
            full = f"{module}.{name}"
            candidates = [
                *(page for page in [*own, *texts] if full in shown[page]),
                *own,
                *(page for page in texts if full in linked[page]),
                *(page for page in texts if name in imported[page]),
            ]
            if candidates:
                found[full] = candidates[0]
    return found


def _shown(page: str) -> set[str]:
    """Return the full names of what a page includes."""
    included = INCLUDED.findall(page)
    return {f"{module.replace('/', '.')}.{name}" for module, name in included}


@functools.cache
def _imported(page: str) -> set[str]:
    """Return the names that a page's cells import from the library."""
    return {
        alias.name
        for node in ast.walk(ast.parse(cells_of(page)))
        if isinstance(node, ast.ImportFrom)
        and f"{node.module}.".startswith("course_lib.")
        for alias in node.names
    }


def reference_pages(root: Path) -> dict[str, str]:
    """Write the pages of the reference, and the table of all names, by file name."""
    teach = taught_in(root)
    pages, table = {}, []
    for section in sections(root / "course_lib" / "__init__.pyi"):
        entries = "\n\n".join(_entries(section, teach))
        body = f"# {section.title}\n\n```{{eval-rst}}\n{entries}\n```\n"
        pages[f"{section.page}.md"] = body
        link = f"## {{doc}}`{section.title} </_generated/api/{section.page}>`"
        table += [link, f"{TABLE}\n" + "\n".join(_rows(section, teach))]
    return {**pages, "_table.inc.md": "\n\n".join(table) + "\n"}


def _entries(section: Section, teach: dict[str, str]) -> Iterator[str]:
    for name, module in section.names.items():
        full = f"{module}.{name}"
        if inspect.isclass(_public(name, module)):
            yield f".. autoclass:: {full}\n   :members:\n   :show-inheritance:"
        else:
            yield f".. autofunction:: {full}"
        if full in teach:
            yield f"   Taught in :doc:`/{teach[full]}`."


def _rows(section: Section, teach: dict[str, str]) -> Iterator[str]:
    for name, module in section.names.items():
        full = f"{module}.{name}"
        page = _link(teach[full]) if full in teach else ""
        summary = _summary(_public(name, module)).replace("|", "\\|")
        yield f"| {{py:obj}}`{name} <{full}>` | {summary} | {page} |"


def _link(page: str) -> str:
    """Link to a page of the book, to a chapter by its number."""
    number = page.partition("-")[0]
    text = f"chapter {int(number)}" if number.isdigit() else page
    return f"{{doc}}`{text} </{page}>`"


def _public(name: str, module: str) -> object:
    return getattr(importlib.import_module(module), name)


def _summary(thing: object) -> str:
    """A docstring's first paragraph, which is reStructuredText, in Markdown."""
    summary = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return re.sub(r":(?:py:)?(\w+):`", r"{py:\1}`", summary)
