"""Run the wrong and the right answers of an assignment across the bridge: tests in one
process, answers in another.

What :mod:`course_tools.grading.assignments.mutants_run` does with one process is done
here with two: the referee and the student's process run the reference together, step by
step, and in front of each step both are forked for every case whose first change is
there. So each case crosses the bridge once: a wrong answer with the tests that refuse
it, a right one with those that it can reach. There is no wall around the two: what a
wall changes is seen where some of the same answers are graded as a class.

It forks, so it is a program of its own: ``python mutants_across.py ASSIGNMENT ROOT
AT_ONCE [CASE ...]`` in an empty folder; without a case all run.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import json
import os
import random
import resource
import shutil
import signal
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import torch

from course_tools.grading.assignments.comparisons import expected
from course_tools.grading.assignments.mutants import (
    Changes,
    Mark,
    Outcome,
    change,
    load_across,
    load_cases,
)
from course_tools.grading.assignments.mutants_run import (
    PATIENCE,
    REFERENCE,
    SECONDS_PER_CASE,
    Cases,
    code_cells,
)
from course_tools.grading.assignments.reach import reached, with_what_they_use
from course_tools.grading.check.check_run import as_graded
from course_tools.grading.run.assignment import Assignment, load
from course_tools.grading.run.plan import steps
from course_tools.grading.run.referee import Referee
from course_tools.grading.run.student_side import serve, student_peer

Steps = list[dict[str, Any]]


class NoLibrary(importlib.abc.MetaPathFinder):
    """The finished library is not there for answers and tests, as it is not behind the
    wall."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name.partition(".")[0] == "course_lib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def plan(assignment: Assignment, changes: Changes) -> Steps:
    """The steps of somebody who hands in the reference with these changes."""
    submitted = as_graded(change(assignment.instructor, changes), assignment.released)
    return steps(assignment.instructor, assignment.released, submitted)


def own_copy() -> Path:
    """Go on in a copy of this folder: what a case writes is there for nobody else."""
    copy = Path(tempfile.mkdtemp(dir=Path.cwd().parent))
    shutil.copytree(Path.cwd(), copy, dirs_exist_ok=True)
    os.chdir(copy)
    return copy


class Pair:
    """A referee and its student's process, at some place of the notebook."""

    def __init__(self, files: dict[str, bytes]) -> None:
        for name, data in files.items():
            Path(name).write_bytes(data)
        control, grader = socket.socketpair()
        asking, answering = socket.socketpair()
        self.orders, orders = socket.socketpair()
        if os.fork() == 0:
            for other in (control, grader, asking, self.orders):
                other.close()
            be_student(answering, orders)
        socket.send_fds(grader, [b"s"], [asking.fileno()])
        for other in (asking, answering, orders):
            other.close()
        limits = {
            "cell_seconds": PATIENCE * SECONDS_PER_CASE,
            "total_seconds": PATIENCE * SECONDS_PER_CASE,
        }
        self.referee = Referee(
            control,
            {"hidden": True, "steps": [], "deadly": [], "files": files, **limits},
        )
        self.peer = self.referee.student()
        # a case whose process ends gets no other one: it is told as what it is, a
        # failure
        grader.close()

    def play(self, step: dict[str, Any]) -> dict[str, Mark]:
        """Take one step, and say what a test gave."""
        if step["kind"] != "test":
            take = {
                "withhold": self.referee.withhold,
                "student": self.referee.student_cell,
                "given": self.referee.given_cell,
            }
            take[step["kind"]](step)
            return {}
        said = self.referee.run_test(step["source"], step["points"])
        most = step["points"]
        told = said["printed"] if said["earned"] < most else ""
        return {step["name"]: Mark(said["earned"], most, said["words"] or told)}

    def twin(self) -> socket.socket:
        """Fork the student's process as it is now, and give the socket that leads to
        the new one."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.orders, [b"t"], [theirs.fileno()])
            self.peer.ask(("twin",))
        return ours

    def finish(self, connection: socket.socket, rest: Steps) -> Outcome:
        """In a process forked from this one: go on with the twin."""
        self.peer.connection.close()
        self.peer.connection = connection
        self.peer.receive()  # its answer to being forked
        folder = own_copy()
        marks: dict[str, Mark] = {}
        for step in rest:
            marks |= self.play(step)
        shutil.rmtree(folder)
        return Outcome(grader=marks)


def be_student(connection: socket.socket, orders: socket.socket) -> None:
    """Be the student's process, and fork when it is asked for."""
    folder = Path(tempfile.mkdtemp(dir=Path.cwd().parent))
    os.chdir(folder)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for twins
    peer = student_peer(connection)

    def twin() -> None:
        nonlocal folder
        _, sockets, _, _ = socket.recv_fds(orders, 1, 1)
        new = socket.socket(fileno=sockets[0])
        if os.fork() != 0:
            new.close()
            return
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        resource.setrlimit(
            resource.RLIMIT_CPU, (SECONDS_PER_CASE, SECONDS_PER_CASE + 1)
        )
        peer.connection.close()
        peer.connection = new
        folder = own_copy()

    peer.handlers["twin"] = twin
    try:
        serve(peer)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def run_across(name: str, root: Path, at_once: int, *only: str) -> dict[str, Any]:
    """Run every case of an assignment, or some, and the reference up to the last change
    of all."""
    assignment = load(name, root)
    mutants, right = load_cases(name, root)
    if only:
        mutants = [case for case in mutants if case.name in only]
        right = [case for case in right if case.name in only]
    reference = plan(assignment, {})
    plans = {case.name: plan(assignment, case.changes) for case in [*mutants, *right]}
    whole = code_cells(assignment.instructor)
    stated = load_across(name, root)
    asked = {
        case.name: {case.cell, *case.also_fails, *stated.get(case.name, ())}
        for case in mutants
    }
    for case in right:
        changed = code_cells(change(assignment.instructor, case.changes))
        asked[case.name] = reached(whole, changed)
    within = {case: with_what_they_use(whole, tests) for case, tests in asked.items()}
    begins = {
        case: (
            [one == other for one, other in zip(reference, changed, strict=True)].index(
                False
            )
        )
        for case, changed in plans.items()
    }
    # once, before the fork: the first optimizer of a process imports it
    importlib.import_module("torch._dynamo")
    torch.set_num_threads(1)
    torch.manual_seed(0)  # as the worker does, from which all submissions are forked
    random.seed(0)
    numpy.random.seed(0)  # noqa: NPY002 - answers draw from it
    os.environ["MPLBACKEND"] = "agg"
    sys.meta_path.insert(0, NoLibrary())
    for step in reference:
        expected(step.get("source", ""))  # once, for all that are forked
    gc.collect()
    gc.freeze()
    pair, cases, marks = Pair(assignment.files), Cases(at_once), dict[str, Mark]()
    for place, step in enumerate(reference[: max(begins.values()) + 1]):
        for case in (case for case, begin in begins.items() if begin == place):
            connection = pair.twin()
            rest = [
                step
                for step in plans[case][place:]
                if step["kind"] != "test" or step["name"] in within[case]
            ]
            cases.start(case, partial(pair.finish, connection, rest))
            connection.close()
        marks |= pair.play(step)
    outcomes = cases.end_all()
    return {
        **outcomes,
        REFERENCE: {
            "student": {},
            "grader": {cell: vars(mark) for cell, mark in marks.items()},
        },
    }


if __name__ == "__main__":
    which, checkout, at_once, *names = sys.argv[1:]
    json.dump(run_across(which, Path(checkout), int(at_once), *names), sys.stdout)
