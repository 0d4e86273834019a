"""Makes the tests Markdown, rewrites them, and gives them 1000 points. Expected: 0, as
released."""

EXPECTED = {"scale-tests": 0.0}
SCALE = "def scale(x): return x"


def change(notebook):
    from nbformat.v4 import new_markdown_cell

    for place, cell in enumerate(notebook.cells):
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "scale-tests":
            cell.metadata.nbgrader.points = 1000
            notebook.cells[place] = new_markdown_cell("passed", metadata=cell.metadata)
        elif cell.metadata.get("nbgrader", {}).get("grade_id") == "count-tests":
            cell.source, cell.metadata.nbgrader.points = "4000.0", 4000
