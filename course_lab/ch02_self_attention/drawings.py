"""The diagrams of chapter 2: what self-attention computes, and who may look at whom.

Every number and every shape is computed by the library's own functions.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import compress, pairwise

import torch
from torch import Tensor

from course_lib.attention.masks import causal_mask, padding_mask
from course_lib.attention.multi_head import scaled_dot_product_attention
from course_lib.figures.diagrams import Area, Diagram, Number

WORDS = ("the", "cat", "sleeps")
TARGET = ("le", "chat", "dort")
#: What one head does, in order, as the map calls it.
STEPS = ("project", "compare", "scale", "mask", "softmax", "mix")


def paths() -> Diagram:
    """Draw how far apart two words are in a recurrent layer and in self-attention."""
    steps = len(WORDS) - 1
    diagram = Diagram(
        "paths",
        244,
        "Recurrence and self-attention",
        "Above, a recurrent layer: each state gets its word and the state before it, so"
        f" the first word is {steps} steps from the last. Below, self-attention: each"
        " output gets all words at once, so any two words are one step apart.",
    )
    for y, name, note in (
        (12, "recurrence", f"“the” to “sleeps”: {steps} steps, one by one"),
        (138, "self-attention", "any two words: one step, all at once"),
    ):
        diagram.label(8, y, name, "bold start")
        diagram.label(392, y, note, "small soft end")
        places = [(80 + 120 * i, word) for i, word in enumerate(WORDS)]
        states = [diagram.box(x, y + 16, 76, 24, "state", "r") for x, _ in places]
        words = [diagram.box(x, y + 78, 76, 24, word) for x, word in places]
        if name == "recurrence":
            for word, state in zip(words, states, strict=True):
                diagram.arrow(word.top, state.bottom)
            for state, after in pairwise(states):
                diagram.arrow(state.right, after.left)
        else:
            _fans(diagram, states, words, torch.ones(3, 3, dtype=torch.bool))
    return diagram


def head_map(here: str | None = None) -> Diagram:
    """Draw the steps of a head in one line; `here` is one of `STEPS`, or "heads"."""
    diagram = Diagram(
        f"head-map-{here or 'all'}",
        88,
        "The steps of self-attention" + f": {here}" * bool(here),
        f"Each head does, in order: {', '.join(STEPS)}. All heads do it side by side,"
        " and their outputs are joined." + f" You are here: {here}." * bool(here),
        here,
    )
    with diagram.part("heads"):
        diagram.group(2, 16, 396, 54, here=here == "heads")
        diagram.label(390, 80, "H heads side by side, then joined", "small end")
    last: Area | None = None
    for number, step in enumerate(STEPS):
        with nullcontext() if here == "heads" else diagram.part(step):
            role = {"softmax": "w", "mix": "v"}.get(step, "n")
            box = _small_box(diagram, 36.5 + 65.4 * number, 31, 58, step, role)
            if last is not None:
                diagram.arrow(last.right, box.left, gap=0)
            last = box
            if here == step:
                diagram.label(box.top[0], 8, "you are here", "small bold")
    return diagram


def one_head(
    x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, words: Sequence[str]
) -> Diagram:
    """Draw a head of self-attention on tokens of two features, number by number."""
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    output, weights = scaled_dot_product_attention(query, key, value)
    scores = query @ key.mT
    diagram = Diagram(
        "one-head",
        690,
        "One head of self-attention, with numbers",
        f"Read downwards. X, {len(words)} tokens of {x.shape[1]} features, times three"
        " matrices gives Q, K and V. Q times K transposed gives a score for each pair;"
        f" divided by the root of {query.shape[1]}, softmax turns a row into weights:"
        f" that of {words[-1]} has {_listed(weights[-1])}. Weights times V give the"
        f" output; its row for {words[-1]} is {_listed(output[-1])}.",
    )
    _matrix(diagram, 200, 20, x, "r", 30, f"X  {_shape(x)}", words)
    made = []
    for centre, name, matrix in (
        (68, "Q", w_query),
        (200, "K", w_key),
        (332, "V", w_value),
    ):
        box = diagram.box(centre, 124, 104, 24, f"× W^{{{name}}}  {_shape(matrix)}")
        diagram.arrow((200, 105), (200, 113), "-", box.top)
        text = f"{name}  {_shape(x @ matrix)}"
        made.append(_matrix(diagram, centre, 168, x @ matrix, name.lower(), 30, text))
        diagram.arrow(box.bottom, made[-1].top)
    compare = diagram.box(134, 276, 150, 24, "Q × K^{T}")
    for area, role, share in ((made[0], "q", 0.2), (made[1], "k", 0.8)):
        x_of = area.bottom[0]
        diagram.arrow((x_of, 253), (x_of, 263), "-", compare.at(share, 0), role=role)
    table = _matrix(diagram, 134, 334, scores, "n", 40, "", words, words)
    softmax = diagram.box(134, 416, 150, 24, f"÷ √{query.shape[1]}, then softmax", "w")
    mixture = _matrix(diagram, 134, 474, weights, "w", 40, "", words, words)
    mix = diagram.box(134, 556, 150, 24, "weights × V", "v")
    diagram.arrow((made[2].bottom[0], 253), "|", mix.right, role="v")
    result = _matrix(
        diagram, 134, 602, output, "v", 46, f"output  {_shape(output)}", words
    )
    for area, text in ((table, "scores"), (mixture, "weights")):
        note = f"{text}\n{_shape(scores)}" + "\nrows sum to 1" * (text == "weights")
        diagram.label(area.right[0] + 8, area.right[1], note, "small start")
    for start, end in (
        (compare.bottom, (134, table.y - 18)),
        (table.bottom, softmax.top),
        (softmax.bottom, (134, mixture.y - 18)),
        (mixture.bottom, mix.top),
        (mix.bottom, result.top),
    ):
        diagram.arrow(start, end)
    return diagram


def scaling(
    widths: Sequence[int] = (4, 64, 1024), keys: int = 8, seed: int = 1
) -> Diagram:
    """Draw the weights of one random query, with and without the divisor."""
    drawn = _random_weights(widths, keys, seed)
    diagram = Diagram(
        "scaling",
        186,
        "What the divisor does to the weights",
        f"The weights that one random query gives to {keys} random keys. Without the"
        " divisor the largest is "
        + ", ".join(
            f"{plain.max():.2f} at {d} features" for d, (plain, _) in drawn.items()
        )
        + "; with it "
        + ", ".join(f"{scaled.max():.2f}" for _, scaled in drawn.values())
        + ".",
    )
    for column, (d, pair) in enumerate(drawn.items()):
        left = 106 + 100 * column
        diagram.label(left + 44, 12, f"d_{{k}} = {d:,}", "bold")
        for row, weights in enumerate(pair):
            floor = 104 + 70 * row
            for place, weight in enumerate(weights.tolist()):
                diagram.bar(
                    left + 11 * place, floor - 76 * weight, 11, "w", 76 * weight
                )
            diagram.arrow((left - 2, floor), (left + 90, floor), head=False, gap=0)
            top = floor - 76 * weights.max().item()
            diagram.label(
                left + 11 * int(weights.argmax()) + 6,
                top - 8,
                f"{weights.max():.2f}",
                "small",
            )
    for row, text in enumerate(
        ("softmax of\nthe scores", "softmax of\nscores / √d_{k}")
    ):
        diagram.label(4, 84 + 74 * row, text, "small start")
    return diagram


def wiring() -> Diagram:
    """Draw who may attend to whom: within a sentence, across two, causal, padded."""
    everything = torch.ones(3, 3, dtype=torch.bool)
    padded = padding_mask(torch.tensor([3]), max_length=4).expand(3, 4)
    panels = (
        ("self-attention", WORDS, WORDS, everything),
        ("cross-attention", TARGET, WORDS, everything),
        ("causal self-attention", TARGET, TARGET, causal_mask(3)),
        ("padded self-attention", WORDS, (*WORDS, "<pad>"), padded),
    )
    diagram = Diagram(
        "wiring",
        304,
        "Self-, cross- and causal attention, and padding",
        "Four panels, queries above, keys and values below. "
        + " ".join(
            f"{name.capitalize()}: "
            + "; ".join(
                f"{query} sees {', '.join(compress(keys, row))}"
                for query, row in zip(queries, mask.tolist(), strict=True)
            )
            + "."
            for name, queries, keys, mask in panels
        ),
    )
    for number, (name, queries, keys, mask) in enumerate(panels):
        middle, top = 97 + 202 * (number % 2), 10 + 152 * (number // 2)
        diagram.label(middle, top, name, "bold")
        above, below = (
            [
                _small_box(
                    diagram, middle + 50 * (i - (len(row) - 1) / 2), y, 46, word, role
                )
                for i, word in enumerate(row)
            ]
            for row, y, role in ((queries, top + 14, "q"), (keys, top + 98, "k"))
        )
        _fans(diagram, above, below, mask)
    return diagram


def _small_box(
    diagram: Diagram, x: Number, y: Number, width: Number, text: str, role: str
) -> Area:
    area = diagram.box(x, y, width, 24, "", role)
    diagram.label(*area.at(0.5, 0.5), text, "small")
    return area


def _fans(
    diagram: Diagram, queries: Sequence[Area], keys: Sequence[Area], mask: Tensor
) -> None:
    """Draw an arrow from each key up to each query that may attend to it."""
    for row, query in enumerate(queries):
        for column, key in enumerate(keys):
            if mask[row, column]:
                start = key.at((row + 1) / (len(queries) + 1), 0)
                end = query.at((column + 1) / (len(keys) + 1), 1)
                diagram.arrow(start, end, role="v")


def _random_weights(
    widths: Sequence[int], keys: int, seed: int
) -> dict[int, tuple[Tensor, Tensor]]:
    """Return the weights of random scores at each width, without and with it."""
    drawn = {}
    for d in widths:
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randn(keys, d, generator=generator) @ torch.randn(
            d, generator=generator
        )
        drawn[d] = scores.softmax(-1), (scores / math.sqrt(d)).softmax(-1)
    return drawn


def _matrix(
    diagram: Diagram,
    centre: Number,
    y: Number,
    values: Tensor,
    role: str,
    width: Number,
    label: str,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Area:
    """Draw a matrix with its numbers, and words at its rows and columns."""
    whole = bool((values == values.round()).all())
    numbers = [
        [f"{number:.{0 if whole else 2}f}" for number in row] for row in values.tolist()
    ]
    x = centre - values.shape[1] * width / 2
    shade = values.tolist() if role == "w" else None
    tall, wide = values.shape
    area = diagram.tensor(x, y, tall, wide, role, (width, 22), numbers, shade, label)
    for row, word in enumerate(rows):
        diagram.label(x - 7, y + 11 + 22 * row, word, "small end")
    for column, word in enumerate(columns):
        diagram.label(x + width * (column + 0.5), y - 9, word, "small")
    return area


def _shape(values: Tensor) -> str:
    return f"({', '.join(map(str, values.shape))})"


def _listed(values: Tensor) -> str:
    return ", ".join(f"{value:.2f}" for value in values.tolist())
