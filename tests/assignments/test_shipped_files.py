"""A file that an assignment ships: it reaches the student whole, and changing it gains
nothing."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from expect import refusal
from known_answers import known_answers, run_known
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from reference import module
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from stock import compare_only
from whole import WHOLE

from course_lib.data import load
from course_tools.grading.assignments.release import release
from course_tools.grading.assignments.source import AssignmentError, read_source
from course_tools.grading.check.check import check

ROOT = Path(__file__).resolve().parents[2]
NAME = "transformer"
FILE = "translator.safetensors"
SOLUTIONS = ROOT / "solutions" / NAME
TRANSLATION = "greedy-translation"

#: Where the translation test must send a student whose mistake another cell is about,
#: by the start of its name.
PART = {
    "attention": "Part 1 (",
    "multi-head": "Part 2 (",
    "masks": "Part 3 (",
    "positions": "Part 4 (",
    "layer-norm": "Part 5 (",
    "encoder-block": "Part 6 (",
    "decoder-block": "Part 7 (",
    "greedy": "Look at Part 8, greedy_decode",
}


@pytest.fixture
def course(tmp_path):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    built = shutil.ignore_patterns("*.ipynb", ".*", "__pycache__")
    shutil.copytree(SOLUTIONS, tmp_path / "solutions" / NAME, ignore=built)
    return tmp_path


@pytest.fixture(scope="module")
def source():
    return read_source(SOLUTIONS / f"{NAME}.py")


@pytest.fixture(scope="module")
def loader(source, tmp_path_factory):
    """The notebook's own loader, as a module."""
    cell = next(cell for cell in source.cells if cell["id"] == "model")
    path = tmp_path_factory.mktemp("loader") / "loader.py"
    path.write_text(
        f'import torch\n\ndevice = "cpu"\n{cell.source}\n', encoding="utf-8"
    )
    return module(path)


