"""Masks as pictures: one square for each query and key, filled where the query may
attend.

T  queries   S  keys
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Bool
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from course_lib.figures.style import INK, SIZE, describe

__all__ = ["mask_panels"]

ALLOWED = "#0072b2"  # the colour of attention in every figure of the book

Mask = Bool[Tensor, "T S"] | Bool[np.ndarray, "T S"]


def mask_panels(
    masks: Mapping[str, Mask],
    query_words: Sequence[str],
    key_words: Sequence[str],
    xlabel: str = "key",
    ylabel: str = "query",
) -> Figure:
    """Draw several masks of the same words side by side."""
    if not masks:
        raise ValueError("no masks: give at least one, by name")
    # As in `new_figure`, which makes one panel: transparent, and closed at once so that
    # a notebook draws it once.
    figure, grid = plt.subplots(
        1,
        len(masks),
        figsize=(SIZE[0], 2.6),
        dpi=144,
        layout="constrained",
        facecolor="none",
        squeeze=False,
    )
    plt.close(figure)
    sentences = []
    for place, (axes, (name, mask)) in enumerate(
        zip(grid[0], masks.items(), strict=True)
    ):
        allowed = np.asarray(mask)
        if allowed.shape != (len(query_words), len(key_words)) or allowed.dtype != bool:
            raise ValueError(
                f"{name}: the mask has shape {allowed.shape} and type {allowed.dtype},"
                f" but there are {len(query_words)} queries and {len(key_words)} keys;"
                " give a boolean mask, one row for each query"
            )
        axes.set_facecolor("none")
        for (t, s), may in np.ndenumerate(allowed):
            square = Rectangle(
                (s - 0.44, t - 0.44),
                0.88,
                0.88,
                edgecolor=INK,
                linewidth=0.8,
                fill=bool(may),
            )
            if may:
                square.set_facecolor(ALLOWED)
            else:
                axes.plot(s, t, marker="x", color=INK, markersize=4)
            axes.add_patch(square)
        axes.set(
            xlim=(-0.6, len(key_words) - 0.4),
            ylim=(len(query_words) - 0.4, -0.6),
            aspect="equal",
        )
        axes.set_xticks(
            range(len(key_words)),
            key_words,
            rotation=60,
            ha="right",
            rotation_mode="anchor",
            fontsize=8,
        )
        if place == 0:
            axes.set_yticks(range(len(query_words)), query_words, fontsize=8)
            axes.set_ylabel(ylabel, color=INK, fontsize=9)
        else:
            axes.set_yticks([])
        axes.tick_params(colors=INK, labelcolor=INK, length=0)
        axes.set_title(name, color=INK, fontsize=10)
        axes.set_xlabel(xlabel, color=INK, fontsize=9)
        for spine in axes.spines.values():
            spine.set_visible(False)
        rows = "; ".join(
            f"{word} may attend to"
            f" {', '.join(key_words[s] for s in np.flatnonzero(row).tolist()) or 'nothing'}"  # noqa: E501
            for word, row in zip(query_words, allowed, strict=True)
        )
        sentences.append(f"{name}: {rows}.")
    return describe(
        figure,
        "Masks, a filled square where a query may attend. " + " ".join(sentences),
    )
