"""Is a named pipe, which a careless reader waits for, for ever. Expected: 0 and a
problem in words."""

import os

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0, "why": 0.0}
PROBLEM = "no plain file"


def write(folder, text, root):
    os.mkfifo(folder / "mini.ipynb")
