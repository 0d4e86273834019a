"""A stepped figure: several states of one thing, which a reader goes through with
buttons or arrow keys.

A cell ends with `stepped_figure(steps, title)`. What it shows is plain HTML, all steps
one below the other, and that is what a notebook on Colab shows. On the site,
`book/_static/stepper.js` shows one step at a time. Nothing is fetched and nothing is
stored.

What this module does not do: it knows nothing of what the steps are about.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.figures.diagrams import Diagram
from course_lib.figures.explorer import Explorer


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    cells: Sequence[str]
    marked: bool = False


@dataclass(frozen=True)
class Table:
    """One table of a step."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Row]
    mark: str = "chosen"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.header):
                raise ValueError(
                    f"table {self.caption!r}: the row {list(row.cells)} has"
                    f" {len(row.cells)} cells, but the header has {len(self.header)}"
                    f" columns: {', '.join(self.header)}"
                )


@dataclass(frozen=True)
class Step:
    """One step of a stepped figure."""

    title: str
    tables: Sequence[Table] = ()
    text: str = ""
    diagram: Diagram | None = None


def stepped_figure(steps: Sequence[Step], title: str) -> Explorer:
    """Lay out steps for a reader to go through, with the keyboard, a pointer or a
    screen reader.

    Parameters
    ----------
    steps
        In order; at least one.
    title
        A line above the figure; also its name for screen readers.

    Returns
    -------
    Explorer
        To be the last line of a cell.

    Raises
    ------
    ValueError
        If there is no step.

    Examples
    --------
    >>> stepped_figure([Step("Start", []), Step("First merge", [])], "Training by hand")
    Training by hand: 2 steps
    """
    steps = list(steps)
    if not steps:
        raise ValueError("no steps: give at least one Step(title, tables)")
    name = html.escape(title)
    items = "".join(_step(step) for step in steps)
    markup = (
        f'<div class="stepper" role="group" aria-label="{name}"><p'
        f' class="stepper-title">{name}</p><ol class="stepper-steps">{items}</ol></div>'
    )
    return Explorer(markup, f"{title}: {len(steps)} step{'s' * (len(steps) != 1)}")


def _step(step: Step) -> str:
    name = html.escape(step.title)
    text = f"<p>{html.escape(step.text)}</p>" if step.text else ""
    picture = step.diagram.svg() if step.diagram else ""
    tables = "".join(_table(table) for table in step.tables)
    return (
        f'<li class="stepper-step" data-title="{name}"><p'
        f' class="stepper-heading">{name}</p>{text}{picture}<div'
        f' class="stepper-tables">{tables}</div></li>'
    )


def _table(table: Table) -> str:
    header = "".join(
        f'<th scope="col">{html.escape(cell)}</th>' for cell in table.header
    )
    rows = "".join(_row(row, table.mark) for row in table.rows)
    caption = html.escape(table.caption)
    # A table may be wider than a phone: its frame scrolls, and takes the focus so that
    # a keyboard can scroll it.
    return (
        f'<div class="stepper-frame" role="group" tabindex="0" aria-label="{caption}">'
        f"<table><caption>{caption}</caption><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(row: Row, mark: str) -> str:
    first, *rest = (html.escape(cell) for cell in row.cells)
    marked = (
        f' <span class="stepper-mark">{html.escape(mark)}</span>' if row.marked else ""
    )
    attribute = " data-marked" if row.marked else ""
    cells = "".join(f"<td>{cell}</td>" for cell in rest)
    return f'<tr{attribute}><th scope="row">{first}{marked}</th>{cells}</tr>'
