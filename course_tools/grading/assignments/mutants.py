"""Grade the graders: run tests on answers known to be wrong, or right.

``tests/assignments/mutants/<name>.py`` lists them: ``MUTANTS``, each a mistake that
people make, with the cell that must refuse it and the words that it must say;
``RIGHT_ANSWERS``, each written differently from the reference; and ``ACROSS``, where
there is need of it: what tests say otherwise with the answers in a process of their
own. :func:`run_cases` runs them on the solution notebook and marks them as nbgrader
does; ``tests/assignments`` also sends some through nbgrader itself.
"""

import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from filelock import FileLock
from nbformat import NotebookNode
from nbgrader.utils import is_solution

from course_lib.files import write_whole
from course_tools.grading.assignments.comparisons import secret_of, seed_of
from course_tools.grading.assignments.source import (
    AssignmentError,
    others,
    parse_source,
)

Changes = Mapping[str, "str | tuple[str, str]"]
"""By solution cell: its whole new source, or a pair (text in the reference, text to put
there)."""


@dataclass(frozen=True)
class Mutant:
    """A wrong answer: the mistake, the cell that refuses it, and its words."""

    name: str
    mistake: str
    cell: str
    words: str
    caught: str
    changes: Changes
    also_fails: tuple[str, ...] = ()


@dataclass(frozen=True)
class RightAnswer:
    """A right answer that is not the reference: it must get full marks."""

    name: str
    idea: str
    changes: Changes


def wrong_checks(
    function: str, call: str, passing: str, examples: str, too_much: str
) -> list[Mutant]:
    """List the mistakes that people make in a check of a function, the same in each
    assignment: a call and no test, an error in any case, a few ``examples``, which
    mistakes of the kinds ``passing`` pass, and ``too_much`` asked for."""
    head = f"def check_{function}(implementation):\n    "
    rows = [
        ("refuses_nothing", "tests nothing", "passes your check", head + call),
        (
            "refuses_everything",
            "raises an error whatever it is handed",
            "Your check refuses a right implementation",
            f"{head}raise AssertionError('wrong')",
        ),
        (
            "of_examples",
            "tries an example or two and little else",
            f"Mistakes of these kinds pass your check: {passing}.",
            examples,
        ),
        (
            "demands_too_much",
            "demands what the text leaves open",
            "refuses a right implementation that is written differently",
            too_much,
        ),
    ]
    seen = ("visible", "visible", "hidden", "hidden")
    return [
        Mutant(
            f"check_{name}",
            mistake,
            "check-refuses",
            words,
            caught,
            {"own-check": text},
        )
        for (name, mistake, words, text), caught in zip(rows, seen, strict=True)
    ]


@dataclass
class Mark:
    """What one graded cell gave, and what it said."""

    points: float
    max_points: float
    words: str = ""


@dataclass
class Outcome:
    """The marks of one case by graded cell: what students see, and the grader's."""

    student: dict[str, Mark] = field(default_factory=dict)
    grader: dict[str, Mark] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: dict[str, dict[str, Any]]) -> "Outcome":
        """Read the marks of a case back from JSON."""
        return cls(
            **{
                who: {cell: Mark(**mark) for cell, mark in marks.items()}
                for who, marks in stored.items()
            }
        )

    def beside(self, other: "Outcome") -> "Outcome":
        """These marks, and another's where there are none."""
        return Outcome(other.student | self.student, other.grader | self.grader)


def load_cases(
    name: str, root: Path = Path()
) -> tuple[list[Mutant], list[RightAnswer]]:
    """Read ``tests/assignments/mutants/<name>.py``."""
    module = _catalogue(name, root)
    return module.MUTANTS, module.RIGHT_ANSWERS


def load_across(name: str, root: Path = Path()) -> Mapping[str, Mapping[str, str]]:
    """Read ``ACROSS``: by answer and cell, part of its words across the bridge."""
    return getattr(_catalogue(name, root), "ACROSS", {})


