"""Hands in a link to the instructor's notebook. Expected: 0 and a problem in words, the
link is not followed."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0, "why": 0.0}
PROBLEM = "may be a link"


def write(folder, text, root):
    (folder / "mini.ipynb").symlink_to(root / "solutions" / "mini" / "mini.ipynb")
