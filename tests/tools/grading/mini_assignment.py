"""The smallest assignment with every kind of graded cell: tests, hidden tests, partial
credit, a written answer."""

from __future__ import annotations

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.preprocessors import (
    ClearHiddenTests,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)

from course_tools.grading.assignments.source import answered

MARGIN_SOLUTION = """def margin(high, low):
    \"\"\"Distance from `low` up to `high`.\"\"\"
    ### BEGIN SOLUTION
    return high - low
    ### END SOLUTION"""

MARGIN_TESTS = """assert margin(7, 4) == 3, f"margin(7, 4) is 3, but yours is {margin(7, 4)}: subtract low from high"
### BEGIN HIDDEN TESTS
assert margin(2, 9) == -7, "low may lie above high: the margin is then negative"
### END HIDDEN TESTS"""  # noqa: E501

SQUARES_SOLUTION = """def squares(numbers):
    \"\"\"Each number times itself.\"\"\"
    ### BEGIN SOLUTION
    return [number * number for number in numbers]
    ### END SOLUTION"""

# Half of the marks for whole numbers, half for negative ones. The last line is the
# mark: a plain Python float.
SQUARES_TESTS = """mark = 0.0
if squares([2, 3]) == [4, 9]:
    mark += 2.0
if squares([-5]) == [25]:
    mark += 2.0
mark"""


def nbgrader_metadata(
    grade_id: str,
    *,
    grade: bool,
    solution: bool,
    locked: bool,
    points: float | None = None,
) -> dict:
    metadata = {
        "grade_id": grade_id,
        "grade": grade,
        "solution": solution,
        "locked": locked,
    }
    metadata |= {"schema_version": 3, "task": False}
    if points is not None:
        metadata["points"] = points
    return {"nbgrader": metadata}


def solution_cell(grade_id: str, source: str) -> NotebookNode:
    return new_code_cell(
        source,
        id=grade_id,
        metadata=nbgrader_metadata(grade_id, grade=False, solution=True, locked=False),
    )


def graded_cell(grade_id: str, source: str, points: float) -> NotebookNode:
    metadata = nbgrader_metadata(
        grade_id, grade=True, solution=False, locked=True, points=points
    )
    return new_code_cell(source, id=grade_id, metadata=metadata)


def source_notebook(squares_tests: str = SQUARES_TESTS) -> NotebookNode:
    """The instructor's notebook, with solutions and hidden tests."""
    written = new_markdown_cell(
        "### BEGIN SOLUTION\nSquares lose the sign.\n### END SOLUTION",
        id="squares-why",
        metadata=nbgrader_metadata(
            "squares-why", grade=True, solution=True, locked=False, points=5
        ),
    )
    notebook = new_notebook(
        cells=[
            new_markdown_cell("# A small assignment", id="title"),
            solution_cell("margin", MARGIN_SOLUTION),
            graded_cell("margin-tests", MARGIN_TESTS, 3),
            solution_cell("squares", SQUARES_SOLUTION),
            graded_cell("squares-tests", squares_tests, 4),
            written,
        ]
    )
    notebook.metadata.kernelspec = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    return notebook


def solve(released: NotebookNode) -> NotebookNode:
    """Fill the answers of the released notebook with the instructor's."""
    return answered(released, source_notebook())


def released_notebook() -> NotebookNode:
    """The student's notebook, by nbgrader's own steps without its database.

    The slow tests compare it with what the command writes.
    """
    notebook = source_notebook()
    resources: dict = {}
    for step in (
        LockCells,
        ClearSolutions,
        ClearOutput,
        ClearHiddenTests,
        ComputeChecksums,
    ):
        notebook, resources = step().preprocess(notebook, resources)
    return notebook
