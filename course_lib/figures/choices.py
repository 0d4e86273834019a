"""What a model chooses, given what it was told: one row for each thing told, one column
for each possible choice."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.figure import Figure

from course_lib.figures.style import INK, contrast_ratio, describe, new_figure

__all__ = ["choice_heatmap"]

HEAT = "cividis"  # even to the eye, also without red and green


def choice_heatmap(
    shares: Float[np.ndarray, "N C"],
    told: Sequence[str],
    choices: Sequence[str],
    xlabel: str,
    ylabel: str,
    title: str = "",
) -> Figure:
    """Draw how a model's choices depend on what it was told, in percent of each row."""
    values = np.asarray(shares, dtype=float)
    if values.shape != (len(told), len(choices)) or values.size == 0:
        raise ValueError(
            f"shares have shape {values.shape}; expected ({len(told)}, {len(choices)}),"
            " as the labels"
        )
    if not ((values >= 0) & (values <= 1 + 1e-6)).all():
        raise ValueError(
            "choice_heatmap draws shares from 0 to 1; divide each row by its sum first"
        )
    figure, axes = new_figure(title)
    image = axes.imshow(
        values, cmap=HEAT, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    for row, column in np.ndindex(*values.shape):
        cell = colormaps[HEAT](values[row, column])
        ink = max(("black", "white"), key=lambda ink: contrast_ratio(ink, cell))
        axes.text(
            column,
            row,
            f"{100 * values[row, column]:.0f}",
            ha="center",
            va="center",
            color=ink,
            fontsize=9,
        )
    axes.set_xticks(range(len(choices)), choices, fontsize=9)
    axes.set_yticks(range(len(told)), told, fontsize=9)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    bar = figure.colorbar(image, ax=axes, label="share of the row (in the cells: %)")
    bar.ax.tick_params(colors=INK, labelcolor=INK)
    bar.ax.yaxis.label.set_color(INK)
    bar.outline.set_edgecolor(INK)
    best = [
        f"{name}: {choices[row.argmax()]} {100 * row.max():.0f}%"
        for name, row in zip(told, values, strict=True)
    ]
    return describe(
        figure,
        f"{xlabel} for each {ylabel}, the largest share of each row. "
        + "; ".join(best)
        + ".",
    )
