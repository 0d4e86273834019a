"""Prints without an end, in a cell and in a call. Expected: cut off, 0 for that
question, little is kept."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """def scale(x):
    while True: print("x" * 10**6)"""
COUNT = """import os, sys
for _ in range(200): print("y" * 10**6); os.write(1, b"z" * 10**6)
def count(words): return len(words)"""
