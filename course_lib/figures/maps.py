"""Maps: a cell for each pair, as attention weights, alignments, masks
and position encodings have them.

T target words or queries, S source words or keys, D features.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, from_numpy

from course_lib.figures.style import (
    DIGITS_UP_TO,
    INK,
    add_colour_bar,
    as_array,
    describe,
    draw_cells,
    new_figure,
    new_panels,
)
from course_lib.metrics.scores import alignment_from_weights

Weights = Float[Tensor, "T S"] | Float[np.ndarray, "T S"]
Mask = Bool[Tensor, "T S"] | Bool[np.ndarray, "T S"]
# blue positive, red negative: told apart by all but the rarest colour blindness, white
# at 0
DIVERGING = "RdBu"
ALLOWED = "#0072b2"  # the colour of attention in every figure of the book


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


def _checked_weights(
    weights: Weights, source_words: Sequence[str], target_words: Sequence[str]
) -> np.ndarray:
    values = as_array(weights)
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
    longest = max(values.shape)
    digits = longest <= DIGITS_UP_TO
    image = draw_cells(
        axes, values, (lambda t, s: f"{100 * values[t, s]:.0f}") if digits else None
    )
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
    axes.spines[:].set_visible(False)
    label = "attention weight" + (" (in the cells: hundredths)" if digits else "")
    add_colour_bar(figure, image, axes, label, fraction=0.04, pad=0.02)


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
    figure, grid = new_panels(1, len(masks), 2.6)
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
            axes.set_ylabel(ylabel, fontsize=9)
        else:
            axes.set_yticks([])
        axes.tick_params(length=0)
        axes.set_title(name, color=INK, fontsize=10)
        axes.set_xlabel(xlabel, fontsize=9)
        axes.spines[:].set_visible(False)
        seen = [
            ", ".join(np.array(key_words, dtype=object)[row]) or "nothing"
            for row in allowed
        ]
        rows = "; ".join(
            f"{word} may attend to {keys}"
            for word, keys in zip(query_words, seen, strict=True)
        )
        sentences.append(f"{name}: {rows}.")
    return describe(
        figure,
        "Masks, a filled square where a query may attend. " + " ".join(sentences),
    )


def position_heatmap(
    table: Float[Tensor, "T D"] | Float[np.ndarray, "T D"], title: str = ""
) -> Figure:
    """Draw the vector of each position as a row of colours, from -1 (red) to 1
    (blue)."""
    values = as_array(table)
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
    add_colour_bar(figure, image, axes, "value", ticks=[-1, 0, 1])
    changes = np.diff(values >= 0, axis=0).sum(axis=0)
    halves = [changes[: values.shape[1] // 2], changes[values.shape[1] // 2 :]]
    first, second = (int(half.max()) if half.size else 0 for half in halves)
    return describe(
        figure,
        f"{values.shape[0]} positions by {values.shape[1]} features. Downwards, a"
        f" feature on the left changes sign up to {first} times, one on the right up to"
        f" {second} times.",
    )
