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

#: Says where a call does not give what a key says it gives.
CHECK = """
inf, nan = float("inf"), float("nan")


def viva_plain(value):
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        return {key: viva_plain(part) for key, part in value.items()}
    return [*map(viva_plain, value)] if isinstance(value, list | tuple) else value


def viva_alike(one, other):
    if isinstance(one, list):
        same = isinstance(other, list) and len(one) == len(other)
        return same and all(map(viva_alike, one, other))
    if isinstance(one, dict):
        return [*one] == [*other] and viva_alike([*one.values()], [*other.values()])
    if type(one) in (str, bool, set, type(None)):
        return one == other
    return abs(one - other) <= 1e-3 * max(1, abs(one)) or one == other or one != one


def viva_check(call, text, value):
    try:
        gave = viva_plain(call())
    except Exception as error:
        gave = type(error).__name__
        if text != f"raises {gave}":
            print("KEY", text, "but it raises", gave)
        return
    if value is None or not viva_alike(gave, viva_plain(value())):
        print("KEY", text, "but it gives", gave)
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
    notebook: NotebookNode,
    setup: str,
    questions: list[dict[str, Any]],
    place: Path,
    beside: Path,
) -> str:
    """Run a submission and its changes as a program, and say which keys are wrong.
    Files that it needs lie beside it."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kept = [
        cell for cell in code if role(cell) != "test" and not is_demonstration(cell)
    ]
    cells = [cell.source for cell in kept]
    program = [*cells, setup, "if 'tensor' not in globals():"]
    program += ["    from torch import tensor", CHECK]

    def check(call: str, text: str) -> None:
        value = "None" if text.startswith("raises ") else f"lambda: {text}"
        program.append(f"viva_check(lambda: {call}, {text!r}, {value})")

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
    program.append('print("KEYS DONE")')
    place.write_text("\n\n".join(program), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(place)],
        capture_output=True,
        text=True,
        cwd=beside,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("KEY")]
    return "\n".join(lines).removesuffix("KEYS DONE") + done.stderr * done.returncode
