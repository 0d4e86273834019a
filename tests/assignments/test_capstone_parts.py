"""The capstone is made of the other assignments: what a student assembles is what the
instructor's capstone holds."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
import torch
from expect import assert_near
from safetensors import safe_open
from safetensors.torch import load_file

from course_lab.ch06_pretraining.shipped import CHECKPOINTS, load_shipped
from course_tools.grading.assignments.assemble import ASSEMBLED, assemble
from course_tools.grading.assignments.release import assignments
from course_tools.grading.assignments.source import (
    AssignmentError,
    joined_parts,
    others,
    parts_of,
    read_source,
    write_notebook,
)

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "solutions"
CAPSTONE = read_source(SOLUTIONS / "capstone" / "capstone.py")


def test_every_assignment_that_builds_bert_has_a_part_in_it():
    assert others(CAPSTONE) == sorted(
        {*assignments(ROOT)} - {"capstone", "family", "modern"}
    )


def test_the_reference_answers_of_all_assignments_assemble_to_the_reference_capstone(
    tmp_path,
):
    for name in others(CAPSTONE):
        (tmp_path / name).mkdir()
        write_notebook(
            read_source(SOLUTIONS / name / f"{name}.py"),
            tmp_path / name / f"{name}.ipynb",
        )
    (tmp_path / "capstone").mkdir()
    path = Path(
        shutil.copy(
            ROOT / "exercises" / "capstone" / "capstone.ipynb", tmp_path / "capstone"
        )
    )
    assert [part for part in assemble(path) if part.problem] == []

    filled = [
        cell for cell in nbformat.read(path, as_version=4).cells if parts_of(cell)
    ]
    assert len(filled) == 6  # five of the student's, and one that Assignment 3 gives
    for cell in filled:
        lines = cell.source.removeprefix(ASSEMBLED).splitlines()
        without_marks = "\n".join(
            line for line in lines if "### BEGIN" not in line and "### END" not in line
        )
        assert without_marks.strip() == joined_parts(cell, SOLUTIONS)


@pytest.mark.parametrize(
    ("part", "words"),
    [("bert/heads", "bert has no cell heads"), ("gpt/embed", "gpt.py does not exist")],
)
def test_a_part_that_no_assignment_has_is_refused_at_release(part, words):
    cell = nbformat.v4.new_code_cell(
        "# {parts}", metadata={"parts": [part], "nbgrader": {"grade_id": "model"}}
    )
    with pytest.raises(AssignmentError, match=words):
        joined_parts(cell, SOLUTIONS)


def test_the_capstone_ships_the_published_tiny_and_what_the_library_gives_for_it():
    file = SOLUTIONS / "capstone" / "published.safetensors"
    published = load_file(CHECKPOINTS / "tiny" / "model.safetensors")
    shipped = load_file(file)
    assert published.keys() == shipped.keys()
    assert all(torch.equal(published[name], shipped[name]) for name in published)

    with safe_open(file, "pt") as opened:
        facts = json.loads(opened.metadata()["course"])
    model, tokenizer = load_shipped("tiny")
    assert facts["vocab"] == tokenizer.pieces
    for text, ids, expected in zip(
        *(facts["recorded"][key] for key in ("texts", "ids", "hidden")), strict=True
    ):
        assert tokenizer.encode(text).ids == ids
        with torch.no_grad():
            states = model.eval().bert(torch.tensor([ids])).last_hidden_state
        assert_near(states[0, :, :3], torch.tensor(expected), 1e-5, 1e-5)
