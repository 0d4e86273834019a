"""Leaves children behind that keep all processors busy, each in a session of its own,
and answers.

Expected: the others lose nothing; there are no sessions, and one that there is costs
the question its points.
"""

EXPECTED: dict = {}
SCALE = """import os
def scale(x):
    session = os.fork()
    if session == 0:
        try: os.setsid()
        except PermissionError: os._exit(0)
        os._exit(1)
    if os.waitpid(session, 0)[1]: return x
    for _ in range(4):
        if os.fork() == 0:
            while True: pass
    return 2 * x"""
