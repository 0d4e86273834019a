"""A class for `course viva`, and its keys computed again by plain Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from classroom import REPOSITORY, write_notebook
from nbformat import NotebookNode

from course_tools.grading.assignments.mutants import Changes, change
from course_tools.grading.assignments.source import (
    answered,
    is_demonstration,
    read_source,
)
from course_tools.grading.run.plan import role
from course_tools.grading.viva.changes import Change, apply
from course_tools.grading.viva.viva import OPENING

#: Says where a call does not give what a key says it gives.
CHECK = """
from course_tools.grading.viva.probe import viva_text


def viva_check(call, text):
    try:
        gave = viva_text(call())
    except Exception as error:
        gave = f"raises {type(error).__name__}"
    if gave != text:
        print("KEY", text, "but it gives", gave)
"""

DONE = "KEYS DONE"

#: Runs programs one after the other, each by itself, where torch is imported already.
IN_TURN = """
import os, runpy, sys, torch
for program in sys.argv[1:]:
    if os.fork() == 0:
        said = os.open(program.removesuffix("py") + "txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1), os.dup2(said, 2)
        runpy.run_path(program, run_name="__main__")
        break
    os.wait()
"""


def course_with(root: Path, name: str, answers: Mapping[str, Changes]) -> Path:
    """A course folder in which these answers to an assignment were handed in."""
    (root / "submitted").mkdir(parents=True)
    for part in ("nbgrader_config.py", "solutions", "exercises"):
        (root / part).symlink_to(REPOSITORY / part)
    reference = read_source(REPOSITORY / "solutions" / name / f"{name}.py")
    released = nbformat.read(REPOSITORY / "exercises" / name / f"{name}.ipynb", 4)
    for student, changes in answers.items():
        notebook = answered(released, change(reference, changes))
        for cell in notebook.cells:
            marks = r"^ *### (BEGIN|END) SOLUTION\n?"
            cell.source = re.sub(marks, "", cell.source, flags=re.M)
        write_notebook(notebook, root / "submitted" / student / name / f"{name}.ipynb")
    return root


def wrong_keys(
    programs: Mapping[str, str], place: Path, beside: Path
) -> dict[str, str]:
    """Run each student's program by plain Python, in a folder with the files that it
    needs, and say which keys are wrong."""
    files = []
    for student, text in programs.items():
        files.append(place / f"{student}.py")
        files[-1].write_text(text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", IN_TURN, *map(str, files)]
    subprocess.run(command, cwd=beside, env=environment, check=True)
    said = {file.stem: file.with_suffix(".txt").read_text("utf-8") for file in files}
    keys = {
        student: [line for line in text.splitlines() if line.startswith("KEY")]
        for student, text in said.items()
    }
    return {student: said[student] for student in keys if keys[student] != [DONE]}


def with_keys(
    notebook: NotebookNode, setup: str, questions: list[dict[str, Any]]
) -> str:
    """A submission and its changes as a program that says which keys are wrong."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kept = [
        cell for cell in code if role(cell) != "test" and not is_demonstration(cell)
    ]
    cells = [cell.source for cell in kept]
    program = [*cells, setup, OPENING, CHECK]

    def check(call: str, text: str) -> None:
        program.append(f"viva_check(lambda: {call}, {text!r})")

    for one in questions:
        start = rf"^(def|class) {one['name']}\b"
        source = next(c for c in reversed(cells) if re.search(start, c, re.M))
        for call, text in zip(one["calls"], one["before"], strict=True):
            check(call, text)
        if one["kind"] == "which":
            program.append(apply(source, Change(one["line"], one["new"])))
            for number, call in enumerate(one["calls"]):
                moved = number == one["answer"]
                check(call, one["value"] if moved else one["before"][number])
        for changed, text in zip(one["others"], one["options"], strict=True):
            program.append(apply(source, Change(*changed)))
            check(one["calls"][0], text)
        program.append(source)
    return "\n\n".join([*program, f"print({DONE!r})"])
