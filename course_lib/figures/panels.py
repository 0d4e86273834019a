"""Panels side by side: how scores grow with labels, a panel for each task; uses of a
word as points in a plane, a panel for each model.

N seeds, or uses of the word; X numbers of labels.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from course_lib.figures.curves import Runs
from course_lib.figures.style import INK, add_legend, describe, new_panels, style_of

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
    figure, grid = new_panels(len(rows), len(panels), 0.5 + 1.7 * len(rows))
    for line, (row_name, row) in enumerate(rows.items()):
        for column, (panel, points) in enumerate(row.items()):
            axes = grid[line][column]
            if points.shape != (len(senses), 2):
                raise ValueError(
                    f"{row_name}, {panel}: {points.shape} points for {len(senses)}"
                    " senses; give one for each"
                )
            for name, (colour, marker) in zip(names, SENSES, strict=False):
                own = points[[sense == name for sense in senses]]
                # Hollow, so that points on top of one another can be seen.
                axes.scatter(
                    own[:, 0],
                    own[:, 1],
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
            if line == 0:
                axes.set_title(panel, color=INK, fontsize=10)
            if column == 0:
                axes.set_ylabel(row_name, fontsize=9)
    handles, labels = grid[0][0].get_legend_handles_labels()
    add_legend(
        figure,
        handles=handles,
        labels=labels,
        loc="outside lower center",
        ncols=len(names),
    )
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
    figure, grid = new_panels(lines, min(COLUMNS, len(panels)), 0.6 + 1.7 * lines)
    places = [axes for row in grid for axes in row]
    sentences = []
    for axes, (task, (labels, ways)) in zip(places, panels.items(), strict=False):
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
                **style.line,
                marker=style.marker,
                markersize=4,
                label=way,
            )
            low, high = scores.min(axis=0), scores.max(axis=0)
            axes.fill_between(
                labels, low, high, color=style.colour, alpha=0.3, linewidth=0
            )
            if len(labels) == 1:  # a band of one place has no width
                axes.vlines(labels, low, high, color=style.colour, linewidth=1)
            sentences.append(
                f"{task}, {way}: {', '.join(f'{score:.0f}' for score in middle)}."
            )
        axes.set_title(task, color=INK, fontsize=10)
        axes.set_xticks(
            everywhere, [f"{number:,}" for number in everywhere], fontsize=8
        )
        axes.set_xlim(everywhere[0] / 1.4, everywhere[-1] * 1.4)
        axes.minorticks_off()
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in places[len(panels) :]:
        axes.remove()
    figure.supxlabel("labels", color=INK, fontsize=9)
    figure.supylabel(ylabel, color=INK, fontsize=9)
    handles, names = grid[0][0].get_legend_handles_labels()
    add_legend(
        figure,
        handles=handles,
        labels=names,
        loc="outside upper center",
        ncols=len(names),
    )
    counts = ", ".join(f"{number:,}" for number in everywhere)
    return describe(figure, f"{ylabel} with {counts} labels. " + " ".join(sentences))
