"""Raises SystemExit, which ends a careless grader with status 0. Expected: 0 for that
question."""

EXPECTED = {"scale-tests": 0.0}
SCALE = "def scale(x): raise SystemExit(0)"
