"""From what the referee says to marks: the notebook as it is kept, and nbgrader's own
rule on its outputs."""

from __future__ import annotations

from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.utils import determine_grade, is_grade

from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.nbgrader.harmless import make_harmless
from course_tools.grading.run.execute import Transcript


@dataclass(frozen=True)
class Mark:
    """What one graded cell earned.

    Attributes:
        cell: its ``grade_id``.
        points: the most it can earn.
        earned: None if a person marks it.
        words: what failed, for the student; of hidden tests only that one failed.
    """

    cell: str
    points: float
    earned: float | None
    words: str = ""


def judge(
    notebook: NotebookNode, transcript: Transcript
) -> tuple[NotebookNode, list[Mark]]:
    """Put the referee's outputs into the notebook and mark it."""
    judged = nbformat.from_dict(notebook)
    marks = []
    for index, cell in enumerate(judged.cells):
        name = grade_id(cell)
        words = ""
        if cell.cell_type == "code":
            cell.outputs = []
            if is_grade(cell) and not cell.metadata.nbgrader.get("solution"):
                words = _test_outputs(cell, transcript)
            elif index in transcript.cells:
                _cell_outputs(cell, transcript.cells[index])
        if name is not None and is_grade(cell):
            earned, points = determine_grade(cell)
            marks.append(
                Mark(
                    name,
                    float(points),
                    None if earned is None else float(earned),
                    words,
                )
            )
    make_harmless(judged)
    return judged, marks


def _test_outputs(cell: NotebookNode, transcript: Transcript) -> str:
    """Write what the referee says about a test as the outputs of its cell, and return
    its words."""
    points = float(cell.metadata.nbgrader.points)
    name = cell.metadata.nbgrader.grade_id
    told, mark = transcript.tests.get(name), transcript.marks.get(name)
    if transcript.points_alone:
        told = {
            "earned": 0.0,
            "words": "It fails." if mark and not mark["earned"] else "",
            "printed": "",
            "error": "",
        }
    if told is None or mark is None:
        words = transcript.trouble or "This test was not reached."
        cell.outputs = [
            new_output("error", ename="NotReached", evalue=words, traceback=[words])
        ]
        return words
    earned = (
        mark["earned"]
        if type(mark["earned"]) in (int, float) and 0 <= mark["earned"] <= points
        else 0.0
    )
    words = ""
    if earned < points:
        hidden = told["earned"] == points
        words = (
            "The tests that you see pass; a hidden test fails."
            if hidden
            else told["words"]
        )
        words = words or "It earns a part of its points."
    if told["printed"]:
        cell.outputs.append(new_output("stream", name="stdout", text=told["printed"]))
    if earned == 0:
        cell.outputs.append(
            new_output(
                "error",
                ename=told["error"] or "Failed",
                evalue=words,
                traceback=[words],
            )
        )
    elif earned < points:
        cell.outputs.append(
            new_output("execute_result", {"text/plain": repr(float(earned))})
        )
    return words


def _cell_outputs(cell: NotebookNode, told: dict) -> None:
    if told["printed"]:
        cell.outputs.append(new_output("stream", name="stdout", text=told["printed"]))
    if told["result"]:
        cell.outputs.append(
            new_output("execute_result", {"text/plain": told["result"]})
        )
    if told["error"]:
        error = told["error"]
        cell.outputs.append(
            new_output(
                "error", ename=error["type"], evalue=error["message"], traceback=[]
            )
        )
