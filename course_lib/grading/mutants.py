"""Grade the graders: run an assignment's tests on answers that are known to be wrong, and known to be right.

``tests/assignments/mutants/<name>.py`` lists them: ``MUTANTS``, each a mistake that people make, with the cell that
must refuse it and the words that it must say; ``RIGHT_ANSWERS``, each written differently from the reference.
:func:`run_cases` runs every one on the solution notebook and marks it as nbgrader does. Cells run in an IPython shell
in a forked process, one process a case, because starting a kernel for each would take minutes; ``tests/assignments``
also sends some through nbgrader itself. They run in the solution's folder, where files that the assignment ships
lie as they lie beside the student's notebook.

Cells with the tag ``demonstration`` are left out: they are slow, carry no points, and no graded cell needs them.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import io
import json
import multiprocessing
import os
import platform
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from filelock import FileLock
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.utils import determine_grade, is_grade

from course_lib.grading.source import AssignmentError, read_source

SECONDS_PER_CASE = 60  # of processor time: a machine that is busy with something else makes no answer a wrong one
PATIENCE = 10  # times as long by the clock, for a case that waits instead of working
PROCESSES = 2

Changes = Mapping[str, "str | tuple[str, str]"]
"""By solution cell: its whole new source, or a pair (text in the reference, text to put there)."""


@dataclass(frozen=True)
class Mutant:
    """A wrong answer: what the mistake is, which cell must refuse it, and what the cell must say.

    ``cell`` is a ``grade_id``; ``words`` is part of what it says; ``caught`` tells whether the student's own, visible
    tests refuse it ("visible") or only the ones that the grader adds ("hidden"). Every graded cell that is neither
    ``cell`` nor named in ``also_fails`` must give full marks.
    """

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


@dataclass
class Mark:
    """What one graded cell gave, and what it said."""

    points: float
    max_points: float
    words: str = ""


@dataclass
class Outcome:
    """The marks of one case by graded cell: as the student sees them (visible tests) and as the grader gives them."""

    student: dict[str, Mark] = field(default_factory=dict)
    grader: dict[str, Mark] = field(default_factory=dict)


def load_cases(name: str, root: Path = Path()) -> tuple[list[Mutant], list[RightAnswer]]:
    """Read ``tests/assignments/mutants/<name>.py``."""
    path = root / "tests" / "assignments" / "mutants" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"mutants_{name}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise AssignmentError(f"{path} does not exist; it lists the wrong and right answers for {name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MUTANTS, module.RIGHT_ANSWERS


def change(notebook: NotebookNode, changes: Changes) -> NotebookNode:
    """Copy a solution notebook with some solution cells answered otherwise.

    Args:
        notebook: the solution notebook; not changed.
        changes: by ``grade_id``, the new source or a pair (old text, new text).

    Returns:
        The changed copy.

    Raises:
        AssignmentError: there is no such solution cell, or the old text is not in it exactly once.

    Chapter: seq2seq-attention

    >>> metadata = {"nbgrader": {"grade_id": "scores", "solution": True, "grade": False}}
    >>> notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("scale = d ** 0.5", metadata=metadata)])
    >>> change(notebook, {"scores": ("d ** 0.5", "d")}).cells[0].source
    'scale = d'
    """
    changed = nbformat.from_dict(json.loads(json.dumps(notebook)))
    cells = {
        cell.metadata.nbgrader.grade_id: cell
        for cell in changed.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    for grade_id, new in changes.items():
        if grade_id not in cells:
            raise AssignmentError(f"{grade_id} is no solution cell; the notebook has {', '.join(cells)}")
        if isinstance(new, tuple):
            count = cells[grade_id].source.count(new[0])
            if count != 1:
                raise AssignmentError(f"{grade_id} holds {new[0]!r} {count} times; choose a text that it holds once")
            new = cells[grade_id].source.replace(*new)
        cells[grade_id].source = new
    return changed


def run_notebook(notebook: NotebookNode) -> dict[str, Mark]:
    """Run a notebook's cells in this process, as a kernel would, and mark the graded ones with nbgrader's own rule."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell(config=config)
    marks = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or "demonstration" in cell.metadata.get("tags", []):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            result = shell.run_cell(cell.source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if not is_grade(cell):
            continue
        cell.outputs = []
        words = printed.getvalue()
        if error is not None:
            words = f"{type(error).__name__}: {error}"
            cell.outputs = [
                nbformat.v4.new_output("error", ename=type(error).__name__, evalue=str(error), traceback=[])
            ]
        elif result.result is not None:
            cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": repr(result.result)})]
        points, most = determine_grade(cell)
        marks[cell.metadata.nbgrader.grade_id] = Mark(float(points), float(most), words if points != most else "")
    return marks


def _run_case(notebook: NotebookNode, changes: Changes) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    grader = change(notebook, changes)
    student, _ = ClearHiddenTests().preprocess(change(notebook, changes), {})
    return asdict(Outcome(student=run_notebook(student), grader=run_notebook(grader)))


def _child(pipe: Any, notebook: NotebookNode, changes: Changes) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_PER_CASE, SECONDS_PER_CASE + 1))
    try:
        pipe.send({"outcome": _run_case(notebook, changes)})
    except BaseException:
        pipe.send({"failure": traceback.format_exc()})


