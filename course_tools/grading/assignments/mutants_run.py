"""Run wrong and right answers in processes of their own, and mark them.

Cells run in an IPython shell: a kernel for each case would take minutes. A case differs
from the reference in one cell or a few, and up to the first of these in nothing. So the
reference runs once, cell by cell, and in front of each cell a process is forked for
every case whose first change is there: it goes on from the state that it finds, and
runs the test cells that its changes can reach
(:mod:`course_tools.grading.assignments.reach`); the others have the reference's marks.

A case is marked twice, as the student's own tests see it and as the grader does. A test
cell that hides tests runs as the student has it; if it passes, the hidden tests run
after it, in the same shell. (Where they stand between visible ones, the grader's
version of the cell runs whole.) The reference alone runs twice from the start, with a
notebook of the student's and with one of the grader's, so that no visible test can lean
on what a hidden one defines.

Cells run in the solution's folder, beside what the assignment ships. Cells with the tag
``demonstration`` are left out: they are slow, and no mark depends on them.
"""

import contextlib
import gc
import importlib
import io
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.utils import determine_grade, is_grade

from course_tools.grading.assignments.comparisons import expected
from course_tools.grading.assignments.mutants import (
    Changes,
    Mark,
    Outcome,
    change,
    load_cases,
)
from course_tools.grading.assignments.reach import reached
from course_tools.grading.assignments.source import (
    AssignmentError,
    is_demonstration,
    read_source,
)
from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.run.plan import role

SECONDS_PER_CASE = 60  # of processor time: a busy machine makes no answer wrong
PATIENCE = 60  # times as long by the clock, for a case that waits instead of working
REFERENCE = "reference"


class Sitting:
    """One shell in which cells run in order, and the marks that they earn."""

    def __init__(self, expected: dict[str, Any]) -> None:
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "nocolor"
        # nobody reads a traceback here, and it takes 0.1 s to lay out
        config.InteractiveShell.xmode = "Minimal"
        self.shell = InteractiveShell(config=config)
        self.shell.user_ns["__expected__"] = expected
        self.outcome = Outcome()

    def run(self, visible: NotebookNode, whole: NotebookNode) -> None:
        """Run a cell as the student has it, then the grader's rest; mark both."""
        mark, raised = self._mark(visible, visible.source)
        if mark is not None:
            self.outcome.student[visible.metadata.nbgrader.grade_id] = mark
        seen = visible.source.rstrip()
        if not whole.source.startswith(seen):
            mark, _ = self._mark(whole, whole.source)
        elif not raised and (hidden := whole.source[len(seen) :].strip()):
            mark, _ = self._mark(whole, hidden)
        if mark is not None:
            self.outcome.grader[whole.metadata.nbgrader.grade_id] = mark

    def _mark(self, cell: NotebookNode, source: str) -> tuple[Mark | None, bool]:
        """Run code, mark its cell if graded, and say whether it raised."""
        printed = io.StringIO()
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            result = self.shell.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if not is_grade(cell):
            return None, error is not None
        cell.outputs = []
        words = printed.getvalue()
        if error is not None:
            name = type(error).__name__
            words = f"{name}: {error}"
            cell.outputs = [
                new_output("error", ename=name, evalue=str(error), traceback=[])
            ]
        elif result.result is not None:
            shown = {"text/plain": repr(result.result)}
            cell.outputs = [new_output("execute_result", shown)]
        points, most = determine_grade(cell)
        words = words if points != most else ""
        return Mark(float(points), float(most), words), error is not None


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the cells that are run."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in code if not is_demonstration(cell)]


Pairs = list[tuple[NotebookNode, NotebookNode]]


def both_versions(notebook: NotebookNode, changes: Changes) -> Pairs:
    """Pair each cell as the student has it with the same cell as the grader has it."""
    grader = change(notebook, changes)
    student, _ = ClearHiddenTests().preprocess(change(notebook, changes), {})
    return list(zip(code_cells(student), code_cells(grader), strict=True))


def first_change(notebook: NotebookNode, changes: Changes) -> int:
    """Return the place of the first cell that differs from the reference."""
    changed = code_cells(change(notebook, changes))
    pairs = enumerate(zip(code_cells(notebook), changed, strict=True))
    for place, (old, new) in pairs:
        if old.source != new.source:
            return place
    raise AssignmentError(
        "a case changes nothing, or only a cell that is not run; it is the reference"
    )


def told(notebook: NotebookNode) -> dict[str, Any]:
    """What the references of all comparing tests give."""
    return {key: w for c in notebook.cells for key, w in expected(c.source).items()}


def run_from_the_start(
    notebook: NotebookNode, changes: Changes = MappingProxyType({})
) -> Outcome:
    """Run an answer, by itself the reference, as the student and as the grader has
    it."""
    ready = told(notebook)
    student, grader = Sitting(ready), Sitting(ready)
    for visible, _ in both_versions(notebook, changes):
        student.run(visible, visible)
    for _, whole in both_versions(notebook, changes):
        grader.run(whole, whole)
    return Outcome(student.outcome.student, grader.outcome.grader)


