"""Forty wrong answers to each assignment: what their students get back has words, and
no line and no value of a hidden test.

The answers run once for all tests (`known_answers`); what a kernel would have left of
each run, at its worst, is written around what it said: the whole cell in its
traceback, at every third hidden line in turn, and every hidden value printed. What
nbgrader makes of the cells of all of them it makes in one document.
"""

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from known_answers import known_answers, run_known
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook, new_output
from nbgrader.converters import GenerateFeedback
from nbgrader.utils import is_solution
from whole import EVERY, WHOLE, some

from course_tools.grading.assignments.comparing import Draw
from course_tools.grading.assignments.comparisons import WRITTEN, _scope
from course_tools.grading.assignments.hidden_words import hidden_lines, in_words
from course_tools.grading.assignments.mutants import Mutant, change
from course_tools.grading.assignments.release import assignments
from course_tools.grading.nbgrader.give_back import FAILS, make_fit
from course_tools.grading.run.assignment import Assignment, load
from course_tools.grading.run.execute import Transcript
from course_tools.grading.run.judge import judge, page

ROOT = Path(__file__).resolve().parents[2]
WRONG = 40
REST = "all others"  # the part of a document that each answer has
PART = "PART OF "  # begins what one answer has of the document

pytestmark = pytest.mark.slow


def hidden_rows(source: str) -> list[tuple[int, str]]:
    """The lines that tell something, with their numbers."""
    rows = enumerate(source.split("\n"), start=1)
    hidden = hidden_lines(source)
    return [(n, row.strip()) for n, row in rows if n in hidden and len(row) > 8]


