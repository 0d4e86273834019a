"""Kills its parent, its group and every process that it can see. Expected: 0 for that
question, the others count."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import os, signal
def scale(x):
    for who in (os.getppid(), 1, 0, -1):
        try: os.kill(who, signal.SIGKILL)
        except OSError: pass
    return x"""
