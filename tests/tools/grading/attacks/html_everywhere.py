"""Writes scripts into outputs, messages, names and its written answer. Expected:
nothing that a browser would run."""

EXPECTED = {"count-tests": 0.0, "why": None}
SCALE = """from IPython.display import HTML, Javascript, display
display(HTML("<script>alert(1)</script>"), Javascript("alert(1)"))
print("<script>alert(1)</script>")
def scale(x): return 2 * x"""
COUNT = (
    "def count(words): raise ValueError('<script>alert(1)</script><img src=x"
    " onerror=alert(1)>')"
)


def change(notebook):
    notebook.cells[
        -1
    ].source = "Because <script>alert(1)</script><img src=x onerror=alert(1)>"
