"""Deletes the tests of a wrong answer. Expected: 0 and a note, they are put back."""

EXPECTED = {"scale-tests": 0.0}
NOTE = "is missing"
SCALE = "def scale(x): return x"


def change(notebook):
    keep = [
        c
        for c in notebook.cells
        if c.metadata.get("nbgrader", {}).get("grade_id") != "scale-tests"
    ]
    notebook.cells = keep
