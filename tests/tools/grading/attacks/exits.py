"""Leaves Python with os._exit when it is called. Expected: 0 for that question, the
others count."""

EXPECTED = {"scale-tests": 0.0}
SCALE = "import os\ndef scale(x): os._exit(0)"
