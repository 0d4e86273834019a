"""The diagrams of chapter 9: cross- and bi-encoder, pooling, a common part, the siamese
network, in-batch negatives, and search in two stages. Numbers and shapes are those of
the functions and of the model that are drawn.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from course_lab.ch09_sentence_bert.sentence_cost import NUMBER, number_of_pairs
from course_lib.figures.diagrams import Area, Diagram, Number
from course_lib.sentence_bert.losses import (
    in_batch_logits,
    in_batch_losses,
    softmax_features,
)
from course_lib.sentence_bert.model import SentenceBert, pool

PARTS = ("encoder", "pooling", "classification objective", "cosine")
CLASSES = ("entailment", "neutral", "contradiction")


def two_encoders(model: SentenceBert, first: str, second: str) -> Diagram:
    """How a cross-encoder and a bi-encoder compare two sentences, and how many inputs
    each reads for `NUMBER` of them."""
    pair = len(model.tokenizer.encode(first, second).ids)
    alone = [len(model.tokenizer.encode(text).ids) for text in (first, second)]
    size, pairs = model.hidden_size, number_of_pairs(NUMBER)
    d = Diagram(
        "two-encoders",
        352,
        "Cross-encoder and bi-encoder",
        f"Read upwards. Left, a cross-encoder: {first} and {second} form one input of"
        f" {pair} tokens; BERT reads both together and a linear layer scores the state"
        f" of [CLS]. {NUMBER:,} sentences make {pairs:,} inputs. Right, a bi-encoder:"
        f" BERT reads each sentence alone, {alone[0]} and {alone[1]} tokens, and"
        f" pooling gives each a vector of {size} numbers; the cosine compares them."
        f" {NUMBER:,} sentences make {NUMBER:,} inputs.",
    )
    d.group(2, 28, 184, 276)
    d.group(194, 28, 204, 276)
    d.label(94, 14, "cross-encoder", "bold")
    d.label(296, 14, "bi-encoder", "bold")
    # left: one input
    d.label(94, 270, f"[CLS] {first} [SEP]\n{second} [SEP]", "small")
    bert = d.box(94, 198, 150, 34, "BERT")
    d.arrow((94, 252), bert.bottom)
    d.label(102, 242, f"{pair} tokens", "small start")
    state = d.tensor(66, 154, 1, 4, "r", (14, 14))
    d.arrow((94, 198), state.bottom)
    d.label(58, 161, "[CLS]", "small end")
    d.label(130, 161, f"{size}", "small start")
    linear = d.box(94, 98, 110, 30, "linear")
    d.arrow(state.top, linear.bottom)
    d.arrow(linear.top, (94, 72))
    d.label(94, 60, "score of the pair")
    # right: two inputs
    ends = []
    for x, text, tokens in ((242, first, alone[0]), (336, second, alone[1])):
        d.label(x, 270, text.replace(" is ", "\nis "), "small")
        bert = d.box(x, 198, 78, 34, "BERT")
        d.arrow((x, 252), bert.bottom)
        d.label(x + 6, 242, f"{tokens} tokens", "small start")
        pooled = d.box(x, 158, 78, 24, "pool")
        d.arrow(bert.top, pooled.bottom)
        vector = d.tensor(x - 28, 118, 1, 4, "v", (14, 14))
        d.arrow(pooled.top, vector.bottom)
        ends.append(vector)
    d.label(289, 125, f"{size}", "small")
    cosine = d.box(289, 78, 90, 24, "cosine")
    for vector, across in zip(ends, (0.25, 0.75), strict=True):
        d.arrow(vector.top, "|", (cosine.at(across, 1)[0], 110), cosine.at(across, 1))
    d.arrow(cosine.top, (289, 66), gap=0)
    d.label(289, 54, "similarity")
    d.label(289, 215, "=", "bold")
    d.label(94, 328, f"{NUMBER:,} sentences:\n{pairs:,} inputs", "small")
    d.label(296, 328, f"{NUMBER:,} sentences:\n{NUMBER:,} inputs", "small")
    return d


def pooling(tokens: Sequence[str], states: Tensor, mask: Tensor) -> Diagram:
    """Three ways to make one vector of the states of a sentence ``(1, T, D)``."""
    ways = {
        "mean": "mean of rows with 1",
        "cls": "[CLS]: row one",
        "max": "max by column",
    }
    vectors = {how: pool(states, mask, how)[0].tolist() for how in ways}  # type: ignore[arg-type]
    rows, real = states[0].tolist(), mask[0].int().tolist()
    high, width = 26, len(rows[0])
    d = Diagram(
        "pooling",
        40 + high * len(tokens) + 12,
        "Pooling by the mask",
        "One row of numbers for each token. "
        + " ".join(
            f"{token}: {_tuple(row)}, mask {one}."
            for token, row, one in zip(tokens, rows, real, strict=True)
        )
        + "".join(f" {how}: {_tuple(vector)}." for how, vector in vectors.items()),
    )
    d.label(96, 14, "states", "small soft")
    d.label(160, 14, "mask", "small soft")
    for i, (token, row, one) in enumerate(zip(tokens, rows, real, strict=True)):
        y = 30 + high * i
        d.label(62, y + 11, token, "end" if one else "end soft")
        shade = [[0.3 * one] * width]
        d.tensor(70, y, 1, width, "r", (28, 22), [[f"{x:g}" for x in row]], shade)
        d.tensor(149, y, 1, 1, "w", (22, 22), [[one]], [[0.4 * one]])
    kept = 30 + high * sum(real) - 4
    middle = (30 + kept) / 2
    d.brace((180, 30), (180, kept), 12, "")
    for i, (how, name) in enumerate(ways.items()):
        y = 30 + i * (kept - 52) / 2
        row = d.tensor(262, y, 1, width, "v", (28, 22), [_short(vectors[how])])
        d.arrow((194, middle), row.left)
        d.label(326, y + 11, how if how != "cls" else "[CLS]", "start bold")
        d.label(262, y + 33, name, "small soft start")
    return d


def _tuple(row: Sequence[Number]) -> str:
    return "(" + ", ".join(_short(row)) + ")"


def _short(row: Sequence[Number]) -> list[str]:
    return [f"{x:.3g}" for x in row]


def common_part(vectors: dict[str, Tensor], common: Tensor) -> Diagram:
    """What a vector that is added to all does to the cosines with the first of them."""
    query = next(iter(vectors))
    scale, ground = 30, 196
    d = Diagram(
        "common-part",
        256,
        "A common part changes which vector is nearest",
        " ".join(
            f"{title}: "
            + ", ".join(
                f"cosine of {query} and {name} {cosine:.2f}"
                for name, cosine in cosines_with(vectors, shift).items()
            )
            + "."
            for title, shift in (("as they are", 0 * common), ("shifted", common))
        ),
    )
    roles = dict(zip(vectors, "qkv", strict=True))
    for x, title, shift in (
        (44, "as they are", 0 * common),
        (244, f"plus {_tuple(common.tolist())}", common),
    ):
        d.label(x + 50, 14, title, "bold")
        d.arrow((x - 14, ground), (x + 120, ground), head=False)
        d.arrow((x, ground + 14), (x, 34), head=False)
        for name, vector in vectors.items():
            end = (vector + shift).tolist()
            tip = (x + scale * end[0], ground - scale * end[1])
            d.arrow((x, ground), tip, role=roles[name], gap=0)
            d.label(tip[0] + 8, tip[1] + (-6 if end[1] else 12), name, "bold")
        lines = [
            f"cos({query}, {name}) = {cosine:.2f}"
            for name, cosine in cosines_with(vectors, shift).items()
        ]
        d.label(x + 50, 234, "\n".join(lines), "small")
    return d


def cosines_with(vectors: dict[str, Tensor], shift: Tensor) -> dict[str, float]:
    """The cosines of the first vector with each other one, all of them shifted."""
    query, *others = ((name, vector + shift) for name, vector in vectors.items())
    return {
        name: F.cosine_similarity(query[1], vector, dim=0).item()
        for name, vector in others
    }


def siamese(
    first: str, second: str, u: Tensor, v: Tensor, here: str | None = None
) -> Diagram:
    """One encoder on two sentences, and what is done with the vectors (Reimers and
    Gurevych 2019, figures 1 and 2)."""
    features = softmax_features(u[None], v[None])[0].tolist()
    cosine = F.cosine_similarity(u, v, dim=0).item()
    d = Diagram(
        f"siamese-{(here or 'all').replace(' ', '-')}",
        410,
        "The siamese network" + f": {here}" * bool(here),
        f"Read upwards. The same BERT reads {first} and {second}, each alone. Pooling"
        f" gives u = {_tuple(u.tolist())} and v = {_tuple(v.tolist())}. For the"
        " classification objective, u, v and the absolute difference are joined to"
        f" {_tuple(features)}, and a linear layer W with a softmax predicts"
        f" {', '.join(CLASSES)}. The cosine of u and v is {cosine:.2f}.",
        here,
    )
    places = (100, 300)
    for x, text in zip(places, (first, second), strict=True):
        d.label(x, 398, text)
    with d.part(PARTS[0]):
        for x in places:
            box = d.box(x, 340, 120, 30, "BERT")
            d.arrow((x, 388), box.bottom, gap=0)
        d.arrow((160, 355), (240, 355), role="r", dash=True, head=False)
        d.label(200, 374, "same weights", "small")
    tops: list[Area] = []
    with d.part(PARTS[1]):
        for x, vector, name in zip(places, (u, v), "uv", strict=True):
            box = d.box(x, 290, 120, 28, "pooling")
            d.arrow((x, 340), box.bottom, gap=0)
            row = d.tensor(
                x - 30, 244, 1, len(vector), "v", (30, 24), [_short(vector.tolist())]
            )
            d.arrow(box.top, row.bottom)
            d.label(x - 40, 256, name, "bold")
            tops.append(row)
    with d.part(PARTS[2]):
        wide, left = 30, 16
        row = d.tensor(left, 150, 1, len(features), "v", (wide, 24), [_short(features)])
        for i, name in enumerate(("u", "v", "|u \N{MINUS SIGN} v|")):
            d.label(left + wide * (2 * i + 1), 138, name, "small")
        for x in (left + 60, left + 120):
            d.arrow((x, 144), (x, 180), head=False)
        joined = row.at(0.5, 1)
        for area in tops:
            d.arrow(area.top, (area.top[0], 208), "-", (joined[0], 190), joined)
        box = d.box(106, 82, 150, 26, "softmax(W ·)", "w")
        d.arrow((106, 128), box.bottom)
        d.arrow(box.top, (106, 62))
        d.label(106, 36, "entailment, neutral\nor contradiction", "small")
        d.label(106, 10, "in training: classes", "bold")
    with d.part(PARTS[3]):
        box = d.box(306, 150, 120, 26, "cosine")
        d.arrow((116, 244), (116, 226), "-", (282, 190), (282, 176))
        d.arrow((314, 244), (314, 176))
        d.arrow(box.top, (306, 62))
        d.label(306, 44, f"{cosine:.2f}")
        d.label(306, 10, "in use: similarity", "bold")
    return d


def in_batch(
    queries: Sequence[str], q: Tensor, documents: Tensor, temperature: float
) -> Diagram:
    """All cosines of a batch, their softmax by rows, and the loss of each query."""
    cosines = in_batch_logits(q, documents, 1.0)
    weights = in_batch_logits(q, documents, temperature).softmax(dim=1)
    losses = in_batch_losses(q, documents, temperature).tolist()
    number, high = len(q), 34
    d = Diagram(
        "in-batch",
        2 * (54 + high * number) + 26,
        "In-batch negatives",
        f"A grid of {number} queries by {number} documents. Cosines, row by row: "
        + "; ".join(_tuple(row) for row in cosines.tolist())
        + f". Softmax of the cosines over {temperature:g}, row by row: "
        + "; ".join(
            f"({', '.join(f'{x:.2f}' for x in row)})" for row in weights.tolist()
        )
        + ". The own document is on the diagonal. Losses: "
        + ", ".join(f"{loss:.2f}" for loss in losses)
        + f"; mean {sum(losses) / number:.2f}.",
    )
    left, wide = 118, 56

    def grid(top: Number, role: str, values: Tensor, title: str, digits: str) -> Area:
        d.label(8, top + 8, title, "start bold")
        for j in range(number):
            d.label(left + wide * (j + 0.5), top + 30, f"d_{{{j + 1}}}")
        for i, text in enumerate(queries):
            d.label(8, top + 42 + high * i + high / 2, f"q_{{{i + 1}}}", "start")
            d.label(30, top + 42 + high * i + high / 2, text, "small soft start")
        texts = [[format(x, digits) for x in row] for row in values.tolist()]
        own = [texts[i][i] for i in range(number)]
        for i in range(number):
            texts[i][i] = ""
        area = d.tensor(left, top + 42, number, number, role, (wide, high), texts)
        for i in range(number):
            x, y = left + wide * i, top + 42 + high * i
            d.group(x + 2, y + 2, wide - 4, high - 4, here=True)
            d.label(x + wide / 2, y + high / 2, own[i], "bold")
        return area

    area = grid(4, "n", cosines, "cosines", ".2f")
    d.label(
        area.right[0] + 10,
        area.right[1],
        "diagonal:\nown document\nelse: negative",
        "small start",
    )
    top = 54 + high * number + 18
    below = grid(top, "w", weights, f"softmax of each row, τ = {temperature:g}", ".2f")
    for i, loss in enumerate(losses):
        y = below.y + high * (i + 0.5)
        d.arrow((below.right[0] + 2, y), (below.right[0] + 24, y))
        d.label(below.right[0] + 28, y, f"{loss:.2f}", "start")
    d.label(below.right[0] + 28, top + 30, "loss", "small soft start")
    return d


def two_stages(documents: int, candidates: int) -> Diagram:
    """Retrieve by something cheap, re-rank by something good."""
    d = Diagram(
        "two-stages",
        150,
        "Retrieve, then re-rank",
        f"A query goes to a first stage, BM25 or a bi-encoder, which compares it with"
        f" {documents:,} documents and returns {candidates}. A cross-encoder reads the"
        f" query with each of the {candidates} and puts them into a new order.",
    )
    d.label(24, 66, "query")
    first = d.box(120, 36, 96, 60, "retrieve\nBM25 or\nbi-encoder")
    second = d.box(274, 36, 96, 60, "re-rank\ncross-\nencoder")
    d.arrow((46, 66), first.left)
    d.arrow(first.right, second.left)
    d.label(197, 52, f"{candidates}", "bold")
    d.arrow(second.right, (348, 66))
    d.label(374, 66, "new\norder")
    d.label(120, 18, f"{documents:,} vectors", "small soft")
    d.label(274, 18, f"{candidates} pairs read", "small soft")
    d.label(120, 122, "must not miss\nthe answer", "small")
    d.label(274, 122, "must put\nit first", "small")
    return d
