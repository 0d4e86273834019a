"""The same notebook through nbgrader itself: stock commands, a kernel for each student, every cell run.

The mutants run in a quicker way (``course_lib.grading.mutants``); here a few of them show that it marks as nbgrader does.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from course_lib.grading.mutants import change, load_cases, run_cases
from course_lib.grading.release import release
from course_lib.grading.source import read_source

ROOT = Path(__file__).resolve().parents[2]
NAME = "attention"
SECONDS = 60  # on two cores; the assignment promises it

SAMPLE = ["entropy_in_bits", "ready_made_attention", "beam_that_stops_early"]

pytestmark = pytest.mark.slow


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
def marks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float | None]]:
    """What `nbgrader autograde` gives to each student, question by question."""
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
    for case in SAMPLE:
        submissions[case] = with_answers_of(nbformat.read(released, 4), change(source, changes[case]))
    for student, notebook in submissions.items():
        folder = course / "submitted" / student / NAME
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{NAME}.ipynb")
    nbgrader = Path(sys.executable).with_name("nbgrader")
    subprocess.run([nbgrader, "autograde", NAME, "--create"], cwd=course, check=True, capture_output=True)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            student: {
                grade.cell.name: grade.auto_score
                for grade in gradebook.find_submission_notebook(NAME, NAME, student).grades
            }
            for student in submissions
        }


def test_the_solution_gets_every_automatic_point(marks: dict[str, dict[str, float | None]]) -> None:
    source = read_source(ROOT / "solutions" / NAME / f"{NAME}.py")
    points = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code"
    }
    by_hand = {"explain": None}
    assert marks["reference"] == points | by_hand


def test_the_blank_release_gets_nothing(marks: dict[str, dict[str, float | None]]) -> None:
    assert set(marks["blank"]) == set(marks["reference"])
    assert all(score == 0 for score in marks["blank"].values())


@pytest.mark.parametrize("case", SAMPLE)
def test_nbgrader_marks_this_answer_as_the_mutants_were_marked(
    marks: dict[str, dict[str, float | None]], case: str
) -> None:
    quick = {cell: mark.points for cell, mark in run_cases(NAME, ROOT)[case].grader.items()}
    assert {cell: score for cell, score in marks[case].items() if cell != "explain"} == quick


def test_the_solution_runs_within_a_minute_and_aligns_as_no_untrained_model_does() -> None:
    """Reads what the student reads: error rates of the trained model and of its two controls, and the translations."""
    notebook = read_source(ROOT / "solutions" / NAME / f"{NAME}.py")
    start = time.process_time(), time.monotonic()
    client = NotebookClient(notebook, timeout=10 * SECONDS, record_timing=True)
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
        used = notebook_cpu_seconds(client)
    assert start
    printed = {
        cell.id: "".join(output.get("text", "") for output in cell.get("outputs", []))
        for cell in notebook.cells
        if cell.cell_type == "code"
    }
    rates = {
        line.partition(",")[2].partition(":")[0].strip(): float(line.rpartition(":")[2])
        for line in printed["translator"].splitlines()
        if line.startswith("alignment error rate")
    }
    assert set(rates) == {"trained", "untrained", "trained, source order shuffled"}
    assert rates["trained"] < 0.4
    assert rates["untrained"] > 0.7
    assert rates["trained, source order shuffled"] > 0.7
    assert "zone looks at area" in printed["picture"]
    assert "européenne looks at european" in printed["picture"]
    assert "la zone économique européenne soutient le nouveau traité" in printed["translate"].splitlines()[1]
    assert used < SECONDS


def notebook_cpu_seconds(client: NotebookClient) -> float:
    """Ask the kernel for the processor time it has used: unlike the clock, it does not depend on who else is working."""
    cell = nbformat.v4.new_code_cell("import time; print(time.process_time())")
    client.nb.cells.append(cell)
    client.execute_cell(cell, len(client.nb.cells) - 1)
    return float(cell.outputs[0].text)
