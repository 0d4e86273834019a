"""Each right answer to each assignment gives a sheet: three questions at least, one
answer each, and keys that a second run and plain Python give again."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from known_answers import known_answers
from whole import WHOLE

from course_tools.grading.assignments.release import assignments
from course_tools.grading.run.assignment import load
from course_tools.grading.viva.questions import apart
from course_tools.grading.viva.viva import FEWEST, Sheets, viva

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools" / "grading"))

from viva_class import course_with, told, wrong_keys  # noqa: E402
from walled import need_a_sandbox  # noqa: E402

pytestmark = pytest.mark.slow
NAMES = assignments(ROOT) if WHOLE else ["transformer"]


@pytest.mark.parametrize("name", NAMES)
def test_right_answers_get_three_questions_whose_keys_are_right(name, tmp_path):
    need_a_sandbox()
    answers = {
        one.name.replace("_", "-"): one.changes for one in known_answers(name)[1]
    }
    root = course_with(tmp_path / "course", name, {"reference": {}} | answers)
    made = list(viva(name, root, workers=2))
    setup = Sheets(load(name, ROOT), ROOT).setup
    assert len(made) == 1 + len(answers)
    assert {one.student: one.problem for one in made if one.problem} == {}
    assert [one.student for one in made if len(one.questions) < FEWEST] == []
    for one in made:
        for asked in one.questions:
            options = asked["options"] or asked["calls"]
            assert len({*options}) == len(options) >= 3
            if asked["kind"] == "value":
                others = [text for text in options if text != asked["value"]]
                assert options[asked["answer"]] == asked["value"]
                assert all(
                    apart(asked["value"], t) for t in [*others, *asked["before"]]
                )
        path = root / "submitted" / one.student / name / f"{name}.ipynb"
        notebook = nbformat.read(path, 4)
        place = root / f"{one.student}.py"
        beside = ROOT / "exercises" / name
        wrong = wrong_keys(notebook, setup, one.questions, place, beside)
        assert wrong == "", one.student
    again = list(viva(name, root, workers=1))
    assert [told(one.questions) for one in again] == [told(o.questions) for o in made]
    assert [(one.sheet, one.key) for one in again] == [(o.sheet, o.key) for o in made]
