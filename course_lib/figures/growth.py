"""How something grows: curves on logarithmic axes, the median of several runs in a band
from the least to the greatest.

On such axes a power law is a straight line, and its exponent is the slope. The band is
the whole range and not an interval of the mean, which may reach below zero, where a
logarithm ends.

    N  runs   X  places along the horizontal axis

What this module does not do: fit. `course_lab.ch02_self_attention.attention_cost` does.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from course_lib.figures.style import INK, describe, new_figure, style_of

__all__ = ["growth_curves"]

Number = float | int
Runs = Float[np.ndarray, "N X"] | Sequence[Sequence[Number]]


def growth_curves(
    x: Sequence[Number],
    curves: Mapping[str, Runs],
    xlabel: str,
    ylabel: str,
    title: str = "",
    logarithmic_y: bool = True,
) -> Figure:
    """Draw the median of each model's runs against something that doubles from place to
    place."""
    places = np.asarray(x, dtype=float)
    if len(places) == 0 or places[0] <= 0 or (np.diff(places) <= 0).any():
        raise ValueError(
            f"x is {list(x)}; places on a logarithmic axis must be positive and"
            " increase"
        )
    if not curves:
        raise ValueError("no curves: give at least one model with its runs")
    figure, axes = new_figure(title)
    axes.set_xscale("log", base=2)
    if logarithmic_y:
        axes.set_yscale("log")
    sentences = []
    for label, runs in curves.items():
        values = np.asarray(runs, dtype=float)
        if values.ndim != 2 or values.shape[1] != len(places) or len(values) == 0:
            raise ValueError(
                f"{label}: runs have shape {values.shape}; expected [runs,"
                f" {len(places)}]"
            )
        if logarithmic_y:
            values = np.where(values > 0, values, np.nan)
        style, count = style_of(label), len(values)
        seen = np.isfinite(values).all(axis=0)
        middle = np.median(values[:, seen], axis=0)
        axes.plot(
            places[seen],
            middle,
            color=style.colour,
            linestyle=style.dash,
            marker=style.marker,
            linewidth=2,
            label=f"{label} ({count} run{'s' * (count > 1)})",
        )
        if count > 1:
            low, high = values[:, seen].min(axis=0), values[:, seen].max(axis=0)
            axes.fill_between(
                places[seen], low, high, color=style.colour, alpha=0.35, linewidth=0
            )
        sentences.append(
            f"{label}: from {middle[0]:.3g} at the left to {middle[-1]:.3g} at the"
            " right."
        )
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    legend = axes.legend(
        frameon=False,
        labelcolor=INK,
        fontsize=9,
        title="median, range",
        title_fontsize=8,
    )
    legend.get_title().set_color(INK)
    return describe(
        figure, f"Curves of {ylabel} against {xlabel}. " + " ".join(sentences)
    )
