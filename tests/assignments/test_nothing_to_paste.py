"""No answer stands on a page, in the library or in torch: the nearest code, pasted for
each answer, gets at most a third of that answer's points.

What is pasted, and what counts as nearest, is in ``mutants/pasted.py``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import for_each
from whole import WHOLE

from course_tools.grading.assignments.release import assignments

ROOT = Path(__file__).resolve().parents[2]
MOST = 1 / 3

pytestmark = pytest.mark.slow


def shares(name: str) -> dict[str, float]:
    """By answer cell, the greatest share of its points that a paste gets."""
    program = Path(__file__).with_name("mutants") / "pasted.py"
    done = subprocess.run(
        [sys.executable, program, name],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[tuple[str, float]]] = json.loads(done.stdout)
    return {cell: max(share for _, share in of) for cell, of in found.items()}


@for_each("name", assignments(ROOT) if WHOLE else ["attention"])
def test_the_nearest_code_gets_a_third_of_an_answer_s_points_at_most(name):
    too_much = {cell: share for cell, share in shares(name).items() if share > MOST}
    assert too_much == {}
