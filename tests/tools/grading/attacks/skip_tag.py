"""Tags the tests skip-execution, which nbgrader takes for passed. Expected: 0, tags are
the released ones."""

EXPECTED = {"scale-tests": 0.0}
SCALE = "def scale(x): return x"


def change(notebook):
    for cell in notebook.cells:
        cell.metadata.tags = ["skip-execution"]
