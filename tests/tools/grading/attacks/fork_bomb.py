"""Forks without an end. Expected: stopped by the limit on processes, 0, nothing left
behind."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import os
def scale(x):
    while True:
        try: os.fork()
        except OSError: pass"""
