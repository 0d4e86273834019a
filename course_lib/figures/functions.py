"""Functions of one number as curves.

X  places along the horizontal axis
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.figures.style import INK, describe, new_figure, style_of

__all__ = ["function_curves"]

Values = Float[Tensor, "X"] | Float[np.ndarray, "X"] | Sequence[float]


def function_curves(
    x: Values, curves: Mapping[str, Values], xlabel: str, ylabel: str, title: str = ""
) -> Figure:
    """Draw functions over the same places, with lines through zero."""
    places = _array(x)
    if (
        places.ndim != 1
        or len(places) < 2
        or (np.diff(places) <= 0).any()
        or not curves
    ):
        raise ValueError(
            f"x has shape {places.shape} and there are {len(curves)} curves; give"
            " increasing places, and a curve"
        )
    figure, axes = new_figure(title)
    for zero in (axes.axhline, axes.axvline):
        zero(0, color=INK, linewidth=0.6)
    sentences = []
    for label, of_function in curves.items():
        values, style = _array(of_function), style_of(label)
        if values.shape != places.shape:
            raise ValueError(
                f"{label} has values of shape {values.shape}, but there are"
                f" {len(places)} places"
            )
        axes.plot(
            places,
            values,
            color=style.colour,
            linestyle=style.dash,
            linewidth=2,
            label=label,
        )
        least = int(values.argmin())
        sentences.append(
            f"{label}: from {values[0]:.2f} to {values[-1]:.2f}, least"
            f" {values[least]:.2f} at {places[least]:.2f}."
        )
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.legend(frameon=False, labelcolor=INK, fontsize=9)
    return describe(
        figure, f"Curves of {ylabel} against {xlabel}. " + " ".join(sentences)
    )


def _array(values: Values) -> np.ndarray:
    return (
        values.detach().cpu().numpy()
        if isinstance(values, Tensor)
        else np.asarray(values)
    ).astype(float)
