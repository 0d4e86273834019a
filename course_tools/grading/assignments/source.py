"""From an assignment's source to the notebook that nbgrader reads.

``solutions/<name>/<name>.py`` (py:percent, what people edit) becomes
``solutions/<name>/<name>.ipynb`` (a build product). The steps are pure functions of the
text, so the same source gives the same bytes on every machine: points in prose are
filled in from the cells' metadata, library functions named by a placeholder are copied
in, so are cells of other assignments (the capstone is made of them), files that the
assignment ships are named by their checksum, and cells get ids that depend on nothing
but their place. Taking solutions out is the business of
:mod:`course_tools.grading.assignments.release`.
"""

import ast
import copy
import hashlib
import importlib.util
import re
import shutil
import textwrap
from functools import lru_cache
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution

from course_tools.grading.assignments.checks import MARKED_BY, with_checks
from course_tools.grading.assignments.comparisons import with_comparisons
from course_tools.grading.assignments.editions import EDITION

POINTS = re.compile(r"\{points:([a-z0-9-]+)\}")
SHA256 = re.compile(r"\{sha256:([\w.-]+)\}")
SOURCE = re.compile(r"^# \{source:([a-z_.]+)\.([a-z_]+)\}$", re.MULTILINE)
PARTS = "# {parts}"
#: What ``{set-up}`` stands for in the text of every assignment.
SET_UP = (
    "**Set-up.** On your machine, type `make student` in the folder of the course: in"
    " about two minutes it installs what you\nneed and opens copies of all assignments"
    " that are yours to work in. Without `make`, type the commands that the book's\n"
    "page *Set-up* shows first. On Colab you can start at once, but the command"
    " `course` is not there."
)
MARK = re.compile(r"\s*### (BEGIN|END) SOLUTION")


class AssignmentError(Exception):
    """A source or release is not as it must be; the message lists what to mend."""


def points_of(notebook: NotebookNode, part: str) -> float:
    """Sum the points of one part."""
    points = [
        cell.metadata.nbgrader.points
        for cell in notebook.cells
        if is_grade(cell)
        if part == "total"
        or f"{cell.metadata.nbgrader.grade_id}-".startswith(f"{part}-")
    ]
    if not points:
        raise AssignmentError(
            f"{{points:{part}}}: no graded cell has a grade_id that starts with {part}-"
        )
    return float(sum(points))


def parse_source(path: Path) -> NotebookNode:
    """Read a py:percent source as a notebook, placeholders still in it."""
    if not path.is_file():
        where = "an assignment's source is solutions/<name>/<name>.py"
        raise AssignmentError(f"{path} does not exist; {where}")
    return copy.deepcopy(_of_text(path.read_text(encoding="utf-8")))


@lru_cache(maxsize=64)
def _of_text(text: str) -> NotebookNode:
    """Read the text of a source, once: jupytext takes its time."""
    return jupytext.reads(text, fmt="py:percent")


def read_source(path: Path) -> NotebookNode:
    """Read a py:percent source as a notebook, placeholders filled in."""
    notebook = parse_source(path)
    notebook.metadata.pop("jupytext", None)
    notebook.metadata["language_info"] = {"name": "python"}
    about = notebook.metadata.setdefault("course", {})
    about["edition"], withheld = EDITION, about.get("withholds", [])
    for number, cell in enumerate(notebook.cells):
        mark, text = cell.metadata.get("nbgrader", {}), cell.source
        cell["id"] = mark.get("grade_id", f"text-{number:03d}")
        if cell.cell_type == "markdown":
            text = POINTS.sub(lambda match: f"{points_of(notebook, match[1]):g}", text)
            names = ", ".join(f"`{name}`" for name in withheld)
            text = text.replace("{withholds}", names).replace("{set-up}", SET_UP)
            text = text.replace("{marked-by}", MARKED_BY)
        else:
            text = text.replace("{withholds}", '",\n    "'.join(withheld))
            text = with_comparisons(with_library_sources(text), path)
            text = with_checks(text, path, float(mark.get("points", 0)))
            text = SHA256.sub(lambda match: _checksum(path.parent / match[1]), text)
            if parts_of(cell):
                text = text.replace(PARTS, joined_parts(cell, path.parents[1]))
        cell.source = text
    return notebook