def _run_all(name: str, root: Path) -> dict[str, Any]:
    """Run every case in a process of its own, two at a time. Call it in a fresh process: it forks."""
    # Once, before the fork: no case spends time on it. The first optimizer of a process imports the third one.
    for module in ("IPython.core.interactiveshell", "torch", "torch._dynamo"):
        importlib.import_module(module)

    notebook = read_source(root / "solutions" / name / f"{name}.py")
    mutants, right = load_cases(name, root)
    os.chdir(root / "solutions" / name)
    cases: dict[str, Changes] = {"reference": {}}
    cases.update({mutant.name: mutant.changes for mutant in mutants})
    cases.update({answer.name: answer.changes for answer in right})
    if len(cases) != 1 + len(mutants) + len(right):
        raise AssignmentError("two cases have the same name; tests and the instructor's page call them by it")
    return _in_processes(notebook, cases)


def _in_processes(notebook: NotebookNode, cases: Mapping[str, Changes]) -> dict[str, Any]:
    context = multiprocessing.get_context("fork")
    waiting, outcomes = list(cases), {}
    running: list[tuple[str, Any, Any]] = []
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            case = waiting.pop(0)
            receiver, sender = context.Pipe(duplex=False)
            # A daemon: when a case fails this function, the other one, which may loop for ever, ends with it.
            process = context.Process(target=_child, args=(sender, notebook, cases[case]), daemon=True)
            process.start()
            sender.close()
            running.append((case, process, receiver))
        case, process, receiver = running.pop(0)
        try:
            if not receiver.poll(PATIENCE * SECONDS_PER_CASE):
                raise AssignmentError(f"{case} did not end within {PATIENCE * SECONDS_PER_CASE} s")
            message = receiver.recv()
        except EOFError:
            process.join()
            if process.exitcode == -signal.SIGXCPU:
                raise AssignmentError(f"{case} used more than {SECONDS_PER_CASE} s of processor time") from None
            raise AssignmentError(f"{case} ended its process before it was marked") from None
        finally:
            process.kill()
            process.join()
        if "failure" in message:
            raise AssignmentError(f"{case} could not be run:\n{message['failure']}")
        outcomes[case] = message["outcome"]
    return outcomes


def run_cases(name: str, root: Path = Path()) -> dict[str, Outcome]:
    """Run all mutants and right answers of an assignment, unless nothing has changed since they ran last.

    Args:
        name: the assignment.
        root: the repository's root.

    Returns:
        By the case's name (and "reference" for the solution itself), the marks it gets.

    Raises:
        AssignmentError: a case could not be run; the message names it.

    Chapter: seq2seq-attention
    """
    library = Path(__file__).parent
    ingredients = [
        root / "solutions" / name / f"{name}.py",
        root / "tests" / "assignments" / "mutants" / f"{name}.py",
        *sorted((root / "solutions" / name).glob("*.safetensors")),
        library / "mutants.py",
        library / "source.py",
        library / "student_checks.py",
        library / "withheld.py",
    ]
    versions = f"{platform.python_version()} {version('torch')} {version('nbgrader')} {version('ipython')}"
    key = hashlib.sha256(b"\0".join([versions.encode(), *(path.read_bytes() for path in ingredients)])).hexdigest()[:16]
    cached = root / ".cache" / "mutants" / f"{name}-{key}.json"
    cached.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(cached.with_suffix(".lock")):  # pytest's workers and the book's build may ask at the same time
        if not cached.exists():
            command = [sys.executable, "-m", "course_lib.grading.mutants", name, str(root.resolve())]
            done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
            if done.returncode != 0:
                raise AssignmentError(f"the mutants of {name} could not be run:\n{done.stderr}")
            partial = cached.with_suffix(".part")
            partial.write_text(done.stdout, encoding="utf-8")
            partial.replace(cached)
    outcomes = json.loads(cached.read_text(encoding="utf-8"))
    return {
        case: Outcome(**{who: {cell: Mark(**mark) for cell, mark in marks.items()} for who, marks in outcome.items()})
        for case, outcome in outcomes.items()
    }


if __name__ == "__main__":
    json.dump(_run_all(sys.argv[1], Path(sys.argv[2])), sys.stdout)
