"""Text full of tags that never close: a sanitiser of HTML took time with the square of
their number, an hour in all."""

from nbformat.v4 import new_markdown_cell

EXPECTED = {}


def change(notebook):
    attributes = " ".join(
        f"{letter}{place}=1" for letter in "abcdefgh" for place in range(7000)
    )
    notebook.cells.append(new_markdown_cell(f"<a {attributes}>"))
    notebook.cells.append(new_markdown_cell("<b>" * 200_000))
    notebook.cells.append(new_markdown_cell("<" * 900_000))
    notebook.cells.append(new_markdown_cell("[" * 900_000))
    notebook.cells.append(new_markdown_cell("![" * 400_000))
