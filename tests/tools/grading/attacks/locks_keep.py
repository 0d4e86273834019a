"""Locks files that every submission may read, one for each bit of what a hidden test
asks.

Expected: full marks, and `locks_tell`, which is graded at the same time, hears nothing.
"""

EXPECTED: dict = {}
COUNT = """import contextlib, fcntl, glob, os, time
def count(words):
    with contextlib.suppress(OSError):
        if words != ["a", "b"]:
            files = [open(name) for name in sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:128]]
            for file, bit in zip(files, "".join(f"{byte:08b}" for byte in words[0].encode())):
                if bit == "1": fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(2)
    return len(words)"""  # noqa: E501