def _catalogue(name: str, root: Path) -> Any:
    path = root / "tests" / "assignments" / "mutants" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"mutants_{name}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise AssignmentError(
            f"{path} does not exist; it lists the wrong and right answers for {name}"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def change(notebook: NotebookNode, changes: Changes) -> NotebookNode:
    """Copy a solution notebook with some solution cells answered otherwise."""
    changed = nbformat.from_dict(json.loads(json.dumps(notebook)))
    answers = [cell for cell in changed.cells if is_solution(cell)]
    cells = {cell.metadata.nbgrader.grade_id: cell for cell in answers}
    for grade_id, new in changes.items():
        if grade_id not in cells:
            raise AssignmentError(
                f"{grade_id} is no solution cell; the notebook has {', '.join(cells)}"
            )
        if isinstance(new, tuple):
            if (count := cells[grade_id].source.count(new[0])) != 1:
                often = f"{grade_id} holds {new[0]!r} {count} times"
                raise AssignmentError(f"{often}; choose a text that it holds once")
            new = cells[grade_id].source.replace(*new)
        cells[grade_id].source = new
    return changed


def cases_key(name: str, root: Path = Path()) -> str:
    """Name the state of an assignment and its known answers by 16 hex digits."""
    solutions = root / "solutions"
    parts = others(parse_source(solutions / name / f"{name}.py"))
    files = [
        *(solutions / part / f"{part}.py" for part in (name, *parts)),
        root / "tests" / "assignments" / "mutants" / f"{name}.py",
        *sorted((solutions / name).glob("*.safetensors")),
        *(p for part in (name, *parts) for p in (solutions / part).glob("hidden.py")),
        *(solutions / name).glob("checks.py"),
    ]
    state = hashlib.sha256(b"\0".join(path.read_bytes() for path in files))
    return state.hexdigest()[:16]


def run_cases(
    name: str,
    root: Path = Path(),
    processes: int = 2,
    only: Iterable[str] | None = None,
) -> dict[str, Outcome]:
    """Run an assignment's mutants and right answers, or read the last equal run.

    Parameters
    ----------
    name, root, processes
        The assignment, the checkout, and how many processes run at once.
    only
        Names of the cases to run besides the reference; None for all.
    """
    names = [] if only is None else ["only", *sorted(only)]
    packages = [version(package) for package in ("torch", "nbgrader", "ipython")]
    own = seed_of(name, "", secret_of(root))  # other hidden inputs, another run
    state = [platform.python_version(), *packages, cases_key(name, root), str(own)]
    state += names
    digest = hashlib.sha256(" ".join(state).encode())
    library = Path(__file__).parents[3]
    for folder in ("course_lib", "course_tools/grading"):
        for path in sorted((library / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    key = digest.hexdigest()[:16]
    cached = root / ".cache" / "mutants" / f"{name}-{key}.json"
    cached.parent.mkdir(parents=True, exist_ok=True)
    # pytest's workers and the book's build may ask at the same time
    with FileLock(cached.with_suffix(".lock")):
        if not cached.exists():
            write_whole(cached, _run_anew(name, root, processes, names[1:]))
    outcomes = json.loads(cached.read_text(encoding="utf-8"))
    return {case: Outcome.read(stored) for case, stored in outcomes.items()}


def _run_anew(name: str, root: Path, processes: int, only: list[str]) -> str:
    program = [sys.executable, "-m", "course_tools.grading.assignments.mutants_run"]
    command = [*program, name, str(root.resolve()), str(processes), *only]
    # Marks are given on a CPU; and torch's autograd cannot go on in a forked process
    # where it has seen a GPU. Texts have the same hashes each time, so an answer that
    # leans on the order of a set gives the same one.
    settings = {"CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "agg", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=root, env=os.environ | settings
    )
    if done.returncode != 0:
        raise AssignmentError(f"the mutants of {name} could not be run:\n{done.stderr}")
    return done.stdout
