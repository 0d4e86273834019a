"""Hands in an empty notebook. Expected: 0 and a problem in words."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0, "why": 0.0}
PROBLEM = "no cell marked for grading"


def change(notebook):
    notebook.cells = []
