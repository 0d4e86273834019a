"""A plain nbgrader course through stock nbgrader and `course grade`, side by side."""

from __future__ import annotations

import shutil
from itertools import islice

import pytest
from plain_class import (
    THERE,
    WORKS,
    FEW,
    PlainClassroom,
    hand_in,
    open_course,
    recorded,
)
from walled import need_a_sandbox
from whole import WHOLE

from course_tools.grading.run.plain_course import load_notebook
from course_tools.grading.run.split import kept

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """One class, graded by stock nbgrader and by us."""
    need_a_sandbox()
    folder = tmp_path_factory.mktemp("plain")
    stock = open_course(folder / "stock")
    for assignment in ("ps1", "ps2"):
        works = [one for one in WORKS.items() if one[1].assignment == assignment]
        for student, work in islice(works, None if WHOLE else FEW):
            hand_in(stock, student, work)
    ours = PlainClassroom(shutil.copytree(stock.root, folder / "ours"))
    for assignment in ("ps1", "ps2"):
        stock.run(f"nbgrader autograde {assignment} --create")
        ours.run(f"course grade {assignment} --course-dir {ours.root}", exit_code=1)
    return stock, ours


@pytest.mark.parametrize("assignment", ["ps1", "ps2"])
def test_honest_work_gets_the_marks_of_stock_nbgrader(both, assignment):
    stock, ours = (recorded(one, assignment) for one in both)
    assert stock == ours
    assert len(stock) >= FEW
    assert len({of["score"] for of in stock.values()}) > 2


def test_what_cannot_be_split_is_said_cell_by_cell(both):
    _, ours = both
    for notebook, there in THERE.items():
        found = kept(load_notebook("ps2", notebook, ours.root), ours.root)
        assert found is not None
        assert found.there.keys() == there.keys()
        assert all(why in found.there[test] for test, why in there.items())
