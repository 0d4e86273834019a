"""A small assignment on tensors, and one class in which every attack of ``attacks/``
hands in beside an honest student.

A file there says in its docstring what it tries. It may give: ``SCALE`` and ``COUNT``,
answers to the two questions (else the right ones); ``change(notebook)``;
``write(folder, text, root)`` in place of a plain file; ``EXPECTED``, marks where they
are not full; ``PROBLEM``, ``NOTE``, ``TAMPERING``, words that the instructor must be
told.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import nbformat
import psutil
from classroom import Classroom
from mini_assignment import graded_cell, nbgrader_metadata, solution_cell
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_tools.grading.run.grade import Report, grade
from course_tools.grading.sandbox.sandbox import Limits
from course_tools.grading.sandbox.ways import adopt

ALL_ATTACKS = sorted(Path(__file__).with_name("attacks").glob("*.py"))
POINTS = {"scale-tests": 3.0, "count-tests": 4.0, "why": 2.0}
#: Stands in hidden tests alone, as what they ask for.
SECRETS = ("7319", "never-to-be-seen")
HONEST = ("ada", "zoe")
LIMITS = Limits(cell_seconds=3.0, total_seconds=60.0, disk="16m", memory=2**30)

SCALE = "def scale(x):\n    return 2 * x"
COUNT = "def count(words):\n    return len(words)"

SCALE_TESTS = """x = torch.tensor([1.0, -2.0])
answer = scale(x)
assert isinstance(answer, torch.Tensor), f"scale must return a tensor; yours returns a {type(answer).__name__}"
assert torch.allclose(answer, torch.tensor([2.0, -4.0])), f"twice [1, -2] is [2, -4]; yours is {answer.tolist()}"
### BEGIN HIDDEN TESTS
answer = scale(torch.tensor([7319.0]))
assert abs(answer.item() - 14638) < 1e-3, "large numbers are doubled, too"
### END HIDDEN TESTS"""  # noqa: E501

COUNT_TESTS = """mark = 0.0
if count(["a", "b"]) == 2:
    mark += 2.0
### BEGIN HIDDEN TESTS
mark = mark + 2.0 * (count(["never-to-be-seen"] * 73) / 73)
### END HIDDEN TESTS
mark"""


def source_notebook() -> NotebookNode:
    why = nbgrader_metadata("why", grade=True, solution=True, locked=False, points=2)
    cells = [
        new_code_cell("import torch", id="imports"),
        solution_cell("scale", f"### BEGIN SOLUTION\n{SCALE}\n### END SOLUTION"),
        graded_cell("scale-tests", SCALE_TESTS, 3),
        solution_cell("count", f"### BEGIN SOLUTION\n{COUNT}\n### END SOLUTION"),
        graded_cell("count-tests", COUNT_TESTS, 4),
        new_markdown_cell(
            "### BEGIN SOLUTION\nBecause.\n### END SOLUTION", id="why", metadata=why
        ),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata.course = {"withholds": ["course_lib.attention.multi_head"]}
    notebook.metadata.kernelspec = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    return notebook


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"attack_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def open_class(root: Path) -> Classroom:
    classroom = Classroom.create(root)
    classroom.add_source("mini", source_notebook())
    classroom.run("nbgrader generate_assignment mini")
    return classroom


def answered(
    classroom: Classroom, scale: str = SCALE, count: str = COUNT
) -> NotebookNode:
    """The released notebook with these answers; the written one is left blank."""
    notebook = classroom.released("mini")
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = {"scale": scale, "count": count}.get(name, cell.source)
    return notebook


def hand_in(classroom: Classroom, path: Path) -> None:
    attack = load(path)
    notebook = answered(
        classroom, getattr(attack, "SCALE", SCALE), getattr(attack, "COUNT", COUNT)
    )
    if hasattr(attack, "change"):
        attack.change(notebook)
    folder = classroom.root / "submitted" / path.stem / "mini"
    folder.mkdir(parents=True)
    if hasattr(attack, "write"):
        attack.write(folder, nbformat.writes(notebook), classroom.root)
    else:
        (folder / "mini.ipynb").write_text(nbformat.writes(notebook))


def expected(path: Path) -> dict[str, float | None]:
    return POINTS | {"why": 0.0} | load(path).EXPECTED


@dataclass(frozen=True)
class Term:
    """What grading the class of attackers left behind."""

    classroom: Classroom
    report: Report
    processes_left: list[str]


def graded_term(
    root: Path,
    attacks: Iterable[Path],
    limits: Limits = LIMITS,
    opened: Callable[[Path], Classroom] = open_class,
    notebook: str = "",
) -> Term:
    """Let attackers and honest students hand in, and `course grade` grade them all."""
    classroom = opened(root)
    for student in HONEST:
        classroom.submit("mini", student, answered(classroom))
    for path in attacks:
        hand_in(classroom, path)
    (classroom.root / "submitted" / "аda" / "mini").mkdir(parents=True)  # a Cyrillic а
    (classroom.root / "submitted" / "linked").symlink_to(
        classroom.root / "submitted" / "ada"
    )
    with processes_left() as left:
        report = grade("mini", classroom.root, limits=limits, notebook=notebook)
    return Term(classroom, report, left)


@contextlib.contextmanager
def processes_left() -> Iterator[list[str]]:
    """Fill a list with the processes that what is done here has started and not ended:
    whoever loses a parent is ours.

    Another test may run a grader of its own meanwhile; its processes descend from
    another process. So do those of a browser that this process has had open since
    before.
    """
    here, left = psutil.Process(), list[str]()
    before = set(here.children(recursive=True))
    adopt()
    try:
        yield left
        started = (
            set(here.children(recursive=True))
            - before
            - {one for old in before for one in descendants(old)}
        )
        # the kernel is still at it
        _, living = psutil.wait_procs(filter(lives, started), timeout=60)
        left += map(str, filter(lives, living))
    finally:
        adopt(orphans=False)


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """List what a process has started, and what that has; nothing if it has ended."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def lives(process: psutil.Process) -> bool:
    """Say whether a process has not ended; one that nobody has waited for has."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
