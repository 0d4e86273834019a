"""What a :class:`Reader` does with a submission: texts go in, texts come out.

A notebook goes in as the text of its file, or as the text that `prepared` made of it,
and comes out the same way; no object made of it leaves the child in which these run.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import compute_checksum, is_task

from course_tools.grading.check.check_run import as_graded
from course_tools.grading.check.check_structure import (
    by_name,
    grade_id,
    structure_problems,
)
from course_tools.grading.check.notebook_files import open_notebook
from course_tools.grading.reports.fingerprints import Lines, fingerprints
from course_tools.grading.run import rounds
from course_tools.grading.run.assignment import Assignment
from course_tools.grading.run.execute import Transcript
from course_tools.grading.run.judge import Mark, judge, page, written
from course_tools.grading.run.plain_course import with_locks
from course_tools.grading.run.plan import steps
from course_tools.grading.run.reader import BOUNDS, Bounds, CannotRead, Reader
from course_tools.grading.shown import shown

#: What the restored notebook makes good, and a person should know of.
TOLD = {"deleted", "duplicated", "retyped", "altered", "tampered", "moved", "tagged"}
TOLD |= {"unknown", "unmarked"}
#: Notes of one kind of which a person is told; more than that is one note.
MOST_NOTES = 50
#: Fingerprints of what somebody wrote: the longest model answer has some 300. Who hands
#: in all code there is would be like everybody else.
MOST_FINGERPRINTS = 2_000


def reader_of(assignment: Assignment, bounds: Bounds = BOUNDS) -> Reader:
    """A reader that knows an assignment: it prepares, judges and judges again."""
    # Before it is forked, what is made at its first use, such as nbformat's compiled
    # schema: each child would make it for its one submission.
    released = json.dumps(assignment.released)
    first = prepared(assignment, released, assignment.name)
    judged(assignment, "", first["notebook"], asdict(Transcript()), [])
    functions = (prepared, judged, judged_again)
    known = {function.__name__: partial(function, assignment) for function in functions}
    return Reader(known, bounds)


def opened(text: str, name: str) -> NotebookNode:
    """Take the text of a file for a notebook that was made from a released one."""
    notebook = open_notebook(text, name)
    if not any(grade_id(cell) for cell in notebook.cells):
        unmarked = f"{name} has no cell marked for grading"
        raise CannotRead(f"{unmarked}: it was not made from the released notebook.")
    return notebook


def readable(text: str, name: str) -> bool:
    """Whether the text of a file is a notebook that can be graded."""
    return bool(opened(text, name).cells)


def written_code(restored: Collection[str], text: str, name: str) -> tuple[Lines, int]:
    """The fingerprints of what a student wrote: all code but the cells whose released
    text counts."""
    cells = [cell for cell in opened(text, name).cells if cell.cell_type == "code"]
    found = fingerprints(c.source for c in cells if grade_id(c) not in restored)
    if sum(map(len, found[0].values())) > MOST_FINGERPRINTS:
        raise CannotRead(f"{name} has too much code to be compared.")
    return found


def prepared(assignment: Assignment, text: str, name: str) -> dict[str, Any]:
    """Say what is to be run of a submission."""
    submitted = opened(text, name)
    if assignment.notebook:
        with_locks(submitted)
    found = structure_problems(submitted, assignment.released)
    problems = [problem for problem in found if problem.kind in TOLD]
    notes = [shown(problem.message) for problem in problems[:MOST_NOTES]]
    if more := len(problems) - len(notes):
        notes.append(f"{more} more such findings are left out.")
    restored = as_graded(submitted, assignment.released)
    both = assignment.instructor, assignment.released
    plan = steps(*both, restored, assignment.split)
    return {"notebook": json.dumps(restored), "steps": plan, "notes": notes}


def judged(
    assignment: Assignment,
    student: str,
    text: str,
    told: Mapping[str, Any],
    notes: list[str],
) -> dict[str, Any]:
    """Mark a submission that has run."""
    restored, transcript = nbformat.from_dict(json.loads(text)), _transcript(told)
    notes = [*notes, *rounds.words(transcript)]
    if transcript.trouble:
        notes.append(transcript.trouble)
    if over := transcript.over:
        notes.append(
            f"The submission's processes took together {over}, and were ended."
        )
    notebook, marks = judge(
        restored, transcript, assignment.instructor, assignment.feedback
    )
    cells = by_name(restored.cells).items()
    return {
        "notebook": nbformat.v4.writes(notebook),
        "marks": [asdict(mark) for mark in marks],
        "notes": notes,
        "unanswered": [name for name, cell in cells if _as_released(cell)],
        "page": page(assignment, student, marks, notes),
    }


def judged_again(
    assignment: Assignment,
    student: str,
    text: str,
    told: Mapping[str, Any],
    notes: list[str],
    question: str,
    kept: Mapping[str, float | None],
    before: str,
) -> dict[str, Any]:
    """Mark one question of a submission that has run again; all other marks stay."""
    restored, transcript = nbformat.from_dict(json.loads(text)), _transcript(told)
    notebook, marks = judge(
        restored, transcript, assignment.instructor, assignment.feedback
    )
    mark = next(mark for mark in marks if mark.cell == question)
    said = [words for words in rounds.words(transcript) if words not in notes]
    notes = [*notes, *said]
    if (old := kept.get(question)) != mark.earned:
        change = f"{written(old)} -> {written(mark.earned)}"
        notes.append(f"{question} was judged again with a mended test: {change}.")
    if before:
        fresh = by_name(notebook.cells)[question]
        notebook = nbformat.reads(before, as_version=4)
        notebook.cells = [
            fresh if grade_id(cell) == question else cell for cell in notebook.cells
        ]
    shown_marks = [one if one is mark else _kept(one, kept) for one in marks]
    return {
        "notebook": nbformat.v4.writes(notebook),
        "earned": mark.earned,
        "notes": notes,
        "page": page(assignment, student, shown_marks, notes),
    }


def _kept(mark: Mark, kept: Mapping[str, float | None]) -> Mark:
    """A question that keeps its mark; today's words only where they explain it."""
    earned = kept.get(mark.cell, 0.0)
    if earned == mark.earned:
        return mark
    return Mark(mark.cell, mark.points, earned, "This question was not judged again.")


def _as_released(cell: NotebookNode) -> bool:
    same = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
    return same and not is_task(cell)


def _transcript(told: Mapping[str, Any]) -> Transcript:
    """JSON writes the places of cells as texts."""
    cells = {int(index): cell for index, cell in told["cells"].items()}
    return Transcript(**{**told, "cells": cells})
