"""A right answer that warns on stderr at each call. Expected: full marks."""

EXPECTED: dict = {}
SCALE = """import sys, warnings
warnings.simplefilter("always")
def scale(x):
    warnings.warn("slow"); print("note", file=sys.stderr)
    return 2 * x"""
