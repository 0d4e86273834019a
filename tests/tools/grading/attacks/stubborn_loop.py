"""Loops for ever and swallows every interrupt. Expected: ended from outside, 0 for that
question."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import signal
def scale(x):
    while True:
        try:
            while True: pass
        except BaseException: pass"""
COUNT = """signal.signal(signal.SIGALRM, signal.SIG_IGN)
def count(words): return len(words)"""
