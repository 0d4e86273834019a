"""Tables: what a model takes for what, a cell for each pair of class and guess or of
what it was told and what it chooses; and which rows of its matrices an input takes.
C classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from course_lib.figures.style import (
    DIGITS_UP_TO,
    INK,
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


# one for each matrix; what a box says is written in it, too
EDGES = ("#0072b2", "#d55e00", "#008a64")
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
    centred: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
    # points: the longest number fits its box
    size = min(9.0, 400 / (len(pieces) * max(digits, 2)))
    drawn = zip(rows.values(), EDGES, DASHES, strict=False)
    for line, (numbers, edge, dash) in enumerate(drawn):
        for column, number in enumerate(numbers):
            if line:
                axes.text(column, line - 0.5, "+", fontsize=9, **centred)
            box = FancyBboxPatch(
                (column - 0.4, line - 0.25),
                0.8,
                0.5,
                boxstyle="round,pad=0,rounding_size=0.08",
                mutation_aspect=0.5,
            )
            box.set(facecolor="none", edgecolor=edge, linestyle=dash, linewidth=1.2)
            axes.add_patch(box)
            axes.text(column, line, str(number), fontsize=size, **centred)
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
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    columns = "; ".join(
        f"{piece}: {', '.join(str(numbers[column]) for numbers in rows.values())}"
        for column, piece in enumerate(pieces)
    )
    return describe(
        figure, f"Rows of {', '.join(rows)} that are added for each piece. {columns}."
    )
