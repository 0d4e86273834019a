"""Calls a number of five thousand digits: writing it in words raised ValueError, and
stopped the class."""

from nbformat.v4 import new_code_cell

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
PROBLEM = "ValueError"


def change(notebook):
    notebook.cells.append(new_code_cell(f"if 0:\n    (0x{'f' * 5000})(1)"))
