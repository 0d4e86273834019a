"""Copies an answer and its test. Expected: the last answer counts, with a note; the
class goes on."""

import copy

EXPECTED: dict = {}
NOTE = "is there 2 times"


def change(notebook):
    for name in ("scale", "scale-tests"):
        cell = next(
            c
            for c in notebook.cells
            if c.metadata.get("nbgrader", {}).get("grade_id") == name
        )
        twin = copy.deepcopy(cell)
        twin.id, twin.source = f"{name}-twin", "raise ValueError"
        notebook.cells.insert(notebook.cells.index(cell), twin)