class Cases:
    """Forked processes, some at a time, and what became of them."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self.outcomes: dict[str, Any] = {}
        # by receiver: the case, its process, when it must end
        self.running: dict[Any, tuple[str, Any, float]] = {}

    def start(self, name: str, marked: Callable[[], Outcome]) -> None:
        """Fork a process, when there is room, in which `marked` runs."""
        while len(self.running) >= self.at_once:
            self.end_one()
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        # A daemon: when a case fails this function, the other one, which may loop for
        # ever, ends with it.
        process = context.Process(target=_child, args=(sender, marked), daemon=True)
        process.start()
        sender.close()
        until = time.monotonic() + PATIENCE * SECONDS_PER_CASE
        self.running[receiver] = name, process, until

    def end_all(self) -> dict[str, Any]:
        """Wait for all and return the outcomes by the names of the cases."""
        while self.running:
            self.end_one()
        return self.outcomes

    def end_one(self) -> None:
        """Wait for the one that ends first."""
        latest = min(self.running, key=lambda waited: self.running[waited][2])
        left = max(0.0, self.running[latest][2] - time.monotonic())
        ready: list[Any] = multiprocessing.connection.wait(list(self.running), left)
        receiver = ready[0] if ready else latest
        name, process, _ = self.running.pop(receiver)
        try:
            if not ready:
                limit = PATIENCE * SECONDS_PER_CASE
                raise AssignmentError(f"{name} did not end within {limit} s")
            message = receiver.recv()
        except EOFError:
            process.join()
            what = "ended its process before it was marked"
            if process.exitcode == -signal.SIGXCPU:
                what = f"used more than {SECONDS_PER_CASE} s of processor time"
            raise AssignmentError(f"{name} {what}") from None
        finally:
            process.kill()
            process.join()
        if "failure" in message:
            raise AssignmentError(f"{name} could not be run:\n{message['failure']}")
        self.outcomes[name] = message["outcome"]


def _child(pipe: Any, marked: Callable[[], Outcome]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_PER_CASE, SECONDS_PER_CASE + 1))
    try:
        pipe.send({"outcome": asdict(marked())})
    except BaseException:
        pipe.send({"failure": traceback.format_exc()})


def in_processes(
    notebook: NotebookNode, cases: Mapping[str, Changes], at_once: int = 2
) -> dict[str, Any]:
    """Run cases, and before them the reference, on which all stand."""
    here, processes = Sitting(told(notebook)), Cases(at_once)
    processes.start(REFERENCE, lambda: run_from_the_start(notebook))
    reference = Outcome.read(processes.end_all()[REFERENCE])
    cells = code_cells(notebook)
    begins = {name: first_change(notebook, changes) for name, changes in cases.items()}
    for place, cell in enumerate(both_versions(notebook, {})):
        if place > max(begins.values(), default=-1):
            break
        for name in (name for name, begin in begins.items() if begin == place):
            changed = both_versions(notebook, cases[name])
            within = reached(cells, [whole for _, whole in changed])

            def rest(
                place: int = place, changed: Pairs = changed, within: set[str] = within
            ) -> Outcome:
                for visible, whole in changed[place:]:
                    if role(whole) != "test" or grade_id(whole) in within:
                        here.run(visible, whole)
                return here.outcome.beside(reference)

            processes.start(name, rest)
        here.run(*cell)
    return processes.end_all()


def get_ready() -> None:
    """Import what is slow to, and draw as in a worker of the grader's
    (:mod:`course_tools.grading.sandbox.worker`)."""
    # The first optimizer of a process imports the third one.
    for module in ("IPython.core.interactiveshell", "torch", "torch._dynamo"):
        importlib.import_module(module)
    import numpy
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)  # noqa: NPY002 - answers draw from it


def _run_all(
    name: str, root: Path, at_once: int, only: Collection[str] = ()
) -> dict[str, Any]:
    """Run the reference and the named cases, without names every one. Call it in a
    fresh process: it forks."""
    get_ready()  # once, before the fork: no case spends time on it
    notebook = read_source(root / "solutions" / name / f"{name}.py")
    mutants, right = load_cases(name, root)
    gc.freeze()  # a case that looks for garbage copies nothing that it shares
    os.chdir(root / "solutions" / name)
    cases: dict[str, Changes] = {mutant.name: mutant.changes for mutant in mutants}
    cases.update({answer.name: answer.changes for answer in right})
    if len({REFERENCE, *cases}) != 1 + len(mutants) + len(right):
        raise AssignmentError("two cases have the same name; tests and pages use it")
    if unknown := sorted({*only} - {*cases}):
        raise AssignmentError(f"{name} has no known answer {', '.join(unknown)}")
    if only:
        cases = {case: changes for case, changes in cases.items() if case in only}
    return in_processes(notebook, cases, at_once)


if __name__ == "__main__":
    assignment, checkout, at_once, *names = sys.argv[1:]
    json.dump(_run_all(assignment, Path(checkout), int(at_once), names), sys.stdout)
