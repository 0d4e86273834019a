"""Four submissions of assignment 1, made from the assignment itself, and the marks that
each must get."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from nbformat import NotebookNode

ASSIGNMENT = "attention"
#: The answer that is marked by hand. Blank, it gets 0 at once; written, it waits for a
#: mark.
WRITTEN = "explain"
BEAM_TESTS = ("beam-search-finds", "beam-search-length")

#: A beam search that finds nothing: no test of it may pass.
WRONG_BEAM_SEARCH = """def beam_search(step, state, bos, eos, beam_size, max_length, alpha=0.6):
    return [], 0.0"""  # noqa: E501


#: Right values, and a line on stderr for each call.
WARNING = """

import warnings

warnings.simplefilter("always")
quiet_scores = dot_scores


def dot_scores(query, key, slope=0.0):
    warnings.warn("this could be faster")
    return quiet_scores(query, key, slope)"""


@dataclass(frozen=True)
class Sample:
    """One student: what was done to the solved notebook, and which tests must then give
    0."""

    student: str
    change: Callable[[NotebookNode], None]
    lost: frozenset[str] = frozenset()
    answered: bool = True  # whether the written answer waits for a mark


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    """The cell that nbgrader knows by that name."""
    return next(
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == name
    )


def blank(notebook: NotebookNode, released: NotebookNode, *names: str) -> None:
    for name in names:
        cell_of(notebook, name).source = cell_of(released, name).source


def delete(notebook: NotebookNode, *names: str) -> None:
    notebook.cells = [
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") not in names
    ]


def samples(released: NotebookNode) -> list[Sample]:
    """A class with everything that goes wrong in one, each thing in cells of its own;
    `released` is what they all started from."""
    tests = {
        cell.metadata.nbgrader.grade_id
        for cell in released.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
        and not cell.metadata.nbgrader.solution
    }
    answers = [
        cell.metadata.nbgrader.grade_id
        for cell in released.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    ]

    def partly_right(notebook: NotebookNode) -> None:
        # -1e9 in place of -inf passes visible tests and fails hidden ones; part 6 and
        # the written answer are missing, and the tests of part 6 are not to be run
        softmax = cell_of(notebook, "masked-softmax")
        assert 'float("-inf")' in softmax.source
        softmax.source = softmax.source.replace('float("-inf")', "-1e9")
        blank(notebook, released, "beam-search", WRITTEN)
        for name in BEAM_TESTS:
            cell_of(notebook, name).metadata.tags = ["skip-execution"]

    def tampered_tests(notebook: NotebookNode) -> None:
        blank(notebook, released, *answers)
        for name in tests:
            cell_of(notebook, name).source = "pass"
            cell_of(notebook, name).metadata.nbgrader.points = 100

    def deleted_test(notebook: NotebookNode) -> None:
        cell_of(notebook, "beam-search").source = WRONG_BEAM_SEARCH
        delete(notebook, *BEAM_TESTS)
        # no Python in one cell, two copies of others, and words on stderr
        statistics = cell_of(notebook, "dot-statistics")
        assert "):" in statistics.source
        statistics.source = statistics.source.replace("):", ")", 1)
        cell_of(notebook, "dot-scores").source += WARNING
        for name in ("dot-scores", "dot-scores-values"):
            place = notebook.cells.index(cell_of(notebook, name))
            twin = copy.deepcopy(notebook.cells[place])
            twin.id = f"{name}-twin"
            notebook.cells.insert(place, twin)

    return [
        # perfect; the page on nbgrader's commands grades her again by name
        Sample("ada", lambda notebook: None),
        Sample(
            "partly-right",
            partly_right,
            frozenset({"masked-softmax-edges", *BEAM_TESTS}),
            answered=False,
        ),
        Sample("blank", tampered_tests, frozenset(tests), answered=False),
        Sample(
            "deleted-test",
            deleted_test,
            frozenset({"dot-statistics-values", *BEAM_TESTS}),
        ),
    ]
