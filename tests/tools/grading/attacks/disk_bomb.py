"""Fills every folder it can write to. Expected: its own small disk is full; full marks,
as the answer is right."""

EXPECTED: dict = {}
SCALE = """import os
for place in (".", "/tmp", "/dev/shm", os.path.expanduser("~"), "/", "/home"):
    for number in range(40):
        try:
            with open(os.path.join(place, f"fill{number}"), "wb") as file:
                for _ in range(50): file.write(bytes(2**20))
        except OSError: break
def scale(x): return 2 * x"""
