"""The diagrams of chapter 11: two blocks, rotary positions, unpadding with local masks,
hard negatives, sparse vectors, search in stages, two languages, and LoRA. Numbers are
those of the functions that are drawn.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from course_lib.figures.diagrams import Diagram
from course_lib.modern.contrastive import hard_negatives
from course_lib.modern.layers import local_mask, rotate
from course_lib.modern.model import unpad
from course_lib.modern.retrieval import reciprocal_rank_fusion, sparse_vectors
from course_lib.transformer.positions import sinusoidal_positions

POST = ("attention", "+", "norm", "feed-forward", "+", "norm")
PRE = ("norm", "rotary attention", "+", "norm", "GeGLU", "+")
ROLES = {"+": "r", "norm": "r", "attention": "w", "rotary attention": "w"}


def two_blocks() -> Diagram:
    """BERT's block and ModernBERT's, with their residual paths."""
    d = Diagram(
        "two-blocks",
        392,
        "The blocks of BERT and ModernBERT",
        "Read upwards. BERT: attention, add, norm, feed-forward, add, norm; each layer"
        " has biases, and each residual path begins before attention or feed-forward"
        " and passes through the next norm. ModernBERT: norm, rotary attention, add,"
        " norm, GeGLU, add, without biases; the residual path passes through no norm.",
    )
    for x, name, note, parts, side in (
        (104, "BERT", "post-norm, with biases", POST, -1),
        (296, "ModernBERT", "pre-norm, no biases", PRE, 1),
    ):
        d.label(x, 14, name, "bold")
        d.label(x, 32, note, "small soft")
        boxes = []
        for place, text in enumerate(parts):
            y = 316 - 46 * place
            wide = 24 if text == "+" else 136
            boxes.append(d.box(x, y, wide, 24, text, ROLES.get(text, "n")))
        for low, high in pairwise(boxes):
            d.arrow(low.top, high.bottom)
        d.arrow((x, 366), boxes[0].bottom)
        d.arrow(boxes[-1].top, (x, 56))
        d.label(x, 378, "states", "small")
        for start in (0, 3):
            end = next(i for i in range(start, len(parts)) if parts[i] == "+")
            foot = boxes[start].bottom[1] + 11
            right = boxes[end].at((1 + side) / 2, 0.5)
            out = x + side * 84
            d.arrow((x, foot), (out, foot), (out, right[1]), right, role="r", dash=True)
    return d


def rotation(pairs: Sequence[tuple[int, int]]) -> Diagram:
    """A query and a key of two features, (1, 0) both, at pairs of positions."""
    waves = sinusoidal_positions(1 + max(map(max, pairs)), dim=2)
    turned = rotate(torch.tensor([1.0, 0.0]).expand(len(waves), 2), waves)
    products = [float(turned[t] @ turned[s]) for t, s in pairs]
    d = Diagram(
        "rotation",
        236,
        "Rotary positions",
        "The vector (1, 0) is turned by one radian for each position. "
        + " ".join(
            f"A query at {t} and a key at {s}: product {product:.2f}."
            for (t, s), product in zip(pairs, products, strict=True)
        ),
    )
    for x, (t, s), product in zip((100, 300), pairs, products, strict=True):
        d.tensor(x - 82, 26, 1, 1, "n", (164, 164))
        for name, position, role in (("q", t, "q"), ("k", s, "k")):
            across, up = turned[position].tolist()
            tip = (x + 58 * across, 108 - 58 * up)
            d.arrow((x, 108), tip, role=role, gap=0)
            place = (x + 70 * across, 108 - 72 * up)
            d.label(*place, f"{name}_{{{position}}}", "small bold")
        d.label(x, 12, f"query at {t}, key at {s}", "small")
        d.label(x, 208, f"apart: {t - s}", "small")
        d.label(x, 226, f"product {product:.2f}", "bold")
    return d


def unpadding(ids: Tensor, attention_mask: Tensor, window: int) -> Diagram:
    """A padded batch, the same in one row, and what a token of it may see in a global
    and in a local layer."""
    joined = unpad(ids, attention_mask)
    number, (rows, columns) = joined.input_ids.shape[1], ids.shape
    near = joined.mask[0] & local_mask(joined.positions[0], window)
    sees = {"global layer": joined.mask[0], f"local, window {window}": near}
    d = Diagram(
        "unpadding",
        346,
        "Unpadding, with a global and a local mask",
        f"A batch of {rows} sequences, padded to {columns}, becomes one row of {number}"
        f" tokens with the positions {joined.positions[0].tolist()}. "
        + " ".join(
            f"{name}, row by row the tokens that are seen: "
            + "; ".join(str(row.nonzero()[:, 0].tolist()) for row in mask)
            + "."
            for name, mask in sees.items()
        ),
    )
    size, cell = 24, (24, 24)
    d.label(4, 12, "padded batch", "small bold start")
    texts = [
        [f"{i}" if kept else "pad" for i, kept in zip(*both, strict=True)]
        for both in zip(ids.tolist(), attention_mask.tolist(), strict=True)
    ]
    batch = d.tensor(4, 26, rows, columns, "r", (32, size), texts)
    left = 220
    d.label(left, 12, "joined, with positions", "small bold start")
    row = d.tensor(left, 40, 1, number, "v", cell, joined.input_ids.tolist())
    for j, position in enumerate(joined.positions[0].tolist()):
        d.label(left + size * (j + 0.5), 78, f"{position}", "small soft")
    d.arrow(
        (batch.right[0] + 8, row.right[1]),
        (left - 8, row.right[1]),
        label="unpad",
        at=(batch.right[0] + 18, row.right[1] - 12),
    )
    top = 166
    for x, (name, mask) in zip((40, 240), sees.items(), strict=True):
        d.label(x + size * number / 2, top - 34, name, "bold")
        for j, token in enumerate(joined.input_ids[0].tolist()):
            d.label(x + size * (j + 0.5), top - 12, f"{token}", "small")
            d.label(x - 8, top + size * (j + 0.5), f"{token}", "small end")
        marks = [[int(seen) if seen else "" for seen in row] for row in mask.tolist()]
        d.tensor(x, top, number, number, "w", cell, marks, mask.float().tolist())
    d.label(
        200,
        top + size * number + 24,
        "1: the row's token may see the column's",
        "small soft",
    )
    return d


def negatives(texts: Sequence[str], scores: Tensor, ceiling: float) -> Diagram:
    """The documents of one query, whose own is the first, by score; which are taken as
    negatives."""
    order = scores.argsort(descending=True).tolist()
    allowed = float(scores[0]) * ceiling
    count = int((scores[1:] <= allowed).sum())
    mined = hard_negatives(scores[None], torch.tensor([0]), count, ceiling)
    ranks = {
        document: rank for rank, document in enumerate(mined.documents[0].tolist())
    }

    def verdict(document: int) -> str:
        if document == 0:
            return "its own"
        if document not in ranks:
            return "too near: left out"
        return "hard negative" if ranks[document] == 0 else "easier"

    told = [f"{texts[i]}: {scores[i]:.2f}, {verdict(i)}" for i in order]
    d = Diagram(
        "hard-negatives",
        40 + 44 * len(order),
        "Hard negatives and false negatives",
        f"Documents by score for one query, with a ceiling of {allowed:.2f}: "
        + "; ".join(told)
        + ".",
    )
    d.label(
        8,
        12,
        f"ceiling: {ceiling:g} of its own score = {allowed:.3f}",
        "small soft start",
    )
    for place, document in enumerate(order):
        y = 30 + 44 * place
        d.label(8, y + 8, texts[document], "small start")
        role = "v" if document == 0 else "k" if document in ranks else "n"
        bar = d.tensor(8, y + 18, 1, 1, role, (220 * float(scores[document]), 14))
        d.label(bar.right[0] + 8, y + 25, f"{scores[document]:.2f}", "small start")
        d.label(392, y + 25, verdict(document), "end bold" if place < 3 else "end")
    return d


def sparse(words: Sequence[str], tokens: Sequence[str], logits: Tensor) -> Diagram:
    """Logits at each position of a text, and the weights that its tokens get."""
    weights = sparse_vectors(logits[None])[0].tolist()
    wide, high, left = 60, 28, 84
    d = Diagram(
        "sparse",
        80 + high * (len(words) + 1),
        "A sparse vector from the logits of masked language modelling",
        "Logits of the tokens "
        + ", ".join(tokens)
        + ". "
        + " ".join(
            f"At {word}: {', '.join(f'{x:g}' for x in row)}."
            for word, row in zip(words, logits.tolist(), strict=True)
        )
        + " Weights: "
        + ", ".join(
            f"{token} {x:.2f}" for token, x in zip(tokens, weights, strict=True)
        )
        + ".",
    )
    d.label(8, 14, "logits at", "small soft start")
    for j, token in enumerate(tokens):
        d.label(left + wide * (j + 0.5), 14, token, "bold")
    for i, word in enumerate(words):
        d.label(left - 10, 28 + high * (i + 0.5), word, "end")
    texts = [[f"{x:g}" for x in row] for row in logits.tolist()]
    grid = d.tensor(left, 28, len(words), len(tokens), "n", (wide, high), texts)
    y = grid.bottom[1] + 46
    d.arrow(grid.bottom, (grid.bottom[0], y), label="ln(1 + ReLU), maximum")
    strong = max(weights)
    d.tensor(
        left,
        y,
        1,
        len(tokens),
        "v",
        (wide, high),
        [[f"{x:.2f}" if x else "0" for x in weights]],
        [[x / strong for x in weights]],
    )
    d.label(left - 10, y + high / 2, "weights", "end bold")
    return d


def stages(
    names: Sequence[str], systems: dict[str, Tensor], candidates: int
) -> Diagram:
    """Rankings of several systems, joined by ranks, of which the first are read again;
    scores are `(N)` for each system."""
    fused = reciprocal_rank_fusion([scores[None] for scores in systems.values()])[0]

    def ranking(scores: Tensor) -> list[str]:
        return [names[i] for i in scores.argsort(descending=True).tolist()]

    d = Diagram(
        "stages",
        368,
        "Search in stages",
        "A query goes to "
        + "; ".join(
            f"{x}, which ranks {', '.join(ranking(s))}" for x, s in systems.items()
        )
        + f". Joined by ranks: {', '.join(ranking(fused))}. A cross-encoder reads the"
        f" first {candidates} with the query.",
    )
    d.label(200, 12, "query", "bold")
    places = [200 + 128 * (i - (len(systems) - 1) / 2) for i in range(len(systems))]
    fuse = d.box(200, 210, 240, 30, "reciprocal rank fusion", "w")
    for number, (x, (name, scores)) in enumerate(
        zip(places, systems.items(), strict=True)
    ):
        box = d.box(x, 50, 112, 34, name)
        d.arrow((200, 22), (200, 34), "-", (x, 36), box.top, gap=0) if x != 200 else (
            d.arrow((200, 22), box.top)
        )
        row = d.tensor(
            x - 14 * len(names), 118, 1, len(names), "n", (28, 26), [ranking(scores)]
        )
        d.arrow(box.bottom, row.top)
        end = fuse.at(0.5 + 0.35 * (number - (len(systems) - 1) / 2), 0)
        d.arrow(row.bottom, (row.bottom[0], 180), (end[0], 194), end)
    row = d.tensor(
        200 - 14 * len(names), 262, 1, len(names), "v", (28, 26), [ranking(fused)]
    )
    d.arrow(fuse.bottom, row.top)
    last = d.box(200, 312, 240, 30, f"cross-encoder reads the first {candidates}")
    d.arrow(row.bottom, last.top)
    d.arrow(last.bottom, (200, 364))
    return d


def one_space(before: Tensor, after: Tensor) -> Diagram:
    """Sentences of two languages, `(2 N, 2)` with all of the first language first, in
    the space of an encoder before and after its training."""
    number = len(before) // 2
    gaps = [
        float((x[:number] - x[number:]).norm(dim=1).mean() / x.std())
        for x in (before, after)
    ]
    d = Diagram(
        "one-space",
        228,
        "Two languages in one space",
        f"{number} English sentences and their translations as points. Distance of a"
        f" pair, by the spread of all points: {gaps[0]:.2f} before the training,"
        f" {gaps[1]:.2f} after it.",
    )
    for x, title, points in ((102, "untrained", before), (298, "trained", after)):
        d.label(x, 12, title, "bold")
        d.tensor(x - 94, 26, 1, 1, "n", (188, 176))
        centred = points - points.mean(dim=0)
        scale = torch.tensor([82.0, 76.0]) / centred.abs().amax(dim=0)
        moved = centred * scale + torch.tensor([float(x), 114.0])
        places = [(across, down) for across, down in moved.tolist()]
        for one, two in zip(places[:number], places[number:], strict=True):
            if abs(one[0] - two[0]) + abs(one[1] - two[1]) > 3:
                d.arrow(one, two, head=False, role="r", dash=True, gap=0)
            for place, role in ((one, "q"), (two, "k")):
                d.tensor(place[0] - 4, place[1] - 4, 1, 1, role, (8, 8))
    d.tensor(96, 212, 1, 1, "q", (8, 8))
    d.label(112, 216, "English", "small start")
    d.tensor(206, 212, 1, 1, "k", (8, 8))
    d.label(222, 216, "French", "small start")
    return d


def low_rank(dim: int, rank: int) -> Diagram:
    """A frozen matrix and the two thin ones beside it."""
    frozen, trained = dim * dim, 2 * dim * rank
    d = Diagram(
        "low-rank",
        212,
        "LoRA",
        f"A frozen matrix W of {dim} by {dim}, {frozen:,} numbers, plus B, {dim} by"
        f" {rank}, times A, {rank} by {dim}: {trained:,} numbers are trained.",
    )
    cells, thin = 8, 2
    w = d.tensor(12, 40, cells, cells, "n", label=f"W: {dim} × {dim}")
    b = d.tensor(188, 40, cells, thin, "v", label=f"B: {dim} × {rank}")
    a = d.tensor(266, 40 + 42, thin, cells, "v", label=f"A: {rank} × {dim}")
    d.label(w.top[0], 26, "frozen", "small bold")
    d.label(240, 26, "trained", "small bold")
    d.label((w.right[0] + b.left[0]) / 2, w.right[1], "+", "bold")
    d.label((b.right[0] + a.left[0]) / 2, w.right[1], "·", "bold")
    d.label(w.bottom[0], 192, f"{frozen:,} numbers", "small")
    d.label(280, 192, f"{trained:,} numbers", "small")
    return d