def parts_of(cell: NotebookNode) -> list[tuple[str, str]]:
    """Name the (assignment, ``grade_id``) of the cells that a cell is made of."""
    parts = [entry.partition("/") for entry in cell.metadata.get("parts", [])]
    return [(name, part) for name, _, part in parts]


def others(notebook: NotebookNode) -> list[str]:
    """Name the assignments that an assignment has parts of, in alphabetical order."""
    return sorted({name for cell in notebook.cells for name, _ in parts_of(cell)})


def joined_parts(cell: NotebookNode, solutions: Path) -> str:
    """Join the instructor's cells that a cell is made of, without marks."""
    names = {name for name, _ in parts_of(cell)}
    sources = {name: read_source(solutions / name / f"{name}.py") for name in names}
    texts = []
    for name, part in parts_of(cell):
        found = [c.source for c in sources[name].cells if c["id"] == part]
        if len(found) != 1:
            raise AssignmentError(
                f"parts of {cell.metadata.nbgrader.grade_id}: {name} has no cell {part}"
            )
        lines = [line for line in found[0].splitlines() if not MARK.match(line)]
        texts.append("\n".join(lines).strip())
    return "\n\n\n".join(texts)


def with_library_sources(source: str) -> str:
    """Put library functions in the place of ``# {source:module.function}``."""
    return SOURCE.sub(lambda match: _library_source(match[1], match[2]), source)


def _library_source(module: str, name: str) -> str:
    """The library's own text of a function, so that a notebook cannot drift."""
    asked = f"{{source:{module}.{name}}}"
    try:
        spec = importlib.util.find_spec(module)
    except ImportError as error:
        raise AssignmentError(f"{asked}: {error}") from error
    if spec is None or spec.origin is None:
        raise AssignmentError(f"{asked}: there is no module {module}")
    # read, not imported: the grader, which needs no torch, would wait for it
    text = Path(spec.origin).read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            first = min(part.lineno for part in [node, *node.decorator_list])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise AssignmentError(f"{asked}: module {module} defines no {name}")


def is_demonstration(cell: NotebookNode) -> bool:
    """Tell a cell that shows something at length, and carries no points."""
    return "demonstration" in cell.metadata.get("tags", [])


def with_idle_demonstrations(notebook: NotebookNode) -> NotebookNode:
    """Copy a notebook with demonstrations that do nothing."""
    copy = nbformat.from_dict(notebook)
    for cell in copy.cells:
        if is_demonstration(cell):
            cell.source = f"if False:\n{textwrap.indent(cell.source, '    ')}\n    pass"
    return copy


def answered(released: NotebookNode, solved: NotebookNode) -> NotebookNode:
    """Put a solved notebook's answers into a copy of the released one."""
    given = [cell for cell in solved.cells if is_solution(cell)]
    answers = {cell.metadata.nbgrader.grade_id: cell.source for cell in given}
    copy = nbformat.from_dict(released)
    for cell in filter(is_solution, copy.cells):
        cell.source = answers[cell.metadata.nbgrader.grade_id]
    return copy


def copy_idle(name: str, root: Path, course: Path) -> list[str]:
    """Copy a source, with idle demonstrations, and what it ships to a folder."""
    parsed = parse_source(root / "solutions" / name / f"{name}.py")
    place = course / "solutions" / name
    place.mkdir(parents=True)
    idle = with_idle_demonstrations(parsed)
    jupytext.write(idle, place / f"{name}.py", fmt="py:percent")
    own = root / "solutions" / name
    tests = [*own.glob("hidden.py"), *own.glob("checks.py")]
    for file in [*(own / ship for ship in ships(parsed)), *tests]:
        shutil.copy(file, place)
    return ships(parsed)


def ships(notebook: NotebookNode) -> list[str]:
    """Name the files handed out beside a notebook (``course: ships:``)."""
    return list(notebook.metadata.get("course", {}).get("ships", []))


def _checksum(path: Path) -> str:
    if not path.is_file():
        raise AssignmentError(f"{{sha256:{path.name}}}: {path} does not exist")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook the way nbgrader's exporter does, so that bytes compare."""
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
