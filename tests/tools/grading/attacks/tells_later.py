"""Keeps what hidden tests ask, and prints it, or raises it, in whatever runs next.
Expected: no hidden byte is kept."""

EXPECTED = {"count-tests": 0.0}
SCALE = """SEEN = []
def scale(x):
    SEEN.append(repr(x))
    return 2 * x"""
COUNT = """print(SEEN)
def count(words):
    print(SEEN)
    raise ValueError(str(SEEN))"""


def change(notebook):
    from nbformat.v4 import new_code_cell

    notebook.cells.append(new_code_cell("print(SEEN)\nSEEN"))
