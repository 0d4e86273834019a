"""Leaves a process behind that waits for the grader to go. Expected: full marks, and
the process is gone."""

EXPECTED: dict = {}
SCALE = """import contextlib, os, signal, time
if os.fork() == 0:
    with contextlib.suppress(OSError): os.setsid()
    if os.fork() == 0:
        for number in range(1, 32):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        time.sleep(3600)
    os._exit(0)
def scale(x): return 2 * x"""
