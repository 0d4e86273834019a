"""The same notebook through nbgrader itself: the stock command, a kernel for each
student, every cell run.

The mutants run in a quicker way (``course_tools.grading.assignments.mutants``). A few
of them show that it marks as nbgrader does. Demonstrations, which take most of the
time, run in the reference alone: in the class's release they stand idle.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from stock import compare_only
from whole import WHOLE

from course_tools.grading.assignments.mutants import change, load_cases, run_cases
from course_tools.grading.assignments.release import release
from course_tools.grading.assignments.source import (
    answered,
    copy_idle,
    is_demonstration,
    others,
    read_source,
    ships,
)

ROOT = Path(__file__).resolve().parents[2]
SHOWN = "-shown"  # what the id of a demonstration's copy that runs ends in
SECONDS = 60  # of processor time, which the assignments promise
# what YARDSTICK takes at most where the promise holds; where it takes longer, so may
# they
YARDSTICK_SECONDS = 3
#: The last cell: what the notebook has used until then, and how fast this machine runs
#: small steps in Python and torch.
YARDSTICK = """import time, torch
used = time.process_time()
weight = torch.full((64, 64), 1 / 64)
for _ in range(100_000): weight = torch.tanh(weight @ weight)
print(used, time.process_time() - used)"""

# Of each two answers: wrong ones, and where the first is one that hidden tests alone
# see, a right one. Under stock nbgrader each comparing test starts a Python of its own,
# so that all ten assignments would take too long: the first, and the one that is made
# of parts of others. Draws of chance and watched trainings
# are in neither.
SAMPLE = {
    "attention": ["entropy_in_bits", "ready_made_attention"],
    "capstone": ["specials_left_out_after_the_softmax", "guesses_by_sorting"],
}

pytestmark = pytest.mark.slow

Scores = dict[str, float | None]


@dataclass(frozen=True)
class Graded:
    """By student: what `nbgrader autograde` gives for each question, and what each cell
    printed."""

    name: str
    source: NotebookNode
    scores: dict[str, Scores]
    printed: dict[str, dict[str, str]]

    @property
    def shown(self) -> dict[str, str]:
        """What the demonstrations printed, which run in the reference alone."""
        return {
            cell.removesuffix(SHOWN): text
            for cell, text in self.printed["reference"].items()
            if cell.endswith(SHOWN)
        }

    @property
    def by_hand(self) -> dict[str, None]:
        """The questions that a person marks: nbgrader gives none of them a score."""
        return dict.fromkeys(
            cell.metadata.nbgrader.grade_id
            for cell in graded_cells(self.source, "markdown")
        )


def graded_cells(notebook: NotebookNode, kind: str) -> list[NotebookNode]:
    """The cells of a kind that earn points."""
    return [
        c
        for c in notebook.cells
        if c.cell_type == kind and c.metadata.get("nbgrader", {}).get("grade")
    ]


def with_demonstrations_of(
    source: NotebookNode, submission: NotebookNode
) -> NotebookNode:
    """Put each demonstration of the source behind its idle copy, as a cell of the
    student's own."""
    shown = {
        cell.id: nbformat.v4.new_code_cell(cell.source, id=f"{cell.id}{SHOWN}")
        for cell in source.cells
        if is_demonstration(cell)
    }
    cells = [
        added
        for cell in submission.cells
        for added in (cell, shown.get(cell.id))
        if added is not None
    ]
    return nbformat.from_dict(submission | {"cells": cells})


