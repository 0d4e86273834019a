"""Uses of a word as points in a plane: a panel for each model. N uses of the word."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from course_lib.figures.style import INK, SIZE, describe

__all__ = ["sense_panels"]

# Colour and marker of the senses in their order; two of the hues of
# `course_lib.figures.style`, and a third.
SENSES = (("#0072b2", "o"), ("#d55e00", "s"), ("#008a64", "^"))


Points = Float[np.ndarray, "N 2"]


def sense_panels(
    rows: Mapping[str, Mapping[str, Points]], senses: Sequence[str]
) -> Figure:
    """Draw where each model puts the uses of a word, by their sense."""
    names = list(dict.fromkeys(senses))
    if not rows or not all(rows.values()):
        raise ValueError("no panels: give at least one row with one panel")
    panels = list(next(iter(rows.values())))
    if any(list(row) != panels for row in rows.values()):
        raise ValueError(
            f"every row must have the panels {', '.join(panels)}, in this order"
        )
    if len(names) > len(SENSES):
        raise ValueError(
            f"there are {len(names)} senses; a picture tells {len(SENSES)} apart, so"
            " leave some out"
        )
    height = min(SIZE[1], 0.5 + 1.7 * len(rows))
    figure, grid = plt.subplots(
        len(rows),
        len(panels),
        figsize=(SIZE[0], height),
        dpi=144,
        layout="constrained",
        facecolor="none",
        squeeze=False,
    )
    plt.close(figure)  # a notebook would draw one left open a second time
    for line, (row_name, row) in enumerate(rows.items()):
        for column, (panel, points) in enumerate(row.items()):
            axes = grid[line, column]
            if points.shape != (len(senses), 2):
                raise ValueError(
                    f"{row_name}, {panel}: {points.shape} points for {len(senses)}"
                    " senses; give one for each"
                )
            axes.set_facecolor("none")
            for name, (colour, marker) in zip(names, SENSES, strict=False):
                own = points[[sense == name for sense in senses]]
                # Hollow, so that points on top of one another can be seen.
                axes.scatter(
                    *own.T,
                    s=16,
                    marker=marker,
                    facecolors="none",
                    edgecolors=colour,
                    linewidths=1,
                    label=name,
                )
            axes.set_xticks([])
            axes.set_yticks([])
            axes.margins(0.12)
            for spine in axes.spines.values():
                spine.set_color(INK)
            if line == 0:
                axes.set_title(panel, color=INK, fontsize=10)
            if column == 0:
                axes.set_ylabel(row_name, color=INK, fontsize=9)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    legend = figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(names),
        frameon=False,
        fontsize=9,
    )
    for text in legend.get_texts():
        text.set_color(INK)
    counts = ", ".join(
        f"{name} {sum(sense == name for sense in senses)}" for name in names
    )
    return describe(
        figure,
        f"Uses of one word as points, by sense ({counts}). Panels: {', '.join(panels)};"
        f" rows: {', '.join(rows)}.",
    )
