"""Hands in a second name (hard link) of another student's file. Expected: 0 and a
problem in words."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0, "why": 0.0}
PROBLEM = "several names"


def write(folder, text, root):
    other = root / "another.ipynb"
    other.write_text(text)
    (folder / "mini.ipynb").hardlink_to(other)
