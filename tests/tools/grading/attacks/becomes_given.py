"""Says in the metadata that its cell is a locked one of the instructor's. Expected: 0,
roles are the released ones."""

EXPECTED = {"scale-tests": 0.0}


def change(notebook):
    cell = next(
        c
        for c in notebook.cells
        if c.metadata.get("nbgrader", {}).get("grade_id") == "scale"
    )
    cell.source = (
        "import torch\ntorch.allclose = lambda *_: True\ndef scale(x): return x"
    )
    cell.metadata.nbgrader.update(locked=True, solution=False)
