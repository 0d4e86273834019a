"""Hands in half a character, as JSON can spell it. Expected: it is replaced, and the
class goes on."""

import json

EXPECTED = {"why": None}


def write(folder, text, root):
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if "def scale" in "".join(cell["source"]):
            cell["source"] = "def scale(x):\n    return 2 * x  # \ud800"
    notebook["cells"][-1]["source"] = "Because \udfff"
    (folder / "mini.ipynb").write_text(json.dumps(notebook))
