"""Chains of three hundred attributes, line after line: writing each in words took
minutes of the grader's own time."""

from nbformat.v4 import new_code_cell

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
PROBLEM = "of processor time"


def change(notebook):
    chain = "if 0:\n" + "".join(f"    f{'.attention' * 300}(1)\n" for _ in range(200))
    notebook.cells += [new_code_cell(chain) for _ in range(8)]
