"""From what the referee says to marks, by nbgrader's own rule.

The page that a student gets has each question, its mark, and in words what failed; of
hidden tests no more than words of the instructor's. Everything that could come from a
student is escaped, and the page runs no script and loads nothing.
"""

from dataclasses import dataclass
from html import escape

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.utils import determine_grade, is_grade, is_solution

from course_tools.grading.assignments.comparisons import compares
from course_tools.grading.assignments.editions import EDITION
from course_tools.grading.assignments.hidden_words import NOT_STARTED
from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.nbgrader.harmless import make_harmless
from course_tools.grading.run.assignment import Assignment
from course_tools.grading.run.execute import Transcript


@dataclass(frozen=True)
class Mark:
    """What one graded cell earned."""

    cell: str  # its ``grade_id``
    points: float  # the most it can earn
    earned: float | None  # None if a person marks it
    words: str = ""  # what failed, for the student; of a hidden test only that


#: What comparing tests try, in words that are the same for everybody.
TRIED = (
    " It compares your answer with a reference on many other inputs: other sizes, the"
    " edges of what the task says and, where there are any, other number types and"
    " gradients; and it looks whether inputs stay as they were."
)


def judge(
    notebook: NotebookNode,
    transcript: Transcript,
    instructor: NotebookNode,
    feedback: str = "words",
) -> tuple[NotebookNode, list[Mark]]:
    """Put the referee's outputs into the notebook and mark it.

    With "outputs" the page says what tests printed, too; with "code" the notebook that
    is given back has the hidden tests besides.
    """
    whole = {grade_id(cell): cell.source for cell in instructor.cells}
    judged = nbformat.from_dict(notebook)
    marks = []
    for index, cell in enumerate(judged.cells):
        name, words = grade_id(cell), ""
        if cell.cell_type == "code":
            cell.outputs = []
            if is_grade(cell) and not is_solution(cell):
                tried = TRIED if compares(whole.get(name, "")) else ""
                words = _test_outputs(cell, transcript, tried)
                printed = transcript.tests.get(str(name), {}).get("printed")
                if words and printed and feedback != "words":
                    words += f"\nIt printed:\n{printed}"
            elif index in transcript.cells:
                _cell_outputs(cell, transcript.cells[index])
        if name is not None and is_grade(cell):
            earned, points = determine_grade(cell)
            earned = None if earned is None else float(earned)
            marks.append(Mark(name, float(points), earned, words))
        if feedback == "code" and is_grade(cell) and not is_solution(cell):
            cell.source = whole.get(name, cell.source)
    make_harmless(judged)
    return judged, marks


def _test_outputs(cell: NotebookNode, transcript: Transcript, tried: str) -> str:
    """Write what the referee says of a test as outputs; return its words."""
    points = float(cell.metadata.nbgrader.points)
    name = cell.metadata.nbgrader.grade_id
    told, mark = transcript.tests.get(name), transcript.marks.get(name)
    if transcript.points_alone:
        words = "It fails." if mark and not mark["earned"] else ""
        told = {"earned": 0.0, "words": words, "printed": "", "error": ""}
    if told is None or mark is None:
        words = transcript.trouble or "This test was not reached."
        cell.outputs = [_error("NotReached", words, words)]
        return words
    fits = type(mark["earned"]) in (int, float) and 0 <= mark["earned"] <= points
    earned = mark["earned"] if fits else 0.0
    words = ""
    if earned < points:
        words = told["words"] or "It earns a part of its points."
        if told["error"] == "NotImplementedError":
            words = f"{NOT_STARTED.capitalize()}."
        if told["earned"] == points:
            words = "The tests that you see pass; a hidden test fails."
            if said := str(mark.get("said", "")):
                words += f" It says: {said}"
            words += tried
    part = repr(float(earned)) if 0 < earned < points else None
    _cell_outputs(cell, {"printed": told["printed"], "result": part, "error": None})
    if earned == 0:
        cell.outputs.append(_error(told["error"] or "Failed", words, words))
    return words


def _error(name: str, words: str, *trace: str) -> NotebookNode:
    return new_output("error", ename=name, evalue=words, traceback=[*trace])


def _cell_outputs(cell: NotebookNode, told: dict) -> None:
    if told["printed"]:
        cell.outputs.append(new_output("stream", name="stdout", text=told["printed"]))
    if told["result"]:
        result = {"text/plain": told["result"]}
        cell.outputs.append(new_output("execute_result", result))
    if told["error"]:
        error = told["error"]
        cell.outputs.append(_error(error["type"], error["message"]))


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; style-src 'unsafe-inline'">
<style>:root {{ color-scheme: light dark }} body {{ font: 1rem/1.5 sans-serif;
max-width: 50rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ border-top: 1px solid; padding: .4rem; text-align: left;
vertical-align: top; font-weight: normal }} thead th {{ font-weight: bold }}
pre {{ white-space: pre-wrap; margin: 0 }}</style></head>
<body><main><h1>{title}</h1>{notes}<p>{total}</p>
<table><thead><tr><th scope="col">Question</th><th scope="col">Points</th>
<th scope="col">What to mend</th></tr></thead>
<tbody>
{rows}
</tbody></table>{edition}</main></body></html>
"""
EDITION_LINE = f"<p>Edition {EDITION} of the course.</p>"
ROW = '<tr><th scope="row">{cell}</th><td>{points}</td><td><pre>{words}</pre></td></tr>'


def page(
    assignment: Assignment, student: str, marks: list[Mark], notes: list[str]
) -> str:
    """Write the feedback page of one submission."""
    rows = []
    for mark in marks:
        comma = "," if mark.earned is None else ""
        points = f"{written(mark.earned)}{comma} of {mark.points:g}"
        cell, words = escape(mark.cell), escape(mark.words)
        rows.append(ROW.format(cell=cell, points=points, words=words))
    waits = any(mark.earned is None for mark in marks)
    earned = sum(mark.earned or 0.0 for mark in marks)
    total = f"{earned:g} of {sum(mark.points for mark in marks):g} points"
    total += "; written answers are still to be marked." if waits else "."
    return PAGE.format(
        title=escape(f"{assignment.title}: {student}"),
        notes="".join(f"<p>{escape(note)}</p>" for note in notes),
        total=total,
        edition="" if assignment.notebook else EDITION_LINE,
        rows="\n".join(rows),
    )


def written(earned: float | None) -> str:
    """Write a mark."""
    return "by hand" if earned is None else f"{earned:g}"
