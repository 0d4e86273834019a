"""What goes into BERT as a picture: for each piece, the three rows that are looked up
and added. T positions, N matrices that rows are taken from.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from course_lib.figures.style import INK, describe, new_figure

__all__ = ["input_rows"]

EDGES = (
    "#0072b2",
    "#d55e00",
    "#008a64",
)  # one for each matrix; what a box says is written in it, too


DASHES = ("-", (0, (2.5, 1.5)), ":")


def input_rows(
    pieces: Sequence[str],
    rows: Mapping[str, Sequence[int]],
    groups: Sequence[int],
    title: str = "",
) -> Figure:
    """Draw which row of each matrix a piece takes; a column's boxes are added (Devlin
    et al. 2019, figure 2)."""
    if not pieces or not 1 <= len(rows) <= len(EDGES):
        raise ValueError(
            f"{len(pieces)} pieces and {len(rows)} matrices: there must be a piece, and"
            f" 1 to {len(EDGES)} matrices"
        )
    for name, numbers in {**rows, "groups": groups}.items():
        if len(numbers) != len(pieces):
            raise ValueError(
                f"{name} has {len(numbers)} entries, but there are {len(pieces)} pieces"
            )
    figure, axes = new_figure(title)
    figure.set_figheight(0.9 + 0.62 * len(rows))
    digits = max(len(str(number)) for numbers in rows.values() for number in numbers)
    size = min(
        9.0, 400 / (len(pieces) * max(digits, 2))
    )  # points: the longest number fits its box
    for line, (numbers, edge, dash) in enumerate(
        zip(rows.values(), EDGES, DASHES, strict=False)
    ):
        if line:
            for column in range(len(pieces)):
                axes.text(
                    column,
                    line - 0.5,
                    "+",
                    ha="center",
                    va="center",
                    color=INK,
                    fontsize=9,
                )
        for column, number in enumerate(numbers):
            box = FancyBboxPatch(
                (column - 0.4, line - 0.25),
                0.8,
                0.5,
                boxstyle="round,pad=0,rounding_size=0.08",
                mutation_aspect=0.5,
            )
            box.set(facecolor="none", edgecolor=edge, linestyle=dash, linewidth=1.2)
            axes.add_patch(box)
            axes.text(
                column,
                line,
                str(number),
                ha="center",
                va="center",
                color=INK,
                fontsize=size,
            )
    for column in range(1, len(pieces)):
        if groups[column] != groups[column - 1]:
            axes.axvline(column - 0.5, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xlim=(-0.6, len(pieces) - 0.4), ylim=(len(rows) - 0.6, -0.45))
    axes.set_xticks(
        range(len(pieces)),
        pieces,
        rotation=55,
        ha="left",
        rotation_mode="anchor",
        fontsize=9,
    )
    axes.xaxis.set_ticks_position("top")
    axes.set_yticks(range(len(rows)), list(rows), fontsize=9)
    axes.tick_params(colors=INK, labelcolor=INK, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    columns = "; ".join(
        f"{piece}: {', '.join(str(numbers[column]) for numbers in rows.values())}"
        for column, piece in enumerate(pieces)
    )
    return describe(
        figure, f"Rows of {', '.join(rows)} that are added for each piece. {columns}."
    )
