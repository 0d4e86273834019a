"""Leaves Python in the cell itself. Expected: 0 for that question, the others count."""

EXPECTED = {"scale-tests": 0.0}
SCALE = "import os\ndef scale(x): return 2 * x\nos._exit(0)"
