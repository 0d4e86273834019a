"""How scores grow with the number of labels: a panel for each task, a line for each way
to use a model.

N  seeds     X  numbers of labels
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from course_lib.figures.style import INK, SIZE, describe, style_of

__all__ = ["label_curves"]

COLUMNS = 3

Runs = Float[np.ndarray, "N X"] | Sequence[Sequence[float]]


def label_curves(
    panels: Mapping[str, tuple[Sequence[int], Mapping[str, Runs]]],
    ylabel: str = "score (%)",
) -> Figure:
    """Draw what each way earns with how many labels: the mean over seeds, in a band
    from the least to the greatest."""
    if not panels or not all(len(labels) and ways for labels, ways in panels.values()):
        raise ValueError(
            "no curves: give at least one task, with its numbers of labels and one way"
        )
    everywhere = sorted({number for labels, _ in panels.values() for number in labels})
    lines = -(-len(panels) // COLUMNS)
    figure, grid = plt.subplots(
        lines,
        min(COLUMNS, len(panels)),
        figsize=(SIZE[0], min(SIZE[1], 0.6 + 1.7 * lines)),
        dpi=144,
        layout="constrained",
        facecolor="none",
        squeeze=False,
    )
    plt.close(figure)  # a notebook would draw one left open a second time
    sentences = []
    for axes, (task, (labels, ways)) in zip(grid.flat, panels.items(), strict=False):
        axes.set_facecolor("none")
        axes.set_xscale("log")
        for way, runs in ways.items():
            scores = np.asarray(runs, dtype=float)
            if scores.ndim != 2 or scores.shape[1] != len(labels) or len(scores) == 0:
                raise ValueError(
                    f"{task}, {way}: scores have shape {scores.shape}; expected [seeds,"
                    f" {len(labels)}]"
                )
            style, middle = style_of(way), scores.mean(axis=0)
            axes.plot(
                labels,
                middle,
                color=style.colour,
                linestyle=style.dash,
                marker=style.marker,
                markersize=4,
                label=way,
            )
            axes.fill_between(
                labels,
                scores.min(axis=0),
                scores.max(axis=0),
                color=style.colour,
                alpha=0.3,
                linewidth=0,
            )
            if len(labels) == 1:  # a band of one place has no width
                axes.vlines(
                    labels,
                    scores.min(axis=0),
                    scores.max(axis=0),
                    color=style.colour,
                    linewidth=1,
                )
            sentences.append(
                f"{task}, {way}: {', '.join(f'{score:.0f}' for score in middle)}."
            )
        axes.set_title(task, color=INK, fontsize=10)
        axes.set_xticks(
            everywhere, [f"{number:,}" for number in everywhere], fontsize=8
        )
        axes.set_xlim(everywhere[0] / 1.4, everywhere[-1] * 1.4)
        axes.minorticks_off()
        axes.tick_params(colors=INK, labelcolor=INK, labelsize=8)
        for side, spine in axes.spines.items():
            spine.set_color(INK)
            spine.set_visible(side in ("left", "bottom"))
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    figure.supxlabel("labels", color=INK, fontsize=9)
    figure.supylabel(ylabel, color=INK, fontsize=9)
    handles, names = grid[0, 0].get_legend_handles_labels()
    legend = figure.legend(
        handles,
        names,
        loc="outside upper center",
        ncols=len(names),
        frameon=False,
        fontsize=9,
    )
    for text in legend.get_texts():
        text.set_color(INK)
    counts = ", ".join(f"{number:,}" for number in everywhere)
    return describe(figure, f"{ylabel} with {counts} labels. " + " ".join(sentences))
