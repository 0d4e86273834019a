"""A plain nbgrader course through stock nbgrader and `course grade`, side by side."""

from __future__ import annotations

import shutil

import pytest
from attack_class import HONEST, POINTS, SECRETS, expected, graded_term
from plain_class import (
    SHAPES_TESTS,
    THERE,
    WORDS_TESTS,
    WORKS,
    PlainClassroom,
    Work,
    hand_in,
    open_attacked,
    open_course,
    recorded,
)
from test_attacks import ALL_ATTACKS, QUICK
from walled import need_a_sandbox
from whole import EVERY, WHOLE

from course_tools.grading.run.plain_course import load_notebook
from course_tools.grading.run.split import kept

pytestmark = pytest.mark.slow

SETS = ("ps1", "ps2")  # problem sets
#: Who hands in: all forty in the workflow's jobs, else half and whom tests need.
NAMED = {"some", "lacks_words", "lacks_the_first"}
STUDENTS = [*WORKS] if EVERY else sorted({*[*WORKS][::2], *NAMED})


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """One class, graded by stock nbgrader and by us."""
    if not WHOLE:
        pytest.skip("stock nbgrader takes a kernel for each student: test-grading")
    need_a_sandbox()
    folder = tmp_path_factory.mktemp("plain")
    stock = open_course(folder / "stock")
    for student in STUDENTS:
        hand_in(stock, student, WORKS[student])
    ours = PlainClassroom(shutil.copytree(stock.root, folder / "ours"))
    for assignment in SETS:
        stock.run(f"nbgrader autograde {assignment} --create")
        ours.run(f"course grade {assignment} --course-dir {ours.root}", exit_code=1)
    return stock, ours


@pytest.mark.parametrize("assignment", SETS)
def test_honest_work_gets_the_marks_of_stock_nbgrader(both, assignment):
    stock, ours = (recorded(one, assignment) for one in both)
    assert stock == ours
    mine = [name for name in STUDENTS if WORKS[name].assignment == assignment]
    assert sorted(stock) == sorted(mine)
    assert len({of["score"] for of in stock.values()}) > 2


def test_what_cannot_be_split_is_said_cell_by_cell(both):
    _, ours = both
    for notebook, there in THERE.items():
        found = kept(load_notebook("ps2", notebook, ours.root), ours.root)
        assert found is not None
        assert found.there.keys() == there.keys()
        assert all(why in found.there[test] for test, why in there.items())


def test_the_report_says_where_each_test_runs_and_who_handed_in_one_text(both):
    _, ours = both
    hand_in(ours, "copied", WORKS["fine"])
    ours.run("course grade ps2", exit_code=1)
    ours.run("course report ps2")
    text = (ours.root / "reports" / "ps2.html").read_text()
    for notebook, tests in (("words", WORDS_TESTS), ("shapes", SHAPES_TESTS)):
        for test, (points, _) in tests.items():
            where = "<strong>in" if test in THERE[notebook] else "apart"
            row = f'<tr><th scope="row">{notebook}/{test}</th><td>{points:g}</td>'
            assert f"{row}<td>{where}" in text
    (row,) = [row for row in text.split("<tr>") if "in words, that of" in row]
    assert "the model answer" in row
    assert "copied, " in row


def test_no_hidden_line_is_given_back_and_the_words_are(both):
    _, ours = both
    tests = [test for _, test in [*WORDS_TESTS.values(), *SHAPES_TESTS.values()]]
    hidden = [
        line
        for test in tests
        for line in test.partition("HIDDEN TESTS\n")[2].splitlines()[:-1]
        if line and not line.startswith(("###", "mark"))
    ]
    assert len(hidden) > 4
    pages = [
        path.read_text()
        for folder in ("feedback", "autograded")
        for path in (ours.root / folder).glob("*/ps2/*")
    ]
    assert not [line for line in hidden if any(line in page for page in pages)]
    late = (ours.root / "feedback" / "late" / "ps2" / "words.html").read_text()
    assert "2 d late" in late
    some = (ours.root / "feedback" / "some" / "ps2" / "words.html").read_text()
    assert "It earns a part of its points" in some or "a hidden test fails" in some


def test_one_question_is_judged_again_by_a_mended_test(both, tmp_path):
    course = PlainClassroom(shutil.copytree(both[1].root, tmp_path / "course"))
    path = course.root / "source" / "ps2" / "words.ipynb"
    old, new = r"== \"bbbb\"", r"in (\"a\", \"bbbb\")"
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))
    course.run("nbgrader generate_assignment ps2 --force")
    before = recorded(course, "ps2")
    regrade = "course grade ps2 --question longest-tests --workers 1"
    said = course.run(regrade, exit_code=int(WHOLE))  # one lacks this notebook
    assert "late: 0 -> 2" in said
    after = recorded(course, "ps2")
    assert after["late"]["words/longest-tests"] == 2
    kept = {"score", "penalty", "words/longest-tests"}
    for student, told in before.items():
        assert {name: after[student][name] for name in told.keys() - kept} == {
            name: told[name] for name in told.keys() - kept
        }


def test_each_student_gets_questions_on_the_own_code(both):
    said = both[1].run("course viva ps2 --workers 1", exit_code=1)
    sheet = both[1].root / "viva" / "ps2" / "words" / "sheets" / "fine.html"
    assert "tally" in sheet.read_text()
    assert "fine: " in said


def test_who_empties_all_later_cells_gets_the_tests_that_were_named_and_no_other(both):
    course = both[1]
    cheat = "get_ipython().input_transformers_post.append(lambda lines: [])"
    hand_in(
        course, "cheat", Work("ps2", dict.fromkeys(("longest", "square"), cheat), False)
    )
    course.run("course grade ps2", exit_code=1)
    marks = recorded(course, "ps2")["cheat"]
    for notebook, tests in (("words", WORDS_TESTS), ("shapes", SHAPES_TESTS)):
        for test, (points, _) in tests.items():
            due = points if test in THERE[notebook] else 0
            assert marks[f"{notebook}/{test}"] == due


#: One of each kind: the others are stopped in the same way, whatever the course.
ATTACKS = [path for path in ALL_ATTACKS if path.stem in QUICK]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """The red team's class, in a course that knows nothing of ours."""
    need_a_sandbox()
    root = tmp_path_factory.mktemp("attacked") / "course"
    return graded_term(root, ATTACKS, opened=open_attacked, notebook="mini")


def test_no_attack_gains_anything_and_honest_students_keep_their_marks(attacked):
    got = attacked.classroom.scores_of_all("mini")
    gains = [
        (path.stem, question, mark)
        for path in ATTACKS
        for question, mark in got[path.stem].items()
        if (mark or 0) > (expected(path)[question] or 0)
    ]
    assert gains == []
    assert len(got) == len(ATTACKS) + len(HONEST)
    for student in HONEST:
        assert got[student] == POINTS | {"why": 0.0}
    assert attacked.processes_left == []


def test_no_attack_carries_a_hidden_byte_away(attacked):
    kept_for_students = [
        path
        for folder in ("feedback", "autograded")
        for path in (attacked.classroom.root / folder).rglob("*.*")
        if path.is_file()
    ]
    assert len(kept_for_students) > len(ATTACKS)
    texts = [path.read_text() for path in kept_for_students]
    assert not any(secret in text for text in texts for secret in SECRETS)
