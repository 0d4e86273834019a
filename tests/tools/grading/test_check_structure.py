"""`course check` before it runs anything: each thing that students do to a notebook by
mistake is said in words."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

from cases import for_each
from mini_assignment import released_notebook, solve
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.utils import compute_checksum
from sample_class import cell_of, delete

import course_lib
from course_tools.grading.assignments.withheld import withheld_uses
from course_tools.grading.check.check_run import as_graded
from course_tools.grading.check.check_structure import (
    Problem,
    grade_id,
    structure_problems,
)


def problems(change: Callable[[NotebookNode], object]) -> list[Problem]:
    """What is found in a solved notebook to which one thing was done."""
    released = released_notebook()
    notebook = solve(released)
    change(notebook)
    return structure_problems(notebook, released)


def only(found: list[Problem]) -> tuple[str, str, str]:
    assert len(found) == 1, found
    return found[0].kind, found[0].cell, found[0].message


def test_solved_notebook_has_no_problem():
    assert problems(lambda notebook: None) == []


def test_own_cells_and_outputs_are_no_problem():
    def adds_cells(notebook: NotebookNode) -> None:
        notebook.cells.insert(2, new_code_cell("margin(3, 1)"))
        notebook.cells.append(new_markdown_cell("A note to myself"))

    assert problems(adds_cells) == []


def test_deleted_test_cell_is_named_with_its_points():
    assert only(problems(lambda notebook: delete(notebook, "margin-tests"))) == (
        "deleted",
        "margin-tests",
        (
            "The test cell margin-tests (3 points) is missing. Open the released"
            " notebook and copy your answers into it."
        ),
    )


def test_deleted_answer_cell_is_named():
    kind, cell, message = only(problems(lambda notebook: delete(notebook, "squares")))
    assert (kind, cell) == ("deleted", "squares")
    assert message.startswith("The answer cell squares is missing.")


def test_cell_copied_without_its_mark_is_told_from_a_deleted_one():
    def retyped_by_hand(notebook: NotebookNode) -> None:
        del cell_of(notebook, "margin-tests").metadata["nbgrader"]

    kind, cell, message = only(problems(retyped_by_hand))
    assert (kind, cell) == ("unmarked", "margin-tests")
    assert "has lost its grading mark" in message


def test_duplicated_cell_is_counted():
    def copies_twice(notebook: NotebookNode) -> None:
        notebook.cells[3:3] = [
            copy.deepcopy(cell_of(notebook, "margin-tests")) for _ in range(2)
        ]

    kind, cell, message = only(problems(copies_twice))
    assert (kind, cell) == ("duplicated", "margin-tests")
    assert "is there 3 times; the grader reads the last" in message


def test_cell_of_another_type_is_named_with_both_types():
    def to_markdown(notebook: NotebookNode) -> None:
        cell_of(notebook, "squares-tests").cell_type = "markdown"

    kind, cell, message = only(problems(to_markdown))
    assert (kind, cell) == ("retyped", "squares-tests")
    assert "must be a code cell; yours is a markdown cell" in message


@for_each(
    ("key", "value"),
    [("points", 400), ("grade", False), ("locked", False), ("solution", True)],
)
def test_changed_grading_metadata_is_named(key, value):
    def edits(notebook: NotebookNode) -> None:
        cell_of(notebook, "squares-tests").metadata.nbgrader[key] = value

    kind, cell, message = only(problems(edits))
    assert (kind, cell) == ("altered", "squares-tests")
    assert f"{key} is {value!r} instead of" in message


def test_changed_test_is_tampered_with():
    def edits(notebook: NotebookNode) -> None:
        cell_of(notebook, "margin-tests").source = "assert True"

    kind, cell, message = only(problems(edits))
    assert (kind, cell) == ("tampered", "margin-tests")
    assert "The text of the test cell margin-tests (3 points) was changed." in message


def test_test_of_another_release_is_told_from_a_changed_one():
    def has_an_older_test(notebook: NotebookNode) -> None:
        test = cell_of(notebook, "margin-tests")
        test.source = "assert margin(1, 0) == 1"
        test.metadata.nbgrader.checksum = compute_checksum(test)

    kind, cell, message = only(problems(has_an_older_test))
    assert (kind, cell) == ("outdated", "margin-tests")
    assert message.startswith(
        "The test cell margin-tests (3 points) is from another release of this"
        " assignment."
    )


def test_tag_that_skips_a_test_is_refused():
    def tags(notebook: NotebookNode) -> None:
        cell_of(notebook, "margin-tests").metadata.tags = ["skip-execution"]

    kind, cell, message = only(problems(tags))
    assert (kind, cell) == ("tagged", "margin-tests")
    assert "The grader runs it anyway" in message


def test_moved_cell_is_named_with_its_neighbour():
    def test_before_answer(notebook):
        notebook.cells[1], notebook.cells[2] = notebook.cells[2], notebook.cells[1]

    kind, cell, message = only(problems(test_before_answer))
    assert (kind, cell) == ("moved", "margin")
    assert message.startswith(
        "margin stands below margin-tests, but was released above it."
    )


def test_answer_as_released_is_not_started():
    def forgets(notebook: NotebookNode) -> None:
        cell_of(notebook, "margin").source = (
            cell_of(released_notebook(), "margin").source + "\n"
        )

    kind, cell, message = only(problems(forgets))
    assert (kind, cell) == ("not-started", "margin")
    assert message == "The answer cell margin is not started: it is as it was released."


def test_answer_that_still_raises_not_implemented_is_not_started():
    def half(notebook: NotebookNode) -> None:
        cell_of(notebook, "margin").source = (
            "def margin(high, low):\n    difference = high\n    raise"
            " NotImplementedError()"
        )

    kind, _, message = only(problems(half))
    assert kind == "not-started"
    assert "still says `raise NotImplementedError()`" in message


def test_answer_whose_comment_mentions_not_implemented_is_started():
    def comments(notebook: NotebookNode) -> None:
        cell_of(
            notebook, "margin"
        ).source += "  # here stood: raise NotImplementedError()"

    assert problems(comments) == []


@for_each("text", ["", "  \n ", "YOUR ANSWER HERE", "YOUR ANSWER HERE\n\n"])
def test_blank_written_answer_is_empty(text):
    def leaves_blank(notebook: NotebookNode) -> None:
        cell_of(notebook, "squares-why").source = text

    kind, cell, message = only(problems(leaves_blank))
    assert (kind, cell) == ("empty", "squares-why")
    assert "Write your answer in it." in message


def test_emptied_code_answer_is_empty():
    def empties(notebook: NotebookNode) -> None:
        cell_of(notebook, "squares").source = ""

    assert only(problems(empties))[:2] == ("empty", "squares")


def test_cell_that_the_release_does_not_know_is_named():
    def adds_points(notebook: NotebookNode) -> None:
        notebook.cells.append(
            new_code_cell(
                "1",
                metadata={
                    "nbgrader": {"grade_id": "bonus", "grade": True, "points": 9}
                },
            )
        )

    kind, cell, message = only(problems(adds_points))
    assert (kind, cell) == ("unknown", "bonus")
    assert "this assignment has no such cell" in message


def test_withheld_module_is_refused_in_any_cell_but_the_released_ones():
    released = released_notebook()
    released.metadata["course"] = {"withholds": ["course_lib.attention.multi_head"]}
    cell_of(
        released, "margin-tests"
    ).source = "import course_lib.attention.multi_head"  # the release itself may
    notebook = solve(released)
    notebook.cells.append(
        new_code_cell("x = 1\nfrom course_lib.attention.multi_head import DotScore")
    )
    kind, cell, message = only(structure_problems(notebook, released))
    assert (kind, cell) == ("withheld", "cell 7")
    assert message.startswith(
        "cell 7: line 2 imports course_lib.attention.multi_head.DotScore, which this"
        " assignment withholds"
    )


@for_each(
    ("code", "uses"),
    [
        (
            "torch.nn.functional.layer_norm(x, x.shape[-1:])",
            ["torch.nn.functional.layer_norm"],
        ),
        (
            "import torch.nn.functional as F\nF.layer_norm(x, x.shape[-1:])",
            ["torch.nn.functional.layer_norm"],
        ),
        ("self.layer_norm = LayerNorm(4)\ny = self.layer_norm(x)", []),
        ("block.attention(x)", []),
        ("class Mine(torch.nn.LayerNorm): pass", ["torch.nn.LayerNorm"]),
    ],
)
def test_an_attribute_of_ones_own_may_be_called_as_a_withheld_function(code, uses):
    withheld = [
        "course_lib.attention.multi_head",
        "torch.nn.functional.layer_norm",
        "torch.nn.LayerNorm",
    ]
    assert [use.rpartition(" ")[2] for use in withheld_uses(code, withheld)] == uses


@for_each(
    ("code", "refused"),
    [
        ("from course_lib import DotScore", "course_lib.DotScore"),
        ("from course_lib import *", "course_lib.*"),
        ("import course_lib\ncourse_lib.DotScore()", "course_lib.DotScore"),
        ("import course_lib as lib\nlib.DotScore()", "lib.DotScore"),
        ("from course_lib.attention import scores", "course_lib.attention.scores"),
        ("import course_lib.data\ncourse_lib.data.load('stories')", None),
        ("from course_lib import data, figures", None),
    ],
)
def test_what_the_library_gives_by_its_own_name_is_withheld_with_its_module(
    code, refused
):
    """`from course_lib import DotScore` is that of `course_lib.attention.scores`."""
    uses = withheld_uses(code, ["course_lib.attention.scores"])
    assert [f" {refused}, which" in use for use in uses] == [True] * bool(refused)


def test_the_packages_that_are_no_withheld_names_are_all_there_are():
    folders = (Path(course_lib.__file__).parent).glob("*/__init__.py")
    rooms = {folder.parent.name for folder in folders}
    assert not any(
        withheld_uses(f"from course_lib import {room}", ["course_lib.none"])
        for room in rooms
    )
    assert withheld_uses("from course_lib import attend", ["course_lib.none"])


@for_each(
    "metadata", ["text", ["grade_id"], {"grade_id": ["margin"]}, {"grade_id": 3}, None]
)
def test_senseless_grading_metadata_is_no_crash(metadata):
    def scribbles(notebook: NotebookNode) -> None:
        notebook.cells[0].metadata["nbgrader"] = metadata

    assert problems(scribbles) == []


def test_what_runs_is_the_students_answers_and_the_released_tests():
    released = released_notebook()
    notebook = solve(released)
    cell_of(notebook, "margin-tests").source = "assert True"
    cell_of(notebook, "squares-tests").metadata.nbgrader.points = 400
    notebook.cells.insert(1, copy.deepcopy(cell_of(notebook, "margin")))
    notebook.cells[1].source = "def margin(high, low):\n    return 'the earlier copy'"
    delete(notebook, "squares")
    before = copy.deepcopy(notebook)

    graded = as_graded(notebook, released)

    assert notebook == before
    assert [grade_id(cell) for cell in graded.cells] == [
        None,
        None,
        "margin",
        "margin-tests",
        "squares",
        "squares-tests",
        "squares-why",
    ]
    assert cell_of(graded, "margin").source == cell_of(solve(released), "margin").source
    for name in ("margin-tests", "squares", "squares-tests"):
        assert cell_of(graded, name).source == cell_of(released, name).source
        assert cell_of(graded, name).metadata == cell_of(released, name).metadata
