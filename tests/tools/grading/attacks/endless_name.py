"""A cell whose name has fifteen million letters, which stood on pages, in reports and
in the log again and again."""

from nbformat.v4 import new_code_cell

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
PROBLEM = "characters of metadata in one place"


def change(notebook):
    notebook.cells.append(
        new_code_cell("1", metadata={"nbgrader": {"grade_id": "x" * 15_000_000}})
    )
