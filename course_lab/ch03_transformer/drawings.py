"""The diagrams of chapter 3: the parts of a Transformer, the whole of it with "you are
here" (`whole_transformer`), and what its training and decoding need.

Numbers and shapes come from the library's functions and from the configuration that is
drawn. Architecture is read upwards, as in the papers; computation downwards.
"""

import math

import torch

from course_lab.ch03_transformer.drawings_training import (
    decoding_with_a_cache,
    learning_rates,
    smoothed_labels,
)
from course_lab.ch03_transformer.drawings_whole import PARTS, SOURCE, whole_transformer
from course_lib.figures.diagrams import Diagram, Point
from course_lib.transformer.blocks import FeedForward
from course_lib.transformer.positions import one_hot_lookup, sinusoidal_positions

__all__ = [
    "PARTS",
    "TOKENS",
    "decoding_with_a_cache",
    "feed_forward",
    "learning_rates",
    "norm_axes",
    "one_hot",
    "position_dials",
    "post_and_pre_norm",
    "smoothed_labels",
    "whole_transformer",
]


def one_hot(word: str = "cat") -> Diagram:
    """Draw the one-hot row of a word times the embedding matrix."""
    words = [*SOURCE, "dog", "sees"]
    generator = torch.Generator().manual_seed(4)
    matrix = torch.randn(len(words), 4, generator=generator)
    row = one_hot_lookup(torch.tensor([words.index(word)]), matrix)[0]
    diagram = Diagram(
        "one-hot",
        222,
        "A one-hot row times the embedding matrix",
        f"Each word has a row of the embedding matrix. The one-hot row of {word} has 1"
        " at its place and 0 elsewhere. Rows times entries, added up, leave the row of"
        f" {word}.",
    )
    diagram.label(108, 12, "one-hot row", "small soft")
    diagram.label(272, 12, "embedding matrix E", "small soft")
    for line, name in enumerate(words):
        y, lit = 26 + 30 * line, name == word
        diagram.label(8, y + 13, name, "start" + " bold" * lit)
        diagram.tensor(92, y, 1, 1, "w", (32, 26), [[int(lit)]], [[float(lit)]])
        diagram.label(150, y + 13, "\N{MULTIPLICATION SIGN}")
        numbers = [[f"{value:.1f}" for value in matrix[line].tolist()]]
        diagram.tensor(176, y, 1, 4, "r", (48, 26), numbers, [[float(lit)] * 4])
    diagram.arrow((92, 182), (368, 182), head=False)
    diagram.label(8, 202, f"sum = row of {word}", "start bold")
    numbers = [[f"{value:.1f}" for value in row.tolist()]]
    diagram.tensor(176, 189, 1, 4, "r", (48, 26), numbers, [[1.0] * 4])
    return diagram


def position_dials(base: float = 100.0, dim: int = 4) -> Diagram:
    """Draw the vector of each position as hands of clocks, a clock for each pair."""
    words = [*SOURCE, "<eos>"]
    table = sinusoidal_positions(len(words), dim, base)
    diagram = Diagram(
        "position-dials",
        246,
        "Sinusoidal positions as clocks",
        "Each position has two clocks. The hand of the first turns by 1 radian a word,"
        f" the hand of the second by {base ** (-2 / dim):g}. The height of a hand's tip"
        " is the sine, its distance to the right the cosine; together they are the"
        " position's vector.",
    )
    for y, text in ((12, "position"), (70, "first pair\n1 radian\na word")):
        diagram.label(2, y, text, "small soft start")
    slow = f"second pair\n{base ** (-2 / dim):g} radian\na word"
    diagram.label(2, 144, slow, "small soft start")
    diagram.label(2, 212, "vector", "small soft start")
    for k, (word, vector) in enumerate(zip(words, table.tolist(), strict=True)):
        x = 112 + 81 * k
        diagram.label(x, 12, f"{k}  {word}", "bold")
        for pair, y in enumerate((70, 144)):
            sine, cosine = vector[2 * pair : 2 * pair + 2]
            turns = [2 * math.pi * step / 40 for step in range(41)]
            circle = [(x + 30 * math.cos(a), y - 30 * math.sin(a)) for a in turns]
            diagram.arrow(*circle, role="r", head=False, gap=0)
            tip = (x + 30 * cosine, y - 30 * sine)
            diagram.arrow((x, y), tip, role="q", gap=0)
        text = "\n".join(
            f"{vector[at]:.2f}, {vector[at + 1]:.2f}".replace("-", "\N{MINUS SIGN}")
            for at in range(0, dim, 2)
        )
        diagram.label(x, 212, text, "small")
    return diagram


#: Three tokens of four features; the second is the one that the chapter works by hand.
TOKENS = torch.tensor(
    [[2.0, 4.0, 4.0, 6.0], [1.0, 7.0, 9.0, 15.0], [3.0, 1.0, 5.0, 3.0]]
)


