"""Right answers to each assignment give sheets: one page, three questions or more, one
answer each, and keys that a second run and plain Python give again."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from known_answers import known_answers
from whole import WHOLE, some

from course_tools.grading.assignments.mutants import Changes
from course_tools.grading.assignments.release import assignments
from course_tools.grading.run.assignment import load
from course_tools.grading.viva.questions import apart
from course_tools.grading.viva.viva import FEWEST, Sheets, Viva, viva

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools" / "grading"))

from viva_class import course_with, with_keys, wrong_keys  # noqa: E402
from walled import need_a_sandbox  # noqa: E402

pytestmark = pytest.mark.slow

NAMES = some(*assignments(ROOT)) if WHOLE else ("transformer",)

#: Of a class, those whose sheets are made again, and whose keys are computed in plain
#: Python: one that is not the reference. It takes as long as a run of the notebook.
AGAIN = slice(1, 2)


@dataclass
class HandedIn:
    name: str
    root: Path
    answers: dict[str, Changes]
    made: list[Viva]


@pytest.fixture(scope="module", params=NAMES)
def handed_in(request, tmp_path_factory):
    """Right answers to an assignment, the reference, and their sheets."""
    need_a_sandbox()
    name = request.param
    right = {o.name.replace("_", "-"): o.changes for o in known_answers(name)[1]}
    answers: dict[str, Changes] = {"reference": {}} | right
    root = tmp_path_factory.mktemp(name) / "course"
    course_with(root, name, answers)
    made = list(viva(name, root, workers=2))
    assert len(made) == len(answers)
    return HandedIn(name, root, answers, made)


def test_right_answers_get_three_questions_with_one_answer(handed_in):
    assert {one.student: one.problem for one in handed_in.made if one.problem} == {}
    for one in handed_in.made:
        assert len(one.questions) >= FEWEST
        for asked in one.questions:
            options = asked["options"] or asked["calls"]
            assert len({*options}) == len(options) >= 3
            if asked["kind"] == "value":
                others = [text for text in options if text != asked["value"]]
                assert options[asked["answer"]] == asked["value"]
                assert all(
                    apart(asked["value"], t) for t in [*others, *asked["before"]]
                )


def test_plain_python_gives_each_key(handed_in):
    setup = Sheets(load(handed_in.name, ROOT), ROOT).setup
    programs = {}
    for one in handed_in.made[AGAIN]:
        there = handed_in.root / "submitted" / one.student / handed_in.name
        notebook = nbformat.read(there / f"{handed_in.name}.ipynb", 4)
        programs[one.student] = with_keys(notebook, setup, one.questions)
    beside = ROOT / "exercises" / handed_in.name
    assert wrong_keys(programs, handed_in.root, beside) == {}


def test_a_second_run_writes_the_same(handed_in, tmp_path):
    """In a smaller class, one after the other: a sheet is its student's alone."""
    first = handed_in.made[AGAIN]
    fewer = {one.student: handed_in.answers[one.student] for one in first}
    course_with(tmp_path / "course", handed_in.name, fewer)
    assert list(viva(handed_in.name, tmp_path / "course", workers=1)) == first


def test_each_sheet_is_printed_on_one_page(handed_in, browser):
    """In the class's file each one begins a page, so that they take as many as there
    are sheets."""
    page, sheets = browser.new_page(), handed_in.root / "viva" / handed_in.name
    of_all = (sheets / "sheets.html").read_text(encoding="utf-8")
    page.set_content(of_all)
    printed = page.pdf(prefer_css_page_size=True)
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == len(handed_in.made)
    for one in handed_in.made:
        alone = (sheets / "sheets" / f"{one.student}.html").read_text(encoding="utf-8")
        assert alone.count("<section") == alone.count(one.sheet) == 1
        assert one.sheet in of_all
