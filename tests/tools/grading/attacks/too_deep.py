"""Returns lists in lists in lists, an integer of a million digits, and itself in
itself. Expected: 0, refused."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
SCALE = """def scale(x):
    inner = x
    for _ in range(500): inner = [inner]
    return inner"""
COUNT = """def count(words):
    itself = []; itself.append(itself)
    return itself"""
