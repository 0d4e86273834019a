"""Searches frames, garbage collector, history, working folder and file system for
hidden tests, and prints all.

Expected: 0, and no hidden byte in anything that is kept.
"""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import gc, os, sys
def search():
    found = [repr(In)]
    frame = sys._getframe()
    while frame:
        found.append(repr(frame.f_locals)[:100000]); frame = frame.f_back
    found += [text for text in gc.get_objects() if isinstance(text, str) and "hidden" in text.lower()]
    for place, _, files in os.walk("."):
        found += [open(os.path.join(place, name), errors="replace").read() for name in files]
    return "".join(map(str, found))
print(search())
def scale(x):
    print(search())
    raise ValueError(search()[:3000] + repr(x))"""  # noqa: E501