def values(value: Any) -> Iterator[str]:
    """What can be recognised of a value, as it would be written."""
    if isinstance(value, torch.Tensor):
        yield from values(value.detach().double().flatten()[:20].tolist())
    elif isinstance(value, dict):
        yield from values([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from values(part)
    elif isinstance(value, str) and len(value) > 8:
        yield value
    elif isinstance(value, int | float) and len(text := str(value)) > 5:
        yield text[:7]  # as torch rounds


@cache
def compared(packed: str, label: str, seed: str) -> frozenset[str]:
    """The inputs that a comparison draws."""
    cases = _scope(packed)["COMPARISONS"][label].cases(Draw(int(seed)))
    return frozenset(v for case in cases for v in values([case.args, case.kwargs]))


@cache
def secrets(source: str, released: str) -> frozenset[str]:
    """The hidden lines of a cell and what they ask for, but for what all students
    see."""
    found = frozenset(row for _, row in hidden_rows(source))
    for comparison in WRITTEN.findall(source):
        found |= compared(*comparison)
    return found - found_in(found, released)


@cache
def found_in(secret: frozenset[str], text: str) -> frozenset[str]:
    """The secrets that stand in a text."""
    return frozenset(one for one in secret if one in text)


def executed(
    notebook: NotebookNode, mutant: Mutant, said: str, line: int, prints: str
) -> tuple[NotebookNode, NotebookNode]:
    """What `nbgrader autograde` has of an answer before its last step; and its cell."""
    copy = nbformat.from_dict(notebook)
    name, _, message = said.partition(": ")
    [cell] = [c for c in copy.cells if c["id"] == mutant.cell]
    trace = [f"{name}  Traceback", f"Cell In[7], line {line}\n{cell.source}", said]
    cell.outputs = [
        new_output("stream", name="stdout", text=prints),
        new_output("error", ename=name, evalue=message, traceback=trace),
    ]
    return copy, cell


def written(value: Any) -> str:
    """All texts and numbers in a part of a notebook."""
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return "\n".join(map(written, inside))
    return str(value)


@cache
def exporter() -> HTMLExporter:
    """That of `nbgrader generate_feedback`."""
    return HTMLExporter(config=GenerateFeedback().config)


def feedback(parts: dict[str, list[NotebookNode]]) -> dict[str, str]:
    """What a reader sees of cells, by the name of the part that they belong to."""
    cells = []
    for name, part in parts.items():
        cells += [new_markdown_cell(f"{PART}{name}"), *part]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata.nbgrader.setdefault("score", 0)
    about = {"notebook": "it", "score": 0, "max_score": 1, "late_penalty": 0}
    notebook = new_notebook(cells=cells)
    text = exporter().from_notebook_node(notebook, {"nbgrader": about})[0]
    text = re.sub(r"(?s)<(style|script).*?</\1>|<[^>]*>", "", text)
    _, *found = html.unescape(text).split(PART)
    return dict(zip(parts, found, strict=True))


@cache
def loaded(name: str) -> Assignment:
    return load(name, ROOT)


@cache
def our_page(name: str, failing: str, said: str) -> str:
    """The page of `course grade`, where visible tests pass and a hidden one fails."""
    assignment = loaded(name)
    points = {
        c.metadata.nbgrader.grade_id: c.metadata.nbgrader for c in assignment.tests
    }
    most = float(points[failing].points)
    told = {"words": "", "error": "", "printed": "", "earned": most}
    marks = {failing: {"earned": 0.0, "tampering": "", "said": said}}
    ran = Transcript(tests={failing: told}, marks=marks)
    _, found = judge(assignment.released, ran, assignment.instructor)
    return html.unescape(page(assignment, "ada", found, []))


@pytest.mark.parametrize("name", some(*assignments(ROOT)))
def test_wrong_answers_get_words_and_no_line_or_value_of_a_hidden_test(name):
    assignment, outcomes = loaded(name), run_known(name)
    whole = {cell["id"]: cell.source for cell in assignment.instructor.cells}
    released = "\n".join(cell.source for cell in assignment.released.cells)
    mutants = sorted(known_answers(name)[0], key=lambda one: one.caught)[:WRONG]
    assert len(mutants) == WRONG or not WHOLE
    worded, parts = 0, dict[str, list[NotebookNode]]()
    hidden = dict[str, frozenset[str]]()

    def no_secret(of: str, way: str, text: str, line: int = 0) -> None:
        leaked = found_in(hidden[of], text)
        assert not leaked, (of, way, line, leaked)

    for begin, mutant in enumerate(mutants):
        said, source = (
            outcomes[mutant.name].grader[mutant.cell].words,
            whole[mutant.cell],
        )
        answer = change(assignment.instructor, mutant.changes)
        answers = "\n".join(cell.source for cell in answer.cells if is_solution(cell))
        # what a visible test says of the student's numbers is no secret
        own_words = said if mutant.caught == "visible" else mutant.words
        secret = secrets(source, released)
        secret -= found_in(secret, f"{answers}\n{own_words}")
        hidden[mutant.name] = secret
        rows = hidden_rows(source)
        lines = [number for number, _ in rows] if mutant.caught == "hidden" else [1]
        prints, message = "\n".join(secret), said.partition(": ")[2]
        words_at = {line: in_words(source, line, message, released) for line in lines}
        # the last one's notebook is looked at whole: of it the others share the rest
        third = lines if EVERY else lines[begin % min(3, len(lines)) :: 3]
        for line in sorted(third, key=lambda line: len(words_at[line])):
            notebook, cell = executed(answer, mutant, said, line, prints)
            make_fit(notebook)
            no_secret(mutant.name, "autograded", written([cell]), line)
            page_text = our_page(name, mutant.cell, words_at[line])
            no_secret(mutant.name, "our page", page_text, line)
            [words] = [o.evalue for o in cell.outputs if o.output_type == "error"]
            assert FAILS in words if mutant.caught == "hidden" else message in words
        no_secret(mutant.name, "autograded", written(notebook.cells))
        own = [c for c in notebook.cells if c is cell or c["id"] in mutant.changes]
        parts[mutant.name] = own
        rest = [c for c in notebook.cells if c is not cell and not is_solution(c)]
        parts.setdefault(REST, rest)
        worded += bool(max(words_at.values(), key=len)) or mutant.caught == "visible"
    seen = feedback(parts)
    for mutant in mutants:
        no_secret(mutant.name, "feedback", seen[REST] + seen[mutant.name])
    assert worded >= 0.8 * len(mutants), f"{worded} of {len(mutants)} are told in words"
