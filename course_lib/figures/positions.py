"""Position encodings as pictures: one row for each position, one column for each
feature.

T  positions   D  features
"""

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.figures.style import INK, describe, new_figure

__all__ = ["position_heatmap"]

# blue positive, red negative: told apart by all but the rarest colour blindness, white
# at 0
DIVERGING = "RdBu"


def position_heatmap(
    table: Float[Tensor, "T D"] | Float[np.ndarray, "T D"], title: str = ""
) -> Figure:
    """Draw the vector of each position as a row of colours, from -1 (red) to 1
    (blue)."""
    values = (
        table.detach().float().cpu().numpy()
        if isinstance(table, Tensor)
        else np.asarray(table)
    ).astype(float)
    if values.size == 0 or not (np.abs(values) <= 1 + 1e-6).all():
        raise ValueError(
            "position_heatmap draws values from -1 to 1, at least one; divide larger"
            " ones first"
        )
    figure, axes = new_figure(title)
    image = axes.imshow(
        values, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
    )
    axes.set_xlabel("feature")
    axes.set_ylabel("position (words from the start)")
    bar = figure.colorbar(image, ax=axes, label="value", ticks=[-1, 0, 1])
    bar.ax.tick_params(colors=INK, labelcolor=INK)
    bar.ax.yaxis.label.set_color(INK)
    bar.outline.set_edgecolor(INK)
    changes = np.diff(values >= 0, axis=0).sum(axis=0)
    halves = [changes[: values.shape[1] // 2], changes[values.shape[1] // 2 :]]
    first, second = (int(half.max()) if half.size else 0 for half in halves)
    return describe(
        figure,
        f"{values.shape[0]} positions by {values.shape[1]} features. Downwards, a"
        f" feature on the left changes sign up to {first} times, one on the right up to"
        f" {second} times.",
    )
