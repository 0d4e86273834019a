"""Notebooks that were released before the library was moved into rooms are checked and
graded as ever.

``edition_2026_11.json`` is the attention assignment as it was released then, cut down
to its set-up cell and its first task; its set-up cell carries the checks of that day.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import nbformat
import pytest
from cases import for_each
from two_rounds import two_rounds
from typer.testing import CliRunner
from walled import need_a_sandbox

from course_tools.cli import app
from course_tools.grading.assignments.editions import (
    COMMIT,
    EDITION,
    PIN,
    SINCE_2026_11,
    withheld,
)
from course_tools.grading.assignments.source import read_source
from course_tools.grading.check.check import check
from course_tools.grading.check.check_run import as_graded
from course_tools.grading.run.execute import Transcript
from course_tools.grading.run.plain_course import load_notebook
from course_tools.grading.run.plan import steps
from course_tools.grading.sandbox.sandbox import Limits, Worker

ROOT = Path(__file__).parents[3]
OLD = nbformat.read(Path(__file__).parent / "edition_2026_11.json", as_version=4)
RIGHT = """def masked_softmax(scores, mask=None):
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)"""
BORROWED = {
    "module": "from course_lib.attention.masks import masked_softmax as given",
    "public name": "from course_lib import masked_softmax as given",
    "attribute": "import course_lib; given = course_lib.masked_softmax",
    "another module": "from course_lib.seq2seq.search import beam_search as given",
    "torch": "given = torch.nn.functional.scaled_dot_product_attention",
}


def notebook(answer: str) -> nbformat.NotebookNode:
    submitted = nbformat.from_dict(OLD)
    submitted.cells[2].source = answer
    return submitted


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    for folder, content in (("exercises", OLD), ("solutions", notebook(RIGHT))):
        (root / folder / "attention").mkdir(parents=True)
        nbformat.write(content, root / folder / "attention" / "attention.ipynb")
    return root


@pytest.fixture(scope="module")
def worker():
    need_a_sandbox()
    with Worker(Limits()) as worker:
        yield worker


def graded(worker: Worker, course: Path, answer: str) -> Transcript:
    assignment = load_notebook("attention", "", course)
    submitted = as_graded(notebook(answer), assignment.released)
    plan = steps(assignment.instructor, assignment.released, submitted)
    return two_rounds(worker, plan, {})


def test_a_right_answer_of_2026_11_gets_full_marks(worker, course):
    transcript = graded(worker, course, RIGHT)
    assert transcript.marks["masked-softmax-rows"]["earned"] == 3, transcript
    assert transcript.given == []


@for_each("borrowed", BORROWED.values())
def test_what_2026_11_withholds_is_refused_by_its_new_name(worker, course, borrowed):
    transcript = graded(worker, course, f"{borrowed}\n{RIGHT}")
    assert transcript.marks["masked-softmax-rows"]["earned"] == 0
    said = transcript.tests["masked-softmax-rows"]["words"]
    assert "which this assignment withholds" in said


@pytest.mark.parametrize(
    ("head", "kinds"), [("", []), (BORROWED["public name"], ["withheld"])]
)
def test_course_check_takes_a_notebook_of_2026_11(course, tmp_path, head, kinds):
    path = tmp_path / "attention.ipynb"
    nbformat.write(notebook(f"{head}\n{RIGHT}"), path)
    report = check(path, course / "exercises" / "attention" / "attention.ipynb")
    assert [problem.kind for problem in report.problems] == kinds
    assert [mark.earned for mark in report.marks] == [3.0]


def test_old_names_stand_for_the_modules_of_today():
    assert withheld(OLD)[:2] == [
        "course_lib.attention.masks",
        "course_lib.attention.scores",
    ]
    assert withheld(OLD)[-1] == "torch.nn.Transformer"
    for new in SINCE_2026_11.values():
        assert importlib.util.find_spec(f"course_lib.{new}"), new


def test_a_release_names_its_edition_and_its_names_are_taken_as_they_are():
    built = read_source(ROOT / "solutions" / "attention" / "attention.py")
    assert built.metadata.course.edition == EDITION
    assert withheld(built) == built.metadata.course.withholds
    for path in (ROOT / "exercises").glob("*/*.ipynb"):
        metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
        assert metadata["course"]["edition"] == EDITION, path


ROW = re.compile(r"^\| ([\d.]+) \| ([^|]+?) \|", re.MULTILINE)
COMMIT_OF_OLD = "17c6c98c4eedae2d717a0b0023bde6ddadadc685"


@pytest.fixture
def pinned(tmp_path, monkeypatch):
    """A course folder; what a command says in it when the class keeps to an edition."""
    (tmp_path / "nbgrader_config.py").write_text("")
    (tmp_path / "CHANGELOG.md").write_text(
        f"Edition 2026.11 is commit `{COMMIT_OF_OLD}`, and more.\n"
    )
    monkeypatch.chdir(tmp_path)

    def run(*words: str, keeps_to: str = "") -> tuple[int, str]:
        if keeps_to:
            (tmp_path / PIN).write_text(f"{keeps_to}\n")
        done = CliRunner().invoke(app, words)
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return done.exit_code, " ".join(done.output.split())

    return run


def test_init_writes_the_edition_down(pinned):
    status, said = pinned("init", "--edition", EDITION)
    assert status == 0
    assert said.startswith(f"wrote {PIN}; commit it course-secret.txt is written.")
    assert Path(PIN).read_text() == f"{EDITION}\n"


@for_each(
    ("edition", "where"),
    [
        ("2026.11", f"Edition 2026.11 is commit {COMMIT_OF_OLD}: check that out."),
        ("1999.1", "CHANGELOG.md names no commit of edition 1999.1."),
    ],
)
def test_another_edition_is_not_written_down_but_found(pinned, edition, where):
    said = f"This is edition {EDITION}. {where}"
    assert pinned("init", "--edition", edition) == (1, said)
    assert not Path(PIN).exists()
    assert not Path("course-secret.txt").exists(), "nothing is begun"


@for_each("command", ["release", "grade attention", "publish ../students"])
def test_what_releases_or_grades_refuses_to_do_so_for_a_class_of_another_edition(
    pinned, command
):
    before = set(Path().rglob("*"))
    status, said = pinned(*command.split(), keeps_to="2026.11")
    assert status == 1
    assert said.startswith(
        f"{PIN} keeps this class to edition 2026.11. This is edition"
    )
    assert said.endswith(
        f"To move the class to this one, run: course init --edition {EDITION}"
    )
    assert set(Path().rglob("*")) == {*before, Path(PIN)}


def test_a_class_that_keeps_to_this_edition_is_let_through(pinned):
    assert pinned("release", keeps_to=EDITION) == (0, "")


def test_the_changelog_names_the_commit_of_every_edition_but_this_one():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert dict(COMMIT.findall(text))["2026.11"] == COMMIT_OF_OLD
    page = (ROOT / "book" / "editions.md").read_text(encoding="utf-8")
    rows = {cells[0]: cells[1] for cells in ROW.findall(page)}
    assert rows.pop(EDITION) == "this one"
    assert rows == {
        edition: f"`{commit[:7]}`" for edition, commit in COMMIT.findall(text)
    }
