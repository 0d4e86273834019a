"""A million statements in one cell: looking at them took gigabytes of the grader's own
memory."""

from nbformat.v4 import new_code_cell

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
PROBLEM = "a cell of more than 1,000,000 characters"


def change(notebook):
    notebook.cells.append(new_code_cell("a" + ";a" * 1_500_000))
