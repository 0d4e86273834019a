"""Reads other processes' memory, environment and open files under /proc. Expected: 0,
it sees its own alone."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import glob, os
found = []
for place in glob.glob("/proc/[0-9]*/*") + glob.glob("/proc/[0-9]*/fd/*"):
    if f"/proc/{os.getpid()}/" not in place:
        try: found.append(open(place, errors="replace").read(10000))
        except OSError: pass
def scale(x): raise ValueError("".join(found)[:3000])"""
