"""Claims to be of nbformat 5. Expected: 0 and a problem in words; the class goes on."""

import json

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0, "why": 0.0}
PROBLEM = "broken notebook"


def write(folder, text, root):
    notebook = json.loads(text)
    notebook["nbformat"] = 5
    (folder / "mini.ipynb").write_text(json.dumps(notebook))
