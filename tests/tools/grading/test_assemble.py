"""`course assemble` puts a student's own parts into the capstone, changes nothing else,
and says what is missing."""

import nbformat
import pytest
from cases import for_each
from typer.testing import CliRunner

from course_tools.cli import app
from course_tools.grading.assignments.assemble import ASSEMBLED, assemble, is_empty
from course_tools.grading.assignments.source import AssignmentError

EMPTY = "def {}(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
ROLE = {
    "grade": False,
    "locked": False,
    "schema_version": 3,
    "solution": True,
    "task": False,
}


def answer(name, source, **metadata):
    """An answer cell."""
    return nbformat.v4.new_code_cell(
        source, metadata={"nbgrader": {**ROLE, "grade_id": name}, **metadata}
    )


def write(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), path)
    return path


@pytest.fixture
def course(tmp_path):
    """Two assignments of a student, and the capstone as it was released."""
    write(
        tmp_path / "words" / "words.ipynb",
        answer("cut", "def cut(x):\n    return x.split()"),
        nbformat.v4.new_code_cell("cut('my own cell')"),
        answer("join", "def join(x):\n    return ' '.join(x)"),
    )
    write(
        tmp_path / "model" / "model.ipynb",
        answer("layer", "def layer(x):\n    return x + 1"),
    )
    write(
        tmp_path / "capstone" / "capstone.ipynb",
        answer("tokens", EMPTY.format("cut"), parts=["words/join", "words/cut"]),
        answer("model", EMPTY.format("layer"), parts=["model/layer"]),
        answer("report", "my report"),
        nbformat.v4.new_code_cell(
            "given = 1",
            metadata={"nbgrader": {**ROLE, "solution": False, "grade_id": "given"}},
        ),
    )
    return tmp_path


def cells(course):
    """The sources in the capstone, by name."""
    notebook = nbformat.read(course / "capstone" / "capstone.ipynb", as_version=4)
    return {cell.metadata.nbgrader.grade_id: cell.source for cell in notebook.cells}


def problems(course, **options):
    parts = assemble(course / "capstone" / "capstone.ipynb", **options)
    return {f"{part.assignment}/{part.name}": part.problem for part in parts}


def test_parts_are_put_in_as_they_are_and_in_the_order_that_the_capstone_names(course):
    assert problems(course) == {"words/join": "", "words/cut": "", "model/layer": ""}
    assert cells(course) == {
        "tokens": (
            f"{ASSEMBLED}\n\n\ndef join(x):\n    return ' '.join(x)\n\n\ndef cut(x):\n "
            "   return x.split()"
        ),
        "model": f"{ASSEMBLED}\n\n\ndef layer(x):\n    return x + 1",
        "report": "my report",
        "given": "given = 1",
    }


def test_a_part_that_was_mended_replaces_the_one_that_was_assembled_before(course):
    problems(course)
    write(
        course / "model" / "model.ipynb",
        answer("layer", "def layer(x):\n    return x + 2"),
    )
    assert set(problems(course).values()) == {""}
    assert cells(course)["model"].endswith("return x + 2")


def test_a_part_that_is_not_answered_goes_in_and_is_named(course):
    write(course / "model" / "model.ipynb", answer("layer", EMPTY.format("layer")))
    found = problems(course)
    assert "not answered yet" in found["model/layer"]
    assert found["words/cut"] == ""
    assert "NotImplementedError" in cells(course)["model"]


def test_a_missing_notebook_is_named_and_its_cell_stays_as_it_was(course):
    (course / "words" / "words.ipynb").unlink()
    found = problems(course)
    assert "there is no words.ipynb" in found["words/cut"]
    assert cells(course)["tokens"] == EMPTY.format("cut")
    assert cells(course)["model"].startswith(ASSEMBLED), (
        "the others are put in all the same"
    )


@pytest.mark.parametrize("copies", [0, 2])
def test_a_part_that_is_not_there_once_is_not_guessed(course, copies):
    cut = [answer("cut", "def cut(x):\n    return x.split()") for _ in range(copies)]
    write(course / "words" / "words.ipynb", answer("join", "join = 1"), *cut)
    assert f"has {copies} cells cut" in problems(course)["words/cut"]
    assert cells(course)["tokens"] == EMPTY.format("cut")


def test_what_the_student_wrote_into_the_capstone_is_kept_unless_told_otherwise(course):
    path = course / "capstone" / "capstone.ipynb"
    own = answer("model", "def layer(x):\n    return 3 * x", parts=["model/layer"])
    write(path, own, answer("report", "my report"))
    assert "--replace" in problems(course)["model/layer"]
    assert cells(course)["model"].endswith("3 * x")
    assert problems(course, replace=True) == {"model/layer": ""}
    assert cells(course)["model"].endswith("x + 1")


def test_notebooks_may_lie_side_by_side_in_one_folder(course, tmp_path):
    flat = tmp_path / "downloads"
    write(
        flat / "words.ipynb",
        answer("cut", "cut = str.split"),
        answer("join", "join = ' '.join"),
    )
    write(flat / "model.ipynb", answer("layer", "layer = abs"))
    assert set(problems(course, folder=flat).values()) == {""}
    assert cells(course)["model"].endswith("layer = abs")


@pytest.mark.parametrize("content", ["no notebook", None], ids=["damaged", "missing"])
def test_what_is_no_notebook_is_refused_in_words(course, content):
    path = course / "capstone" / "capstone.ipynb"
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(AssignmentError, match=r"capstone\.ipynb cannot be read"):
        problems(course)


def test_a_notebook_without_parts_is_not_taken_for_the_capstone(course):
    with pytest.raises(AssignmentError, match="no cell that is made of parts"):
        assemble(course / "words" / "words.ipynb")


@for_each(
    ("source", "empty"),
    [
        (EMPTY.format("f"), True),
        ("raise NotImplementedError", True),
        ("class A:\n    def f(self):\n        raise NotImplementedError()", True),
        ("raise ValueError('NotImplementedError')", False),
        ("# raise NotImplementedError()", False),
        ("def f(:", False),
    ],
)
def test_only_what_still_raises_as_the_skeleton_does_counts_as_empty(source, empty):
    assert is_empty(source) == empty


def test_the_command_says_what_became_of_each_part_and_fails_if_one_is_missing(course):
    path = str(course / "capstone" / "capstone.ipynb")
    done = CliRunner().invoke(app, ["assemble", path])
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "words, join: put in",
        "words, cut: put in",
        "model, layer: put in",
    ]
    (course / "model" / "model.ipynb").unlink()
    done = CliRunner().invoke(app, ["assemble", path])
    assert done.exit_code == 1
    assert "model, layer: there is no model.ipynb" in done.output
