"""Returns an object whose unpickling runs code. Expected: 0, nothing is unpickled."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import os
class Surprise:
    def __reduce__(self): return (os.system, ("touch surprise",))
def scale(x): return Surprise()"""
