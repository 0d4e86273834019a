"""The same notebook through nbgrader itself: the stock command, a kernel for each student, every cell run.

The mutants run in a quicker way (``course_lib.grading.mutants``); here two of them show that it marks as nbgrader does.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from course_lib.grading.mutants import change, load_cases, run_cases
from course_lib.grading.release import release
from course_lib.grading.source import read_source

ROOT = Path(__file__).resolve().parents[2]
NAME = "attention"
SECONDS = 60  # on two cores; the assignment promises it

SAMPLE = ["entropy_in_bits", "ready_made_attention"]

pytestmark = pytest.mark.slow

Scores = dict[str, float | None]


@dataclass(frozen=True)
class Graded:
    """By student: what `nbgrader autograde` gives for each question, and what each cell printed."""

    scores: dict[str, Scores]
    printed: dict[str, dict[str, str]]


def with_answers_of(released: NotebookNode, solved: NotebookNode) -> NotebookNode:
    """Put the answers of a solution notebook into the student's one, as a student would who thought of them."""
    answers = {
        c.metadata.nbgrader.grade_id: c.source for c in solved.cells if c.metadata.get("nbgrader", {}).get("solution")
    }
    submission = nbformat.from_dict(released)
    for cell in submission.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = answers[cell.metadata.nbgrader.grade_id]
    return submission


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    course = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "nbgrader_config.py", course)
    (course / "solutions" / NAME).mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / NAME / f"{NAME}.py", course / "solutions" / NAME)
    released = release(NAME, course)
    source = read_source(ROOT / "solutions" / NAME / f"{NAME}.py")
    changes = {case.name: case.changes for cases in load_cases(NAME, ROOT) for case in cases}
    submissions = {
        "reference": with_answers_of(nbformat.read(released, 4), source),
        "blank": nbformat.read(released, 4),
    }
    watch = nbformat.v4.new_code_cell("import time; print(time.process_time())", id="used")
    submissions["reference"].cells.append(watch)
    for case in SAMPLE:
        submissions[case] = with_answers_of(nbformat.read(released, 4), change(source, changes[case]))
    for student, notebook in submissions.items():
        folder = course / "submitted" / student / NAME
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{NAME}.ipynb")
    nbgrader = Path(sys.executable).with_name("nbgrader")
    subprocess.run([nbgrader, "autograde", NAME, "--create"], cwd=course, check=True, capture_output=True)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        scores = {
            student: {
                grade.cell.name: grade.auto_score
                for grade in gradebook.find_submission_notebook(NAME, NAME, student).grades
            }
            for student in submissions
        }
    printed = {
        student: {
            cell.id: "".join(output.get("text", "") for output in cell.outputs)
            for cell in nbformat.read(course / "autograded" / student / NAME / f"{NAME}.ipynb", 4).cells
            if cell.cell_type == "code"
        }
        for student in submissions
    }
    return Graded(scores, printed)


def test_the_solution_gets_every_automatic_point(graded: Graded) -> None:
    source = read_source(ROOT / "solutions" / NAME / f"{NAME}.py")
    points = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code"
    }
    by_hand = {"explain": None}
    assert graded.scores["reference"] == points | by_hand


def test_the_blank_release_gets_nothing(graded: Graded) -> None:
    assert set(graded.scores["blank"]) == set(graded.scores["reference"])
    assert all(score == 0 for score in graded.scores["blank"].values())


@pytest.mark.parametrize("case", SAMPLE)
def test_nbgrader_marks_this_answer_as_the_mutants_were_marked(graded: Graded, case: str) -> None:
    quick = {cell: mark.points for cell, mark in run_cases(NAME, ROOT)[case].grader.items()}
    assert {cell: score for cell, score in graded.scores[case].items() if cell != "explain"} == quick


def test_the_solution_runs_within_a_minute(graded: Graded) -> None:
    """Processor time of the whole notebook: unlike the clock, it does not depend on who else is working."""
    assert float(graded.printed["reference"]["used"]) < SECONDS


def test_the_trained_model_aligns_as_no_untrained_one_does(graded: Graded) -> None:
    """Reads what the student reads: the error rate of the trained model, and of its two controls."""
    rates = {
        line.partition(",")[2].partition(":")[0].strip(): float(line.rpartition(":")[2])
        for line in graded.printed["reference"]["translator"].splitlines()
        if line.startswith("alignment error rate")
    }
    assert set(rates) == {"trained", "untrained", "trained, source order shuffled"}
    assert rates["trained"] < 0.4
    assert rates["untrained"] > 0.7
    assert rates["trained, source order shuffled"] > 0.7


def test_a_phrase_that_was_never_seen_is_turned_round(graded: Graded) -> None:
    printed = graded.printed["reference"]
    for pair in ("zone looks at area", "économique looks at economic", "européenne looks at european"):
        assert pair in printed["picture"]
    assert printed["translate"].splitlines()[1] == "la zone économique européenne soutient le nouveau traité"
