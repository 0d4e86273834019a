"""The figures of the course: attention as a heat map, alignments against gold, curves
with bands over seeds.

Every function returns a matplotlib Figure of at most 6 × 4 inches whose background is
transparent and whose ink can be read on white and on black, so that one picture serves
the light and the dark page. A model has the same colour, marker and dash in every
figure of the book: `course_lib.figures.style.MODELS` says which. `alt_text` says what a
figure shows.

    T  target words   S  source words   N  seeds   X  places along the horizontal axis

What this module does not do: it keeps no figure open and changes no global setting of
matplotlib.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, from_numpy

from course_lib.figures.style import (
    INK,
    alt_text,
    contrast_ratio,
    describe,
    new_figure,
    style_of,
)
from course_lib.metrics.scores import alignment_from_weights, mean_interval

__all__ = [
    "alignment_map",
    "alt_text",
    "attention_heatmap",
    "learning_curves",
    "score_by_length",
]

Number = float | int
Limits = tuple[Number, Number]
Weights = Float[Tensor, "T S"] | Float[np.ndarray, "T S"]
Runs = Float[Tensor, "N X"] | Float[np.ndarray, "N X"] | Sequence[Sequence[Number]]

# even steps of lightness, the same with every kind of colour vision, readable in
# greyscale
HEAT = "cividis"
DIGITS_UP_TO = 12  # words on a side: up to here each cell has room for its number


def attention_heatmap(
    weights: Weights,
    source_words: Sequence[str],
    target_words: Sequence[str],
    title: str = "",
    xlabel: str = "source word",
    ylabel: str = "target word",
) -> Figure:
    """Draw attention weights: one row a target word, one column a source word (Bahdanau
    et al. 2015, figure 3)."""
    values = _checked_weights(weights, source_words, target_words)
    figure, axes = new_figure(title)
    _draw_heat(figure, axes, values, source_words, target_words)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    return describe(
        figure,
        _describe_heat(
            "Heat map of attention weights", values, source_words, target_words
        ),
    )


def alignment_map(
    weights: Weights,
    source_words: Sequence[str],
    target_words: Sequence[str],
    gold: Collection[Sequence[int]],
    title: str = "",
) -> Figure:
    """Draw attention weights with the cells of the gold alignment outlined."""
    values = _checked_weights(weights, source_words, target_words)
    rows, columns = values.shape
    links = {(int(s), int(t)) for s, t in gold}
    outside = sorted(
        (s, t) for s, t in links if not (0 <= s < columns and 0 <= t < rows)
    )
    if outside:
        raise ValueError(
            f"gold links {outside} lie outside a map of {columns} source and {rows}"
            " target words"
        )
    figure, axes = new_figure(title)
    _draw_heat(figure, axes, values, source_words, target_words)
    thin = min(1.0, DIGITS_UP_TO / max(rows, columns))
    for s, t in sorted(links):
        # White over black: one of the two stands out from any cell, light or dark.
        for colour, width in (("black", 3.0), ("white", 1.2)):
            axes.add_patch(
                Rectangle(
                    (s - 0.45, t - 0.45),
                    0.9,
                    0.9,
                    fill=False,
                    edgecolor=colour,
                    linewidth=thin * width,
                )
            )
    right = sum(link in links for link in _links(values))
    hits = (
        f"{right} of {rows} target words attend most to a word that gold links them to"
    )
    text = _describe_heat(
        "Heat map of attention weights with gold links outlined",
        values,
        source_words,
        target_words,
    )
    first, rest = text.split(". ", 1)
    return describe(figure, f"{first}. {hits}. {rest}")


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


# -- what the functions above share
# ----------------------------------------------------------------------------------


def _array(values: object) -> np.ndarray:
    return (
        values.detach().float().cpu().numpy()
        if isinstance(values, Tensor)
        else np.asarray(values)
    ).astype(float)


def _checked_weights(
    weights: Weights, source_words: Sequence[str], target_words: Sequence[str]
) -> np.ndarray:
    values = _array(weights)
    if values.shape != (len(target_words), len(source_words)):
        raise ValueError(
            f"weights have shape {values.shape}, but there are {len(target_words)}"
            f" target words and {len(source_words)} source words; cut padding off, or"
            " transpose: rows are target words"
        )
    # A hair beyond 1 is what a softmax in bf16 rounds to.
    if values.size == 0 or not ((values >= 0) & (values <= 1.01)).all():
        raise ValueError(
            "weights must be numbers from 0 to 1, at least one; are these scores before"
            " the softmax?"
        )
    return values


def _links(values: np.ndarray) -> set[tuple[int, int]]:
    return alignment_from_weights(from_numpy(values.astype(np.float32)))


def _draw_heat(
    figure: Figure,
    axes: Axes,
    values: np.ndarray,
    source_words: Sequence[str],
    target_words: Sequence[str],
) -> None:
    image = axes.imshow(
        values, cmap=HEAT, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    longest = max(values.shape)
    digits = longest <= DIGITS_UP_TO
    size = 9 if digits else max(5, 9 * DIGITS_UP_TO / longest)
    axes.set_xticks(
        range(len(source_words)),
        source_words,
        rotation=45,
        ha="left",
        rotation_mode="anchor",
        fontsize=size,
    )
    axes.set_yticks(range(len(target_words)), target_words, fontsize=size)
    axes.xaxis.set_ticks_position("top")
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("source word")
    axes.set_ylabel("target word")
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.set_label(
        "attention weight" + (" (in the cells: hundredths)" if digits else ""),
        color=INK,
    )
    bar.ax.tick_params(colors=INK, labelcolor=INK)
    bar.outline.set_edgecolor(INK)
    if digits:
        for t, s in np.ndindex(*values.shape):
            cell = colormaps[HEAT](values[t, s])
            ink = max(
                ("black", "white"), key=lambda colour: contrast_ratio(colour, cell)
            )
            axes.text(
                s,
                t,
                f"{100 * values[t, s]:.0f}",
                ha="center",
                va="center",
                fontsize=8,
                color=ink,
            )


def _describe_heat(
    what: str,
    values: np.ndarray,
    source_words: Sequence[str],
    target_words: Sequence[str],
) -> str:
    rows, columns = values.shape
    best = ", ".join(
        f"{target_words[t]} on {source_words[s]} {values[t, s]:.2f}"
        for s, t in sorted(_links(values), key=lambda link: link[1])
    )
    size = (
        f"{rows} target word{'s' * (rows != 1)} by {columns} source"
        f" word{'s' * (columns != 1)}"
    )
    return f"{what}, {size}. Largest weight of each target word: {best}."


CURVES_WITH_ROOM = 4


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
    single = all(
        len(runs) == 1 for runs in curves.values()
    )  # then there is no mean, and no interval
    for label, runs in curves.items():
        values = _array(runs)
        if (
            values.ndim != 2
            or values.shape[1] != len(x)
            or values.shape[0] == 0
            or len(x) == 0
        ):
            raise ValueError(
                f"{label}: runs have shape {values.shape}; expected [seeds, {len(x)}],"
                " one value for each x"
            )
        style, seeds = style_of(label), len(values)
        mean = values.mean(axis=0)
        axes.plot(
            x,
            mean,
            color=style.colour,
            linestyle=style.dash,
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
    legend = axes.legend(
        loc="upper left" if beside else "best",
        bbox_to_anchor=(1.0, 1.0) if beside else None,
        frameon=False,
        labelcolor=INK,
        fontsize=9,
        title=title,
        title_fontsize=8,
    )
    legend.get_title().set_color(INK)
    return sentences
