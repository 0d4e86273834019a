"""Notebooks as files: what is read of one that anybody may have made, and the released
ones.

A student's notebook may come from any tool and any year, so it is taken in every
nbformat; and from a stranger, so it has bounds, and of what it says beside its text no
more is kept than grading needs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import compute_checksum

from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.run.reader import CannotRead
from course_tools.grading.shown import shown

#: Bounds of a notebook: bytes of the file, cells, characters of a cell, of the metadata
#: of one, and depth of nesting.
LARGEST, CELLS, CELL, METADATA, DEEPEST = 20 * 2**20, 5_000, 10**6, 10**5, 100
#: What is kept of nbgrader's metadata, where it is plain and short.
MARKS = (
    "grade",
    "solution",
    "locked",
    "task",
    "points",
    "cell_type",
    "grade_id",
    "checksum",
    "schema_version",
)
LONGEST_MARK = 200
PICTURES = ("image/png", "image/jpeg", "image/gif")


class CannotCheck(CannotRead):
    """There is nothing to check, or nothing to check it with; the message says why and
    what to do."""


def open_notebook(text: str, name: str) -> NotebookNode:
    """Take a stranger's text for a notebook."""
    notebook = parse_notebook(text, name)
    return nbformat.v4.new_notebook(
        cells=[_plain(cell, f"own-{n}") for n, cell in enumerate(notebook.cells)]
    )


def _plain(cell: NotebookNode, name: str) -> NotebookNode:
    kept: dict[str, Any] = {}
    marks = cell.metadata.get("nbgrader")
    if isinstance(marks, dict) and isinstance(marks.get("grade_id"), str):
        short = {
            key: marks[key]
            for key in MARKS
            if isinstance(marks.get(key), str | int | float)
        }
        kept["nbgrader"] = {
            key: value
            for key, value in short.items()
            if len(str(value)) <= LONGEST_MARK
        }
    tags = cell.metadata.get("tags")
    if isinstance(tags, list):
        kept["tags"] = [
            tag for tag in tags if isinstance(tag, str) and len(tag) <= LONGEST_MARK
        ]
    make = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
    }
    plain = make.get(cell.cell_type, nbformat.v4.new_raw_cell)(
        cell.source, metadata=kept
    )
    if cell.cell_type == "markdown" and isinstance(cell.get("attachments"), dict):
        pictures = {
            name: _pictures(of)
            for name, of in cell.attachments.items()
            if isinstance(of, dict)
        }
        plain.attachments = {name: of for name, of in pictures.items() if of}
    plain.id = name
    return plain


def _pictures(attachment: dict[str, Any]) -> dict[str, str]:
    return {
        kind: data
        for kind, data in attachment.items()
        if kind in PICTURES and isinstance(data, str)
    }


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
            f"There is no file {path} here. Give the path of your notebook, e.g."
            " attention.ipynb."
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
    text = (
        json.dumps(content, ensure_ascii=False)
        .encode("utf-8", "replace")
        .decode("utf-8")
    )
    try:
        invalid: dict[str, Exception] = {}
        notebook = nbformat.reads(text, as_version=4, capture_validation_error=invalid)
        for fault in invalid.values():
            raise fault
    except (
        Exception
    ) as error:  # nbformat raises whatever its converters meet in a broken file
        first_line = shown(str(error).strip().partition("\n")[0])
        raise CannotCheck(
            f"{path} is a broken notebook: {first_line}. Save it again from Jupyter."
        ) from error
    return nbformat.from_dict(notebook)  # a notebook of format 3 has a class of its own


def _beyond_bounds(content: dict[str, Any]) -> str:
    """Say in words which bound a notebook goes beyond, after its outputs, which may be
    large, are taken away."""
    listed = content.get("cells")
    cells = (
        [cell for cell in listed if isinstance(cell, dict)]
        if isinstance(listed, list)
        else []
    )
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
        waiting += [
            (each, depth + 1) for each in inside if isinstance(each, dict | list)
        ]
    of_cells = (
        [cell.get("metadata") for cell in cells or [] if isinstance(cell, dict)]
        if isinstance(cells, list)
        else []
    )
    if any(
        len(json.dumps(about)) > METADATA
        for about in [content.get("metadata"), *of_cells]
    ):
        return f"more than {METADATA:,} characters of metadata in one place"
    return ""


def read_released(path: Path) -> NotebookNode:
    """Read a released notebook, whose cells must still be what their checksums say."""
    released = read_notebook(path)
    for cell in released.cells:
        if (name := grade_id(cell)) and compute_checksum(
            cell
        ) != cell.metadata.nbgrader.get("checksum"):
            raise CannotCheck(
                f"{path} is not as it was released: {name} has been changed, so your"
                " work cannot be compared with it. Keep your work under another path,"
                f" then get the released notebook back: git restore {path.name}"
            )
    return released
