"""Hands in under another name. Expected: graded, with a note."""

EXPECTED: dict = {}
NOTE = "should be called mini.ipynb"


def write(folder, text, root):
    (folder / "mini (1) final.ipynb").write_text(text)
