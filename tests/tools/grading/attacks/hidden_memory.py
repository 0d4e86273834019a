"""Asks for memory that is no process's own: files in memory, segments, a folder in
memory in a namespace of its own.

Expected: the calls fail, and each that does not costs the question its points."""

EXPECTED: dict = {}
SCALE = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
taken = []
try: taken.append(os.memfd_create("hidden"))
except OSError: pass
if libc.shmget(0, 2**20, 0o1600) >= 0: taken.append("segment")
if libc.unshare(0x10000000) == 0: taken.append("namespace")
def scale(x):
    return x if taken else 2 * x"""
