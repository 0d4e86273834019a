"""Notebooks as files: a stranger's, and the released ones.

A student's notebook may come from any tool and any year, so it is taken in every
nbformat; and from a stranger, so it has bounds, and of what it says beside its text no
more is kept than grading needs.
"""

import json
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode, v4
from nbgrader.utils import compute_checksum

from course_tools.grading.check.check_structure import by_name
from course_tools.grading.run.reader import CannotRead
from course_tools.grading.shown import shown

#: Bounds of a notebook: bytes of the file, cells, characters of a cell, of the metadata
#: of one, and depth of nesting.
LARGEST, CELLS, CELL, METADATA, DEEPEST = 20 * 2**20, 5_000, 10**6, 10**5, 100
#: What is kept of nbgrader's metadata, where it is plain and short.
MARKS = {"grade", "solution", "locked", "task", "points", "cell_type", "grade_id"}
MARKS |= {"checksum", "schema_version"}
LONGEST_MARK = 200
PICTURES = ("image/png", "image/jpeg", "image/gif")


class CannotCheck(CannotRead):
    """There is nothing to check, or nothing to check it with; the text says why."""


def open_notebook(text: str, name: str) -> NotebookNode:
    """Take a stranger's text for a notebook."""
    notebook = parse_notebook(text, name)
    cells = [_plain(cell, f"own-{n}") for n, cell in enumerate(notebook.cells)]
    return v4.new_notebook(cells=cells)


def _plain(cell: NotebookNode, name: str) -> NotebookNode:
    """Made by hand: nbformat's own makers check each cell, ten times the time, and
    every part of this one is known."""
    kept = NotebookNode()
    marks, tags = cell.metadata.get("nbgrader"), cell.metadata.get("tags")
    if isinstance(marks, dict) and isinstance(marks.get("grade_id"), str):
        known = {n: v for n, v in marks.items() if n in MARKS and _short(v)}
        kept.nbgrader = NotebookNode(known)
    if isinstance(tags, list):
        kept.tags = [tag for tag in tags if isinstance(tag, str) and _short(tag)]
    kind = cell.cell_type if cell.cell_type in ("code", "markdown") else "raw"
    plain = NotebookNode(id=name, cell_type=kind, metadata=kept, source=cell.source)
    if kind == "code":
        plain.update(execution_count=None, outputs=[])
    attached = cell.get("attachments")
    if kind == "markdown" and isinstance(attached, dict):
        pictures = {
            name: {k: v for k, v in of.items() if k in PICTURES and isinstance(v, str)}
            for name, of in attached.items()
            if isinstance(of, dict)
        }
        plain.attachments = {name: of for name, of in pictures.items() if of}
    return plain


def _short(value: object) -> bool:
    plain = isinstance(value, str | int | float)
    return plain and len(str(value)) <= LONGEST_MARK


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook of any nbformat as version 4."""
    return parse_notebook(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Read the text of a notebook's file."""
    if path.is_dir():
        raise CannotCheck(
            f"{path} is a folder. Name the notebook in it, e.g."
            f" {path / 'attention.ipynb'}."
        )
    if not path.is_file():
        raise CannotCheck(
            f"There is no file {path} here. Name your notebook, e.g. attention.ipynb,"
            " where it lies or in the folder above."
        )
    if path.stat().st_size > LARGEST:
        raise CannotCheck(
            f"{path} is larger than {LARGEST // 2**20} MiB. Clear its outputs and save"
            " it again."
        )
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotCheck(
            f"{path} cannot be read as text ({error}). Save your notebook again as"
            " .ipynb."
        ) from error


def parse_notebook(text: str, path: str) -> NotebookNode:
    """Take text for a notebook of any nbformat, as version 4."""
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise CannotCheck(
            f"{path} is nested too deeply. Save it again from Jupyter."
        ) from error
    except ValueError as error:  # no JSON, or a number of thousands of digits
        raise CannotCheck(
            f"{path} is not a notebook: it is not JSON ({error}). Save it again from"
            " Jupyter."
        ) from error
    if not isinstance(content, dict) or "nbformat" not in content:
        raise CannotCheck(
            f"{path} is JSON, but no notebook: it names no nbformat. Save it again from"
            " Jupyter."
        )
    if beyond := _beyond_bounds(content):
        raise CannotCheck(
            f"{path} has {beyond}. Save what you need of it in a fresh copy of the"
            " released notebook."
        )
    # JSON can spell half a character, which no file and no database takes
    whole = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace").decode()
    try:
        invalid: dict[str, Exception] = {}
        notebook = nbformat.reads(whole, as_version=4, capture_validation_error=invalid)
        for fault in invalid.values():
            raise fault
    # nbformat raises whatever its converters meet in a broken file
    except Exception as error:
        first_line = shown(str(error).strip().partition("\n")[0])
        raise CannotCheck(
            f"{path} is a broken notebook: {first_line}. Save it again from Jupyter."
        ) from error
    return nbformat.from_dict(notebook)  # a notebook of format 3 has a class of its own


def _beyond_bounds(content: dict[str, Any]) -> str:
    """Say which bound a notebook exceeds, its outputs taken away."""
    listed = content.get("cells")
    cells = listed if isinstance(listed, list) else []
    cells = [cell for cell in cells if isinstance(cell, dict)]
    if len(cells) > CELLS:
        return f"more than {CELLS:,} cells"
    for cell in cells:
        if isinstance(cell.get("outputs"), list):
            cell["outputs"] = []
        source = cell.get("source")
        lines = source if isinstance(source, list) else [source]
        if sum(len(line) for line in lines if isinstance(line, str)) > CELL:
            return f"a cell of more than {CELL:,} characters"
    if isinstance(content.get("metadata"), dict):
        # what sliders showed: megabytes, and nobody reads it here
        content["metadata"].pop("widgets", None)
    waiting: list[tuple[Any, int]] = [(content, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEEPEST:
            return f"values nested more than {DEEPEST} deep"
        inside = value.values() if isinstance(value, dict) else value
        waiting += [(one, depth + 1) for one in inside if isinstance(one, dict | list)]
    metadata = [about.get("metadata") for about in (content, *cells)]
    if any(len(json.dumps(about)) > METADATA for about in metadata):
        return f"more than {METADATA:,} characters of metadata in one place"
    return ""


def read_released(path: Path) -> NotebookNode:
    """Read a released notebook, whose cells must still be what their checksums say."""
    released = read_notebook(path)
    for name, cell in by_name(released.cells).items():
        if compute_checksum(cell) != cell.metadata.nbgrader.get("checksum"):
            raise CannotCheck(
                f"{path} is not as it was released: {name} has been changed, so your"
                " work cannot be compared with it. Keep your work under another path,"
                f" then get the released notebook back: git restore {path.name}"
            )
    return released
