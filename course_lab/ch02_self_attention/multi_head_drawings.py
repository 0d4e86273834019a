"""Multi-head attention, drawn in three steps: split, attend, join."""

import torch
from torch import Tensor

from course_lab.ch02_self_attention.drawings import WORDS
from course_lib.attention.multi_head import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from course_lib.figures.diagrams import Area, Diagram, Number
from course_lib.figures.stepper import Step


def multi_head(here: str | None = None, dim: int = 4, heads: int = 2) -> Diagram:
    """Draw a layer with two heads; `here` is "split", "attend" or "join"."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(dim, heads), torch.randn(1, len(WORDS), dim)
    with torch.no_grad():
        query, key, value = (
            split_heads(projection(x), heads)[0]
            for projection in (layer.query, layer.key, layer.value)
        )
        mixed, weights = scaled_dot_product_attention(query, key, value)
        joined, y = merge_heads(mixed[None])[0], layer(x)[0]
    whole, part = (f"(N, {d})" for d in ("d", "d/H"))
    diagram = Diagram(
        f"multi-head-{here or 'all'}",
        530,
        "Multi-head attention" + f": {here}" * bool(here),
        f"X, {len(WORDS)} tokens of {dim} features, gives Q, K, V. Each is split into"
        f" {heads} heads of {query.shape[-1]} features. Each head makes weights of its"
        f" own, {' by '.join(map(str, weights.shape[1:]))}, and mixes its own values."
        f" The outputs are joined to {joined.shape[-1]} features and multiplied by W O."
        + f" You are here: {here}."
        * bool(here),
        here,
    )
    parts: list[list[Area]] = []
    with diagram.part("split"):
        inputs = _grid(diagram, 200, 8, x[0], "r", f"X\n{whole}")
        for centre, name, of_heads in (
            (66, "Q", query),
            (196, "K", key),
            (326, "V", value),
        ):
            box = diagram.box(centre, 78, 76, 24, f"× W^{{{name}}}")
            diagram.arrow(inputs.bottom, (200, 64), "-", box.top)
            full = _grid(
                diagram, centre, 118, merge_heads(of_heads[None])[0], name.lower(), ""
            )
            diagram.arrow(box.bottom, full.top)
            diagram.label(
                full.right[0] + 6, full.right[1], f"{name}\n{whole}", "small start"
            )
            parts.append([])
            for side, head in zip((-1, 1), of_heads, strict=True):
                area = _grid(diagram, centre + 22 * side, 196, head, name.lower(), "")
                diagram.arrow(full.bottom, area.top)
                parts[-1].append(area)
            diagram.label(centre, 248, f"H × {part}", "small")
        note = "left halves: head 1; right halves: head 2"
        diagram.label(200, 265, note, "small soft")
    outputs = []
    with diagram.part("attend"):
        for number in range(heads):
            left, middle = 4 + 202 * number, 72 + 202 * number
            diagram.group(left, 276, 190, 172)
            diagram.label(left + 10, 290, f"head {number + 1}", "small bold start")
            compare = diagram.box(middle, 306, 116, 24, "Q × K^{T}, softmax", "w")
            made = _grid(diagram, left + 162, 297, weights[number], "w", "")
            diagram.label(left + 162, 287, "(N, N)", "small")
            mix = diagram.box(middle, 356, 116, 24, "weights × V", "v")
            outputs.append(_grid(diagram, middle, 396, mixed[number], "v", part))
            diagram.arrow(compare.right, made.left)
            diagram.arrow(made.bottom, "|", mix.right)
            diagram.arrow(mix.bottom, outputs[-1].top)
    with diagram.part("join"):
        both = _grid(diagram, 72, 480, joined, "v", "")
        diagram.label(108, 474, f"joined {whole}", "small start")
        for area in outputs:
            start = (area.bottom[0], 450)
            diagram.arrow(start, (start[0], 461), "-", both.top)
        box = diagram.box(188, 489, 76, 24, "× W^{O}")
        final = _grid(diagram, 300, 480, y, "r", f"output\n{whole}")
        diagram.arrow(both.right, box.left)
        diagram.arrow(box.right, final.left)
    return diagram


def multi_head_steps() -> list[Step]:
    """Return the three steps of a layer with two heads."""
    return [
        Step(
            "Split",
            text="Project as before. Then give each head a slice of the features of Q,"
            " K and V: the tokens stay, the features are shared out.",
            diagram=multi_head("split"),
        ),
        Step(
            "Attend",
            text="Each head does what one head always does, on its own slice: its own"
            " scores, its own weights, its own mixture of its own values.",
            diagram=multi_head("attend"),
        ),
        Step(
            "Join",
            text="Put the outputs of the heads side by side again, and let one more"
            " matrix combine them. The output has the shape of the input.",
            diagram=multi_head("join"),
        ),
    ]


def _grid(
    diagram: Diagram, centre: Number, y: Number, values: Tensor, role: str, label: str
) -> Area:
    """Draw a matrix as shaded cells."""
    low, high = values.min(), values.max()
    shade = ((values - low) / (high - low)).tolist()
    tall, wide = values.shape
    x = centre - 7 * wide
    return diagram.tensor(x, y, tall, wide, role, shade=shade, label=label, beside=True)
