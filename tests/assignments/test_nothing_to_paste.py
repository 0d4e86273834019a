"""No answer stands on a page, in the library or in torch: the nearest code, pasted for
each answer, gets at most a third of that answer's points.

What is pasted, and what counts as nearest, is in ``mutants/pasted.py``.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from cases import for_each
from whole import some

from course_tools.grading.assignments.release import assignments

ROOT = Path(__file__).resolve().parents[2]
MOST = 1 / 3
NAMES = some(*assignments(ROOT))

pytestmark = pytest.mark.slow


@cache
def shares() -> dict[str, dict[str, list[tuple[str, float]]]]:
    """By assignment and answer cell, the share of its points that each paste gets."""
    program = Path(__file__).with_name("mutants") / "pasted.py"
    done = subprocess.run(
        [sys.executable, program, *NAMES],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@for_each("name", NAMES)
def test_the_nearest_code_gets_a_third_of_an_answer_s_points_at_most(name):
    of_cells = shares()[name]
    greatest = {cell: max(share for _, share in of) for cell, of in of_cells.items()}
    assert greatest
    assert {cell: share for cell, share in greatest.items() if share > MOST} == {}
