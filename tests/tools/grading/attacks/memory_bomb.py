"""Takes memory without an end. Expected: MemoryError or an end of its process, 0 for
that question."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """def scale(x):
    taken = []
    while True: taken.append(bytearray(2**28))"""
