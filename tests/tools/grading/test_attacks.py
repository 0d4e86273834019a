"""The red team: every attack hands in beside honest students, and one `course grade`
grades them all.

Each attack is a file of ``attacks/`` whose docstring says what it tries. A mark in its
favour, a hidden byte that is kept where a student can read it, a process that stays, or
another student's mark that changes is a failure here.
"""

from __future__ import annotations

import json

import nbformat
import pytest
from attack_class import (
    ALL_ATTACKS,
    HONEST,
    LIMITS,
    POINTS,
    SECRETS,
    expected,
    graded_term,
    load,
)
from walled import need_a_sandbox
from whole import WHOLE

from course_tools.grading.run.grade import grade

pytestmark = pytest.mark.slow

#: What `make test` runs: what takes no time to be stopped, and one of each other kind.
QUICK = [
    "broken_text",
    "called_number",
    "calls_the_referee",
    "deleted_tests",
    "endless_output",
    "eq_liar",
    "exits",
    "fork_bomb",
    "html_everywhere",
    "lone_surrogates",
    "long_number",
    "nested_terms",
    "null_marks",
    "open_tags",
    "patched_allclose",
    "reads_hidden_tests",
    "skip_tag",
    "symlinked_solution",
    "tells_later",
    "writes_gradebook",
]
ATTACKS = [path for path in ALL_ATTACKS if WHOLE or path.stem in QUICK]


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    need_a_sandbox()
    return graded_term(tmp_path_factory.mktemp("attacked") / "course", ATTACKS)


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_an_attack_gets_the_mark_that_its_work_deserves(term, path):
    assert term.classroom.scores("mini", path.stem) == expected(path)


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_the_instructor_is_told_what_was_found(term, path):
    attack = load(path)
    result = next(r for r in term.report.results if r.student == path.stem)
    assert getattr(attack, "PROBLEM", "") in result.problem
    assert bool(result.problem) == hasattr(attack, "PROBLEM")
    assert getattr(attack, "NOTE", "") in " ".join(result.notes)
    assert getattr(attack, "TAMPERING", "") in " ".join(result.tampering)


@pytest.mark.parametrize("student", HONEST)
def test_honest_students_keep_their_marks(term, student):
    assert term.classroom.scores("mini", student) == POINTS | {"why": 0.0}


def test_no_byte_of_a_hidden_test_is_kept_where_a_student_reads(term):
    kept = [
        path
        for name in ("feedback", "autograded")
        for path in (term.classroom.root / name).rglob("*.*")
    ]
    assert len(kept) > len(ATTACKS)
    leaks = [
        (path, secret)
        for path in kept
        if path.is_file()
        for secret in SECRETS
        if secret in path.read_text()
    ]
    assert leaks == []


def test_no_page_or_notebook_holds_a_script_of_a_student(term):
    page = (
        term.classroom.root / "feedback" / "html_everywhere" / "mini" / "mini.html"
    ).read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "<img" not in page
    path = (
        term.classroom.root / "autograded" / "html_everywhere" / "mini" / "mini.ipynb"
    )
    for cell in nbformat.read(path, as_version=4).cells:
        assert cell.cell_type == "code" or "<script" not in cell.source
        assert not any(
            "text/html" in output.get("data", {}) for output in cell.get("outputs", [])
        )


def test_no_process_is_left(term):
    assert term.processes_left == []


def test_what_belongs_to_no_student_is_named(term):
    assert any("\\u0430da" in words for words in term.report.strangers)
    assert any("linked" in words for words in term.report.strangers)


def test_little_is_kept_of_endless_output(term):
    path = term.classroom.root / "autograded" / "endless_output" / "mini" / "mini.ipynb"
    assert path.stat().st_size < 300_000


def test_the_log_has_one_line_for_each_submission(term):
    lines = [
        json.loads(line)
        for line in (term.classroom.root / "grading-log.jsonl").read_text().splitlines()
    ]
    assert sorted(line["student"] for line in lines) == sorted(
        [*HONEST, *(path.stem for path in ATTACKS)]
    )
    assert all(line["tests"] == lines[0]["tests"] for line in lines)


def test_a_second_run_grades_those_alone_that_could_not_be_read(term):
    report = grade("mini", term.classroom.root, limits=LIMITS)
    graded_again = {result.student for result in report.results if not result.again}
    links = {
        path.stem for path in ATTACKS if "link" in getattr(load(path), "PROBLEM", "")
    }
    assert graded_again >= links
    assert graded_again <= {
        path.stem for path in ATTACKS if hasattr(load(path), "PROBLEM")
    }
    for student in HONEST:
        assert term.classroom.scores("mini", student) == POINTS | {"why": 0.0}