def grade(name: str, course: Path) -> Graded:
    """Hand in the solution, the blank release and the sample, and let nbgrader mark
    them."""
    shutil.copy(ROOT / "nbgrader_config.py", course)
    source = read_source(ROOT / "solutions" / name / f"{name}.py")
    # the capstone is made of parts of the others
    for needed in (name, *others(source)):
        copy_idle(needed, ROOT, course)
    if others(source):  # its parts are compared where they come from
        compare_only(course / "solutions" / name / f"{name}.py", "fill_mask")
    released = release(name, course)
    changes = {
        case.name: case.changes for cases in load_cases(name, ROOT) for case in cases
    }
    submissions = {
        "reference": with_demonstrations_of(
            source, answered(nbformat.read(released, 4), source)
        ),
        "blank": nbformat.read(released, 4),
    }
    watch = nbformat.v4.new_code_cell(YARDSTICK, id="used")
    submissions["reference"].cells.append(watch)
    for case in SAMPLE[name]:
        submissions[case] = answered(
            nbformat.read(released, 4), change(source, changes[case])
        )
    for student, notebook in submissions.items():
        folder = course / "submitted" / student / name
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{name}.ipynb")
        for file in ships(source):
            shutil.copy(released.parent / file, folder)
    nbgrader = Path(sys.executable).with_name("nbgrader")
    subprocess.run(
        [nbgrader, "autograde", name, "--create"],
        cwd=course,
        check=True,
        capture_output=True,
    )
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        scores = {
            student: {
                grade.cell.name: grade.auto_score
                for grade in gradebook.find_submission_notebook(
                    name, name, student
                ).grades
            }
            for student in submissions
        }
    printed = {
        student: {
            cell.id: "".join(output.get("text", "") for output in cell.outputs)
            for cell in nbformat.read(
                course / "autograded" / student / name / f"{name}.ipynb", 4
            ).cells
            if cell.cell_type == "code"
        }
        for student in submissions
    }
    return Graded(name, source, scores, printed)


Classes = Callable[[str], Graded]


@pytest.fixture(scope="module")
def every_class(tmp_path_factory, empty_gradebook):
    """By assignment, its class; one whose tests are left out is not graded."""
    if not WHOLE:
        pytest.skip("test_cycle.py grades a class by stock nbgrader: make test-grading")

    def class_of(name: str) -> Graded:
        course = tmp_path_factory.mktemp("course")
        shutil.copy(empty_gradebook, course)
        return grade(name, course)

    return cache(class_of)


@pytest.fixture(params=SAMPLE)
def graded(request, every_class):
    return every_class(request.param)


@pytest.fixture
def attention(every_class):
    return every_class("attention")


def test_the_solution_gets_every_automatic_point(graded):
    points = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in graded_cells(graded.source, "code")
    }
    assert points
    assert graded.scores["reference"] == points | graded.by_hand


def test_the_blank_release_gets_nothing(graded):
    assert set(graded.scores["blank"]) == set(graded.scores["reference"])
    assert all(score == 0 for score in graded.scores["blank"].values())


def test_nbgrader_marks_these_answers_as_the_mutants_were_marked(graded):
    quick = run_cases(graded.name, ROOT, only=SAMPLE[graded.name])
    for case in SAMPLE[graded.name]:
        marks = {cell: mark.points for cell, mark in quick[case].grader.items()}
        assert graded.scores[case] == marks | graded.by_hand


def test_the_solution_runs_within_a_minute(graded):
    """In processor time, which does not depend on who else is working, and measured by
    this machine's own speed."""
    used, yardstick = map(float, graded.printed["reference"]["used"].split())
    assert used < SECONDS * max(1, yardstick / YARDSTICK_SECONDS)


def test_the_trained_model_aligns_as_no_untrained_one_does(attention):
    """Reads what the student reads: the error rate of the trained model, and of its two
    controls."""
    rates = {
        line.partition(",")[2].partition(":")[0].strip(): float(line.rpartition(":")[2])
        for line in attention.shown["translator"].splitlines()
        if line.startswith("alignment error rate")
    }
    assert set(rates) == {"trained", "untrained", "trained, source order shuffled"}
    assert rates["trained"] < 0.4
    assert rates["untrained"] > 0.7
    assert rates["trained, source order shuffled"] > 0.7


def test_a_phrase_that_was_never_seen_is_turned_round(attention):
    shown = attention.shown
    for pair in (
        "zone looks at area",
        "économique looks at economic",
        "européenne looks at european",
    ):
        assert pair in shown["picture"]
    assert (
        shown["translate"].splitlines()[1]
        == "la zone économique européenne soutient le nouveau traité"
    )
