"""More cells than anybody writes: the grader took half a minute for each look
at them."""

from nbformat.v4 import new_code_cell

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
PROBLEM = "more than 5,000 cells"


def change(notebook):
    notebook.cells += [new_code_cell("") for _ in range(100_000)]