def norm_axes(tokens: torch.Tensor = TOKENS) -> Diagram:
    """Draw over which numbers layer norm and batch norm take mean and deviation."""
    rows, columns = tokens.shape
    diagram = Diagram(
        "norm-axes",
        286,
        "What layer norm and batch norm average over",
        "A batch of three tokens with four features each, twice. Layer norm takes the"
        " mean and the standard deviation of a row, one token. Batch norm takes them of"
        " a column, one feature of all tokens.",
    )
    for name, top, axis in (("layer norm", 0, 1), ("batch norm", 130, 0)):
        over = "a row: one token, all features"
        over = over if axis else "a column: one feature, all tokens"
        diagram.label(2, top + 12, f"{name}: {over}", "bold start")
        lit = [
            [float(i == 1 if axis else j == 1) for j in range(columns)]
            for i in range(rows)
        ]
        numbers = [[f"{value:g}" for value in row] for row in tokens.tolist()]
        diagram.tensor(62, top + 26, rows, columns, "w", (48, 26), numbers, lit)
        for row, word in enumerate(SOURCE):
            diagram.label(54, top + 39 + 26 * row, word, "end")
        means = tokens.mean(dim=axis)
        deviations = tokens.var(dim=axis, unbiased=False).sqrt()
        for at, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
            chosen = " bold" if at == 1 else " soft"
            text = f"mean {mean:.1f}, std {deviation:.1f}"
            if axis:
                diagram.label(264, top + 39 + 26 * at, text, "small start" + chosen)
            else:
                both = f"{mean:.1f}\n{deviation:.1f}"
                diagram.label(86 + 48 * at, top + 124, both, "small" + chosen)
        if not axis:
            diagram.label(54, top + 124, "mean\nstd", "small soft end")
    return diagram


def post_and_pre_norm() -> Diagram:
    """Draw where layer norm is, after the sum or before the sub-layer."""
    diagram = Diagram(
        "post-and-pre-norm",
        262,
        "Post-norm and pre-norm, side by side",
        "Read upwards. Post-norm: the input goes through the sub-layer and, on the"
        " residual path, around it; the two are added, and layer norm follows the sum."
        " Pre-norm: layer norm comes first, inside the branch, and the residual path"
        " runs from input to output without a norm.",
    )
    for x, name, parts in (
        (90, "post-norm", ("sub-layer", "+", "layer norm")),
        (290, "pre-norm", ("layer norm", "sub-layer", "+")),
    ):
        diagram.label(x, 12, name, "bold")
        diagram.label(x, 252, "x")
        before: Point = (x, 243)
        y = 178
        for part in parts:
            height = 18 if part == "+" else 26
            width, role = (18, "r") if part == "+" else (110, "n")
            role = "r" if part == "layer norm" else role
            box = diagram.box(x, y, width, height, part, role)
            diagram.arrow(before, box.bottom, gap=0)
            if part == "+":
                start = (x, 218)
                diagram.arrow(
                    *(start, "-", (x + 80, y + 9), box.right), role="r", dash=True
                )
            before = box.top
            y -= 50
        diagram.arrow(before, (x, 46), gap=0)
        formula = "LayerNorm(x + Sublayer(x))"
        formula = formula if name == "post-norm" else "x + Sublayer(LayerNorm(x))"
        diagram.label(x, 34, formula, "small")
    return diagram


def feed_forward(layer: FeedForward | None = None) -> Diagram:
    """Draw the feed-forward layer: two matrices, the same for each word."""
    layer = FeedForward(4, 16) if layer is None else layer
    hidden, dim = layer.expand.weight.shape
    diagram = Diagram(
        "feed-forward",
        248,
        "The feed-forward layer, position by position",
        f"Read upwards. The state of each of three words, {dim} numbers, is multiplied"
        f" by W1 to {hidden} numbers, of which the negative ones become 0, and by W2"
        f" back to {dim}. The words use the same matrices and do not mix.",
    )
    diagram.box(
        200, 154, 388, 26, f"W_{{1}}, b_{{1}}, ReLU:  {dim} to {hidden} features"
    )
    diagram.box(200, 74, 388, 26, f"W_{{2}}, b_{{2}}:  {hidden} to {dim} features")
    for word, x in zip(SOURCE, (70, 200, 330), strict=True):
        diagram.label(x, 238, word)
        below = diagram.tensor(x - 7 * dim, 208, 1, dim, "r")
        between = diagram.tensor(x - 3.5 * hidden, 120, 1, hidden, "n", (7, 14))
        above = diagram.tensor(x - 7 * dim, 36, 1, dim, "r")
        diagram.arrow(below.top, (x, 180))
        diagram.arrow((x, 154), between.bottom)
        diagram.arrow(between.top, (x, 100))
        diagram.arrow((x, 74), above.bottom)
    diagram.label(200, 14, "one new state for each word", "small soft")
    return diagram
