"""Valid Python in a cell of its own, nested so deeply that no parser follows:
RecursionError stopped the class."""

from nbformat.v4 import new_code_cell

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
PROBLEM = "nested more deeply than Python can read"


def change(notebook):
    notebook.cells.append(
        new_code_cell("if 0:\n    print(" + "+".join(["x"] * 3000) + ")")
    )
