"""Defines a function whose name looks like the one asked for (a Cyrillic letter).
Expected: 0 for that question."""

EXPECTED = {"scale-tests": 0.0}
SCALE = "def sc\u0430le(x): return 2 * x"
