"""Panels side by side: how scores grow with labels, a panel for each task; uses of a
word as points in a plane, a panel for each model.

N seeds, or uses of the word; X numbers of labels.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from course_lib.figures.curves import Runs
from course_lib.figures.style import INK, SIZE, describe, style_of

__all__ = ["label_curves", "sense_panels"]

COLUMNS = 3


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