def with_answers(released: NotebookNode, source: NotebookNode) -> NotebookNode:
    submission = nbformat.from_dict(released)
    answers = {
        cell["id"]: cell.source
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    for cell in submission.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = answers[cell.metadata.nbgrader.grade_id]
    return submission


def tampered(path: Path) -> None:
    """Write a checkpoint with the same names and shapes and other weights."""
    with safe_open(SOLUTIONS / FILE, "pt") as file:
        facts = file.metadata()
    weights = load_file(SOLUTIONS / FILE)
    weights["target_embedding.weight"] = (
        weights["target_embedding.weight"].flip(0).contiguous()
    )
    save_file(weights, path, facts)


def test_a_missing_file_is_named_with_what_to_do(loader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refusal(
        f"{FILE} is not in the folder of this notebook.*On Colab, open the Files",
        FileNotFoundError,
    ):
        loader.load_translator()


@pytest.mark.parametrize(
    "damage", ["tampered", "cut off", "empty", "not a safetensors file"]
)
def test_a_file_that_was_not_released_is_refused_before_it_is_read(
    loader, tmp_path, monkeypatch, damage
):
    whole = (SOLUTIONS / FILE).read_bytes()
    if damage == "tampered":
        tampered(tmp_path / FILE)
    else:
        damaged = {
            "cut off": whole[:-1],
            "empty": b"",
            "not a safetensors file": b"import os",
        }
        (tmp_path / FILE).write_bytes(damaged[damage])
    monkeypatch.chdir(tmp_path)
    with refusal("is not the file that belongs to this notebook"):
        loader.load_translator()


def test_a_declared_file_that_is_not_there_stops_the_release(course):
    (course / "solutions" / NAME / FILE).unlink()
    with refusal(rf"{FILE}.*does not exist", AssignmentError):
        release(NAME, course, database=False)


@pytest.mark.parametrize(
    "file", ["weights.pt", "model.py", "../attention/weights.safetensors"]
)
def test_only_weights_beside_the_source_can_be_shipped(course, file):
    path = course / "solutions" / NAME / f"{NAME}.py"
    text = path.read_text(encoding="utf-8").replace(
        "#     ships:\n", f"#     ships:\n#       - {file}\n"
    )
    path.write_text(text, encoding="utf-8")
    with refusal("cannot be shipped", AssignmentError):
        release(NAME, course, database=False)


def test_an_undeclared_file_does_not_reach_the_students(course):
    shutil.copy(
        course / "solutions" / NAME / FILE,
        course / "solutions" / NAME / "other.safetensors",
    )
    with refusal(r"other\.safetensors lies beside the notebook", AssignmentError):
        release(NAME, course, database=False)


def test_a_solution_in_the_header_of_a_shipped_file_is_found(course):
    path = course / "solutions" / NAME / FILE
    line = 'scores = scores.masked_fill(~mask, float("-inf"))'
    save_file(load_file(path), path, {"course": json.dumps({"note": line})})
    with refusal(f"{FILE} holds .*masked_fill", AssignmentError):
        release(NAME, course, database=False)


def test_the_file_says_what_it_is_and_where_it_comes_from():
    with safe_open(SOLUTIONS / FILE, "pt") as file:
        facts = json.loads(file.metadata()["course"])
    tensors = load_file(SOLUTIONS / FILE)
    weights = [
        tensor for name, tensor in tensors.items() if not name.startswith("trace.")
    ]
    assert sum(tensor.numel() for tensor in weights) == facts["parameters"]
    assert (ROOT / facts["made_by"]).is_file()
    assert facts["test_exact_match"] > 0.98
    assert (SOLUTIONS / FILE).stat().st_size < 310_000
    introduction = read_source(SOLUTIONS / f"{NAME}.py").cells[0].source
    assert f"{facts['parameters']:,} trained numbers" in introduction


@pytest.mark.slow
def test_the_sentences_to_translate_are_of_the_test_split_and_none_was_trained_on(
    source,
):
    data = load("translation", source="embedded")
    test = set(zip(data["test"]["en"], data["test"]["fr"], strict=True))
    train = set(data["train"]["en"])
    cell = next(cell for cell in source.cells if cell["id"] == TRANSLATION)
    pairs = re.findall(r"^([a-z' ]+ [a-z' ]+) = ([\w' ]+)$", cell.source, re.MULTILINE)
    assert len(pairs) == 9 + 40
    assert set(pairs) <= test
    assert not {english for english, _ in pairs} & train


@pytest.mark.slow
def test_wrong_translations_send_the_student_to_the_part_with_the_mistake():
    mutants, outcomes = known_answers(NAME)[0], run_known(NAME)
    sent, astray = 0, {}
    for mutant in mutants:
        mark = outcomes[mutant.name].student[TRANSLATION]
        if (
            mark.points == mark.max_points
            or mutant.cell == TRANSLATION
            or "NotImplementedError" in mark.words
        ):
            continue
        part = next(
            words for cell, words in PART.items() if mutant.cell.startswith(cell)
        )
        sent += 1
        if part not in mark.words:
            astray[mutant.name] = mark.words
    assert astray == {}
    assert sent > len(mutants) / 3


@pytest.mark.slow
def test_course_check_finds_the_file_and_passes_the_solution(source, tmp_path):
    released = nbformat.read(ROOT / "exercises" / NAME / f"{NAME}.ipynb", 4)
    nbformat.write(with_answers(released, source), tmp_path / f"{NAME}.ipynb")
    report = check(tmp_path / f"{NAME}.ipynb")
    assert report.problems == []


@pytest.fixture(scope="module")
def graded(source, tmp_path_factory):
    """Four students through stock nbgrader: none hands in the file that was
    released."""
    if not WHOLE:
        pytest.skip("a kernel for each of four students: make test-grading")
    course = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "nbgrader_config.py", course)
    built = shutil.ignore_patterns("*.ipynb", ".*", "__pycache__")
    own = course / "solutions" / NAME
    shutil.copytree(SOLUTIONS, own, ignore=built)
    compare_only(own / f"{NAME}.py")
    blank = nbformat.read(release(NAME, course), 4)
    right = with_answers(blank, source)
    wrong = with_answers(blank, source)
    for cell in wrong.cells:
        cell.source = cell.source.replace(
            "self.to_output(merge_heads(mixed)), weights", "merge_heads(mixed), weights"
        )
    for student, notebook in (
        ("without-the-file", right),
        ("own-file", right),
        ("own-file-wrong", wrong),
        ("blank", blank),
    ):
        folder = course / "submitted" / student / NAME
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{NAME}.ipynb")
        if student.startswith("own-file"):
            tampered(folder / FILE)
    nbgrader = Path(sys.executable).with_name("nbgrader")
    subprocess.run(
        [nbgrader, "autograde", NAME, "--create"],
        cwd=course,
        check=True,
        capture_output=True,
    )
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        scores = {
            folder.name: {
                grade.cell.name: (grade.auto_score, grade.max_score)
                for grade in gradebook.find_submission_notebook(
                    NAME, NAME, folder.name
                ).grades
                if grade.cell.cell_type == "code"
            }
            for folder in (course / "submitted").iterdir()
        }
    return course, scores


@pytest.mark.slow
@pytest.mark.parametrize("student", ["without-the-file", "own-file"])
def test_the_grader_puts_the_released_file_in_place(graded, student):
    course, scores = graded
    assert (course / "autograded" / student / NAME / FILE).read_bytes() == (
        SOLUTIONS / FILE
    ).read_bytes()
    assert all(score == most for score, most in scores[student].values()), scores[
        student
    ]


@pytest.mark.slow
def test_a_wrong_part_does_not_translate_whatever_file_is_handed_in(graded):
    _, scores = graded
    failed = {
        cell for cell, (score, most) in scores["own-file-wrong"].items() if score < most
    }
    assert failed == {"multi-head-values", TRANSLATION}


@pytest.mark.slow
def test_a_blank_notebook_gets_nothing(graded):
    _, scores = graded
    assert {score for score, _ in scores["blank"].values()} == {0.0}
