"""Asks for two seconds which files `locks_keep` has locked, and raises the word that
they spell.

Expected: full marks, as the call that asks fails.
"""

EXPECTED: dict = {}
COUNT = """import fcntl, glob, os, time
def bit(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.flock(file, fcntl.LOCK_UN)
        return "0"
    except BlockingIOError: return "1"
def count(words):
    files = [open(name) for name in sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:128]]
    until = time.monotonic() + 2
    while time.monotonic() < until:
        try: bits = "".join(map(bit, files))
        except PermissionError: break
        if "1" in bits: raise ValueError(int(bits, 2).to_bytes(16, "big"))
    return len(words)"""  # noqa: E501
