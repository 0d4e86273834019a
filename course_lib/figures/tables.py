"""Tables: what a model takes for what, a cell for each pair of class and guess or of
what it was told and what it chooses.
C classes.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from course_lib.figures.style import (
    DIGITS_UP_TO,
    add_colour_bar,
    describe,
    draw_cells,
    new_figure,
)


def confusion_map(
    counts: Int[np.ndarray, "C C"], labels: Sequence[str], title: str = ""
) -> Figure:
    """Draw how often each class was taken for each: colours are shares of a row, so
    that rare classes can be seen."""
    number = len(labels)
    if counts.shape != (number, number) or not number or (counts < 0).any():
        raise ValueError(
            f"counts have shape {counts.shape} for {number} classes; give a count from"
            " 0 for each pair"
        )
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure, axes = new_figure(title)
    digits = (
        (lambda row, column: f"{counts[row, column]:,}")
        if number <= DIGITS_UP_TO
        else None
    )
    image = draw_cells(axes, shares, digits)
    axes.set_xticks(range(number), labels, fontsize=9, rotation=30 if number > 3 else 0)
    axes.set_yticks(range(number), labels, fontsize=9)
    axes.set_xlabel("guessed class")
    axes.set_ylabel("gold class")
    add_colour_bar(
        figure, image, axes, "share of the gold class", fraction=0.04, pad=0.02
    )
    sentences = []
    for row, label in enumerate(labels):
        others = [
            column for column in range(number) if column != row and counts[row, column]
        ]
        worst = max(others, key=lambda column: counts[row, column], default=None)
        mistaken = (
            ""
            if worst is None
            else f", most often else taken for {labels[worst]} ({counts[row, worst]:,})"
        )
        sentences.append(
            f"{label}: {counts[row, row]:,} of {counts[row].sum():,} right{mistaken}."
        )
    return describe(
        figure, "Map of gold classes against guessed ones. " + " ".join(sentences)
    )


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
    image = draw_cells(
        axes, values, lambda row, column: f"{100 * values[row, column]:.0f}", 9
    )
    axes.set_xticks(range(len(choices)), choices, fontsize=9)
    axes.set_yticks(range(len(told)), told, fontsize=9)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    add_colour_bar(figure, image, axes, "share of the row (in the cells: %)")
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
