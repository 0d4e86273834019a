"""What a model gets wrong, as pictures: which class it takes for which, and how often
it is right when it is sure.

C  classes
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int
from matplotlib import colormaps
from matplotlib.figure import Figure

from course_lib.figures.curves_and_maps import DIGITS_UP_TO, HEAT
from course_lib.figures.style import INK, contrast_ratio, describe, new_figure, style_of
from course_lib.metrics.tasks import Calibration

__all__ = ["confusion_map", "reliability_diagram"]


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
    image = axes.imshow(
        shares, cmap=HEAT, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    axes.set_xticks(range(number), labels, fontsize=9, rotation=30 if number > 3 else 0)
    axes.set_yticks(range(number), labels, fontsize=9)
    axes.set_xlabel("guessed class")
    axes.set_ylabel("gold class")
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.set_label("share of the gold class", color=INK)
    bar.ax.tick_params(colors=INK, labelcolor=INK)
    bar.outline.set_edgecolor(INK)
    if number <= DIGITS_UP_TO:
        for row, column in np.ndindex(*counts.shape):
            cell = colormaps[HEAT](shares[row, column])
            ink = max(
                ("black", "white"), key=lambda colour: contrast_ratio(colour, cell)
            )
            axes.text(
                column,
                row,
                f"{counts[row, column]:,}",
                ha="center",
                va="center",
                fontsize=8,
                color=ink,
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


def reliability_diagram(curves: Mapping[str, Calibration], title: str = "") -> Figure:
    """Draw how often guesses of some confidence are right (Guo et al. 2017, figure 4):
    above the diagonal, too modest."""
    if not curves:
        raise ValueError("no curves: give at least one calibration")
    figure, axes = new_figure(title)
    axes.plot([0, 100], [0, 100], color=INK, linewidth=0.8)
    sentences = []
    for label, found in curves.items():
        style = style_of(label)
        confidence, accuracy = (
            100 * np.asarray(found.confidence),
            100 * np.asarray(found.accuracy),
        )
        shown = f"{label}: ECE {100 * found.error:.1f}%"
        axes.plot(
            confidence,
            accuracy,
            color=style.colour,
            linestyle=style.dash,
            linewidth=1.5,
            label=shown,
        )
        sizes = 10 + 150 * np.asarray(found.guesses) / sum(found.guesses)
        axes.scatter(
            confidence, accuracy, s=sizes, marker=style.marker, color=style.colour
        )
        last = (
            f"guesses of {confidence[-1]:.0f}% confidence are right in"
            f" {accuracy[-1]:.0f}% of cases"
        )
        sentences.append(
            f"{label}: expected calibration error {100 * found.error:.1f}%; {last}."
        )
    least = min(
        100 * min(*found.confidence, *found.accuracy) for found in curves.values()
    )
    axes.set_xlim(10 * np.floor(least / 10), 101)
    axes.set_ylim(10 * np.floor(least / 10), 101)
    axes.set_xlabel("confidence: probability of the guess (%)")
    axes.set_ylabel("accuracy: share of right guesses (%)")
    axes.legend(frameon=False, labelcolor=INK, fontsize=9, loc="upper left")
    return describe(
        figure, "Accuracy against confidence, with the diagonal. " + " ".join(sentences)
    )
