"""Returns nan, infinity and truth where the test reckons points from it. Expected: 0,
marks are finite numbers."""

EXPECTED = {"count-tests": 0.0}
COUNT = "def count(words): return float('nan')"
