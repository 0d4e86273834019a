"""Crashes its process. Expected: 0 for that question, the others count."""

EXPECTED = {"scale-tests": 0.0}
SCALE = "import ctypes\ndef scale(x): ctypes.string_at(0)"
