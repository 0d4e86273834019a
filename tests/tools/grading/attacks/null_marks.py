"""A cell says "nbgrader": null, as a broken tool might: judging it raised
AttributeError, and stopped the class."""

from nbformat.v4 import new_code_cell, new_markdown_cell

EXPECTED = {}


def change(notebook):
    notebook.cells.append(new_code_cell("1 + 1", metadata={"nbgrader": None}))
    notebook.cells.append(
        new_markdown_cell("text", metadata={"nbgrader": ["a", "list"]})
    )
