"""Loops for ever in the cell, and swallows every interrupt. Expected: 0 for that
question, the others count."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """while True:
    try:
        while True: pass
    except BaseException: pass"""
