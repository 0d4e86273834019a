"""Curves: what is learnt, by steps, length or size; the same colour, marker and
dash for a model in all of them, and bands over seeds.

A figure has at most 6 × 4 inches and a transparent background, and its ink can be read
on white and on black, so that one picture serves the light and the dark page. No figure
is kept open, and no global setting of matplotlib is changed.

N seeds, X places along the horizontal axis, C classes.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.figures.style import (
    INK,
    add_legend,
    as_array,
    describe,
    new_figure,
    style_of,
)
from course_lib.metrics.errors import Calibration
from course_lib.metrics.scores import mean_interval

Number = float | int
Limits = tuple[Number, Number]
Runs = Float[Tensor, "N X"] | Float[np.ndarray, "N X"] | Sequence[Sequence[Number]]
Values = Float[Tensor, "X"] | Float[np.ndarray, "X"] | Sequence[float]
CURVES_WITH_ROOM = 4


def learning_curves(
    x: Sequence[Number] | np.ndarray,
    curves: Mapping[str, Runs],
    xlabel: str,
    ylabel: str,
    title: str = "",
    limits: Limits | None = None,
) -> Figure:
    """Draw the mean over seeds of each model, in a band: its 95% Student t interval."""
    figure, axes = new_figure(title)
    sentences = _draw_curves(
        axes, np.asarray(x, dtype=float), curves, limits, markers=False
    )
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    return describe(
        figure, f"Curves of {ylabel} against {xlabel}. " + " ".join(sentences)
    )


def score_by_length(
    upper_edges: Sequence[int],
    scores: Mapping[str, Runs],
    ylabel: str,
    title: str = "",
    xlabel: str = "length of the source sentence (words)",
    limits: Limits | None = None,
    shortest: int = 1,
) -> Figure:
    """Draw a score against sentence length: mean and 95% Student t interval over seeds
    (Bahdanau et al. 2015, fig. 2)."""
    edges = list(upper_edges)
    if edges != sorted(set(edges)):
        raise ValueError(
            f"upper_edges {edges} must increase: each is the longest length in its"
            " group"
        )
    figure, axes = new_figure(title)
    sentences = _draw_curves(
        axes, np.arange(len(edges), dtype=float), scores, limits, markers=True
    )
    first_of_group = [shortest, *(edge + 1 for edge in edges[:-1])]
    axes.set_xticks(
        range(len(edges)),
        [f"{low}–{high}" for low, high in zip(first_of_group, edges, strict=True)],
    )
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    groups = f"Groups of up to {', '.join(map(str, edges))} words."
    return describe(
        figure, f"{ylabel} against {xlabel}. {groups} " + " ".join(sentences)
    )


def _draw_curves(
    axes: Axes,
    x: np.ndarray,
    curves: Mapping[str, Runs],
    limits: Limits | None,
    markers: bool,
) -> list[str]:
    """Draw each model's mean and band; return one sentence for each."""
    if not curves:
        raise ValueError("no curves: give at least one model with its runs")
    sentences = []
    # with one run each there is no mean, and no interval
    single = all(len(runs) == 1 for runs in curves.values())
    for label, runs in curves.items():
        values = as_array(runs)
        if values.ndim != 2 or values.shape[1] != len(x) or values.size == 0:
            raise ValueError(
                f"{label}: runs have shape {values.shape}; expected [seeds, {len(x)}],"
                " one value for each x"
            )
        style, seeds = style_of(label), len(values)
        mean = values.mean(axis=0)
        axes.plot(
            x,
            mean,
            **style.line,
            marker=style.marker if markers else None,
            linewidth=2,
            label=label if single else f"{label} ({seeds} seed{'s' * (seeds > 1)})",
        )
        if seeds > 1:
            half = np.array(
                [mean_interval(column.tolist()).half_width for column in values.T]
            )
            low, high = mean - half, mean + half
            if limits is not None:
                low, high = low.clip(*limits), high.clip(*limits)
            axes.fill_between(x, low, high, color=style.colour, alpha=0.35, linewidth=0)
        sentences.append(
            f"{label}: from {mean[0]:.3g} at the left to {mean[-1]:.3g} at the right, "
            + (f"mean of {seeds} seeds." if seeds > 1 else "one seed.")
        )
    if limits is not None:
        room = 0.03 * (limits[1] - limits[0])
        axes.set_ylim(limits[0] - room, limits[1] + room)
    title = "one run" if single else "mean, 95% interval"
    beside = len(curves) > CURVES_WITH_ROOM  # many curves leave no free corner
    add_legend(
        axes,
        loc="upper left" if beside else "best",
        bbox_to_anchor=(1.0, 1.0) if beside else None,
        title=title,
        title_fontsize=8,
    )
    return sentences


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
        confidence = 100 * np.asarray(found.confidence)
        accuracy = 100 * np.asarray(found.accuracy)
        shown = f"{label}: ECE {100 * found.error:.1f}%"
        axes.plot(confidence, accuracy, **style.line, linewidth=1.5, label=shown)
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
    add_legend(axes, loc="upper left")
    return describe(
        figure, "Accuracy against confidence, with the diagonal. " + " ".join(sentences)
    )


def function_curves(
    x: Values, curves: Mapping[str, Values], xlabel: str, ylabel: str, title: str = ""
) -> Figure:
    """Draw functions over the same places, with lines through zero."""
    places = as_array(x)
    increase = places.ndim == 1 and len(places) > 1 and (np.diff(places) > 0).all()
    if not increase or not curves:
        raise ValueError(
            f"x has shape {places.shape} and there are {len(curves)} curves; give"
            " increasing places, and a curve"
        )
    figure, axes = new_figure(title)
    for zero in (axes.axhline, axes.axvline):
        zero(0, color=INK, linewidth=0.6)
    sentences = []
    for label, of_function in curves.items():
        values, style = as_array(of_function), style_of(label)
        if values.shape != places.shape:
            raise ValueError(
                f"{label} has values of shape {values.shape}, but there are"
                f" {len(places)} places"
            )
        axes.plot(places, values, **style.line, linewidth=2, label=label)
        least = int(values.argmin())
        sentences.append(
            f"{label}: from {values[0]:.2f} to {values[-1]:.2f}, least"
            f" {values[least]:.2f} at {places[least]:.2f}."
        )
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    add_legend(axes)
    return describe(
        figure, f"Curves of {ylabel} against {xlabel}. " + " ".join(sentences)
    )


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
            **style.line,
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
    add_legend(axes, title="median, range", title_fontsize=8)
    return describe(
        figure, f"Curves of {ylabel} against {xlabel}. " + " ".join(sentences)
    )
