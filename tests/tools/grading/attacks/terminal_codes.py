"""Escape codes of terminals where a notebook names its format: they cleared the
instructor's screen."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
PROBLEM = "is a broken notebook"


def write(folder, text, root):
    codes = "\\u001b[2J\\u001b[1;1H\\u001b[32mall is well"
    (folder / "mini.ipynb").write_text(
        text.replace('"nbformat": 4', f'"nbformat": "{codes}"')
    )
