"""Why a test cell that gives part of its points must end in a plain Python float: what
nbgrader makes of anything else."""

from __future__ import annotations

import pytest
from classroom import Classroom
from mini_assignment import graded_cell, solution_cell
from nbformat.v4 import new_notebook

pytestmark = pytest.mark.slow

# The last line of a test cell worth 4 points, and the mark that nbgrader gives for it.
ENDINGS = {
    "float": ("1.5", 1.5),
    "integer": ("1", 1.0),
    "zero": ("0.0", 0.0),
    "nothing": ("None", 4.0),
    "false": ("False", 4.0),
    "negative": ("-1.0", 4.0),
    "not-a-number": ("float('nan')", 4.0),
    "numpy-scalar": ("np.float64(1.5)", 4.0),
    "tensor": ("torch.tensor(1.5)", 4.0),
}


def test_anything_but_a_plain_number_gets_full_marks(tmp_path):
    cells = [solution_cell("answer", "import numpy as np\nimport torch")]
    cells += [graded_cell(name, ending, 4) for name, (ending, _) in ENDINGS.items()]
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    classroom = Classroom.create(tmp_path / "course")
    classroom.add_source("partial", notebook)
    classroom.run("nbgrader generate_assignment partial")
    submission = classroom.released("partial")
    submission.cells[0].source = cells[0].source
    classroom.submit("partial", "ada", submission)
    classroom.run("nbgrader autograde partial")
    assert classroom.scores("partial", "ada") == {
        name: mark for name, (_, mark) in ENDINGS.items()
    }
