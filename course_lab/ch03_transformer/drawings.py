"""The diagrams of chapter 3: the whole Transformer with "you are here", and its parts.

Numbers and shapes come from the library's functions and from the configuration that is
drawn. Architecture is read upwards, as in the papers; computation downwards.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from course_lib.figures.diagrams import Area, Diagram, Number, Point
from course_lib.figures.explorer import Explorer
from course_lib.figures.stepper import Step, stepped_figure
from course_lib.training.schedules import learning_rate_at, paper_peak
from course_lib.transformer.blocks import FeedForward
from course_lib.transformer.heads import label_smoothing_loss
from course_lib.transformer.model import Transformer, TransformerConfig
from course_lib.transformer.positions import one_hot_lookup, sinusoidal_positions

#: The base model of Vaswani et al. 2017, table 3.
PAPER = TransformerConfig(
    37_000, 37_000, 512, 8, 6, 2048, dropout=0.1, share_embeddings=True
)
SOURCE, TARGET = ["the", "cat", "sleeps"], ["le", "chat", "dort"]
#: What `whole_transformer` can show as "here".
PARTS = (
    "embeddings",
    "positions",
    "self-attention",
    "residual and norm",
    "feed-forward",
    "cross-attention",
    "output",
    "encoder",
    "decoder",
)
#: Distances in `whole_transformer`: of two sub-layers, and of the columns' centres.
FLOOR, COLUMNS = 96, (104, 296)
HEIGHT = 470


def whole_transformer(
    here: str | None = None, config: TransformerConfig = PAPER
) -> Diagram:
    """Draw encoder and decoder (Vaswani et al. 2017, figure 1), one part of it lit."""
    diagram = Diagram(
        f"transformer-{(here or 'all').replace(' ', '-')}",
        HEIGHT,
        "The Transformer" + f": {here}" * bool(here),
        "Read upwards. Encoder, left: embeddings plus positions, then"
        f" {config.num_layers} blocks of self-attention and feed-forward, each followed"
        " by add and norm, with a residual path around it. Decoder, right: the same"
        " with masked self-attention, and cross-attention between the two: queries from"
        " the decoder, keys and values from the top of the"
        " encoder; then a linear layer and a softmax over the vocabulary give the next"
        " word." + f" Lit here: {here}." * bool(here),
        here,
    )

    def part(name: str, column: str) -> str:
        return column if here in ("encoder", "decoder") else name

    def sublayer(
        name: str, column: str, y: Number, text: str, role: str, gets: str
    ) -> Area:
        """Draw what a sub-layer gets at height y, the layer, add and norm, and the
        residual path; return the layer."""
        x, side = (COLUMNS[0], -1) if column == "encoder" else (COLUMNS[1], 1)
        with diagram.part(part("residual and norm", column)):
            norm = diagram.box(x, y - 82, 132, 20, "add + norm", "r")
            beside = (x + side * 80, norm.left[1])
            end = norm.at((1 + side) / 2, 0.5)
            diagram.arrow((x, y + 6), "-", beside, end, role="r", dash=True)
        with diagram.part(part(name, column)):
            layer = diagram.box(x, y - 54, 132, 34, text, role)
            diagram.arrow((x, y + 14), (x, y - 3), head=False, gap=0)
            for letter, across in zip(gets, (0, -42, 42), strict=False):
                diagram.arrow(
                    *((x, y - 3), "-", (x + across, layer.bottom[1])),
                    role=letter.strip().lower(),
                    label=letter.strip(),
                    at=(x + across + 6, y - 9 - 3 * (gets == "Q")),
                    gap=0,
                )
            diagram.arrow(layer.top, norm.bottom, gap=0)
        return layer

    tops = []
    for column, x, words in (
        ("encoder", COLUMNS[0], " ".join(SOURCE)),
        ("decoder", COLUMNS[1], " ".join(["<bos>", *TARGET[:-1]])),
    ):
        side = -1 if column == "encoder" else 1
        with diagram.part(part("embeddings", column)):
            diagram.label(x, HEIGHT - 8, words)
            embeddings = diagram.box(x, HEIGHT - 46, 132, 24, "embeddings")
            diagram.arrow((x, HEIGHT - 15), embeddings.bottom, gap=0)
        with diagram.part(part("positions", column)):
            plus = diagram.box(x, HEIGHT - 72, 16, 16, "+", "r")
            diagram.arrow(embeddings.top, plus.bottom, gap=0)
            diagram.arrow(
                (x + side * 30, plus.left[1]), (x + side * 8, plus.left[1]), gap=0
            )
            diagram.label(x + side * 60, plus.left[1], "positions", "small")
        kinds = [("self-attention", "self-attention", "w", "QKV")]
        if column == "decoder":
            kinds[0] = ("self-attention", "masked\nself-attention", "w", "QKV")
            kinds.append(("cross-attention", "cross-attention", "w", "Q"))
        kinds.append(("feed-forward", "feed-forward", "n", " "))
        for floor, (name, text, role, gets) in enumerate(kinds):
            layer = sublayer(
                name, column, HEIGHT - 86 - FLOOR * floor, text, role, gets
            )
            if name == "cross-attention":
                cross = layer
        tops.append(HEIGHT - 72 - FLOOR * len(kinds))
        with diagram.part(part("block", column)):
            left = x - 92 if side < 0 else x - 76
            frame = diagram.group(left, tops[-1] - 6, 168, HEIGHT - 74 - tops[-1])
            name = f"{column.capitalize()} \N{MULTIPLICATION SIGN} {config.num_layers}"
            place = frame.at(0, 0) if side < 0 else frame.at(1, 0)
            anchor = "small bold " + ("start" if side < 0 else "end")
            diagram.label(place[0], place[1] - 9, name, anchor)
    with diagram.part(part("cross-attention", "decoder")):
        for role, start, up, over, into in (
            ("k", 112, 30, 206, 0.3),
            ("v", 124, 16, 198, 0.72),
        ):
            above = (start, tops[0] - up)
            diagram.arrow(
                *((start, tops[0]), above, "-", (over, cross.at(0, into)[1])),
                cross.at(0, into),
                role=role,
                gap=0,
                label=role.upper(),
                at=(over + 6 - 18 * (role == "v"), cross.y - 14),
            )
    with diagram.part(part("output", "decoder")):
        x = COLUMNS[1]
        linear = diagram.box(x, tops[1] - 46, 132, 22, "linear")
        softmax = diagram.box(x, tops[1] - 76, 132, 22, "softmax", "w")
        diagram.arrow((x, tops[1]), linear.bottom, gap=0)
        diagram.arrow(linear.top, softmax.bottom, gap=0)
        diagram.arrow(softmax.top, (x, tops[1] - 88), gap=0)
        diagram.label(x, tops[1] - 96, " ".join(TARGET))
    for row, (role, text) in enumerate(
        (("q", "Q  query"), ("k", "K  key"), ("v", "V  value"), ("r", "residual path"))
    ):
        y = 14 + 18 * row
        diagram.arrow(
            (8, y), (34, y), role=role, dash=role == "r", label=text, at=(42, y)
        )
    if here:
        box = diagram.group(8, 90, 136, 40, here=True)
        diagram.label(*box.at(0.5, 0.5), f"You are here:\n{here}", "small bold")
    return diagram


def one_hot(word: str = "cat") -> Diagram:
    """Draw the one-hot row of a word times the embedding matrix."""
    words = [*SOURCE, "dog", "sees"]
    generator = torch.Generator().manual_seed(4)
    matrix = torch.randn(len(words), 4, generator=generator)
    place = words.index(word)
    row = one_hot_lookup(torch.tensor([place]), matrix)[0]
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


def smoothed_labels(
    words: Sequence[str], right: int, smoothing: float = 0.1
) -> Diagram:
    """Draw the target distribution of a word, one-hot and smoothed."""
    smoothed = (1 - smoothing) * F.one_hot(torch.tensor(right), len(words)).double()
    smoothed = smoothed + smoothing / len(words)
    logits = torch.randn(1, len(words), generator=torch.Generator().manual_seed(0))
    by_library, _ = label_smoothing_loss(
        logits, torch.tensor([right]), smoothing, ignore_index=-1
    )
    by_target = -(smoothed * logits.log_softmax(dim=-1)).sum()
    assert torch.isclose(by_library.double(), by_target)  # it is the library's target
    diagram = Diagram(
        "smoothed-labels",
        40 + 24 * len(words),
        "One-hot and smoothed target",
        f"The right word is {words[right]}. One-hot, it has probability 1. Smoothed, it"
        f" has {smoothed[right]:.3f}, and each other word has"
        f" {smoothed.min().item():.3f}.",
    )
    diagram.label(70, 12, "one-hot", "bold start")
    diagram.label(234, 12, f"smoothed by {smoothing:g}", "bold start")
    for row, word in enumerate(words):
        y = 30 + 24 * row
        diagram.label(8, y + 8, word, "start" + " bold" * (row == right))
        for x, share in ((70, float(row == right)), (234, float(smoothed[row]))):
            if share:
                diagram.bar(x, y, 110 * share, "w")
            text = f"{share:.3f}" if 0 < share < 1 else f"{share:.0f}"
            diagram.label(x + 110 * share + 6, y + 8, text, "small start")
    return diagram


def learning_rates(dim: int = 512, warmup: int = 4000, steps: int = 40_000) -> Diagram:
    """Draw warm-up and decay: the schedule of Vaswani et al. 2017, equation 3, and the
    linear one of this chapter's models, at the same peak."""
    peak = paper_peak(dim, warmup)
    left, bottom, width, height = 46, 190, 330, 150
    diagram = Diagram(
        "learning-rates",
        236,
        "Learning rate: warm-up and decay",
        f"The learning rate rises in a straight line to {peak:.1e} at step"
        f" {warmup:,}. Then the published schedule falls as one over the root of the"
        f" step, and the linear one reaches zero at step {steps:,}.",
    )

    def place(step: Number, rate: Number) -> Point:
        return left + width * step / steps, bottom - height * rate / peak

    diagram.arrow((left, bottom), (left + width + 14, bottom))
    diagram.arrow((left, bottom), (left, bottom - height - 22))
    diagram.label(left, 10, "learning rate", "small soft start")
    diagram.label(399, 226, "training step", "small soft end")
    for step in (0, warmup, steps // 2, steps):
        diagram.label(place(step, 0)[0], bottom + 16, f"{step:,}", "small")
    for rate in (0.0, peak / 2, peak):
        diagram.label(left - 6, place(0, rate)[1], f"{rate * 1e4:.1f}", "small end")
    diagram.label(2, 226, "\N{MULTIPLICATION SIGN} 10^{\N{MINUS SIGN}4}", "small start")
    top = place(warmup, peak)
    diagram.arrow(place(0, 0), top, head=False, gap=0, role="w")
    diagram.label(top[0] - 4, 26, "warm-up", "small start bold")
    for schedule, role, text, at in (
        ("inverse_sqrt", "w", "inverse square root (published)", (left + 40, 162)),
        ("linear", "k", "linear (this chapter's models)", (left + 116, 66)),
    ):
        path = [
            place(step, learning_rate_at(step, peak, schedule, warmup, steps))
            for step in range(warmup, steps + 1, 1000)
        ]
        diagram.arrow(*path, head=False, gap=0, role=role, dash=schedule == "linear")
        diagram.label(*at, text, f"small start tint {role}")
    return diagram


@torch.no_grad()
def decoding_with_a_cache() -> Explorer:
    """Step through greedy decoding: what is kept of the source and of the words
    written, read from the caches of a real (untrained) model."""
    vocabulary = ["<bos>", *TARGET, "<eos>"]
    sizes = TransformerConfig(len(SOURCE), len(vocabulary), 8, 2, 1, 16)
    model = Transformer(sizes).eval()
    state = model.start(torch.arange(3)[None], torch.tensor([3]))
    steps = []
    for step, word in enumerate(vocabulary[:-1]):
        _, state = model.step(state, torch.tensor([step]))
        cache = state.caches[0]
        assert cache.written is not None
        source, written = cache.memory.key.shape[-2], cache.written.key.shape[-2]
        steps.append(
            Step(
                f"Step {step + 1}: read {word}, write {vocabulary[step + 1]}",
                text=(
                    f"The decoder computes query, key and value of {word} only. The key"
                    f" and value join the {written - 1} that it kept, and the query is"
                    f" compared with all {written}; then it asks the {source} source"
                    " words, whose keys and values were computed once."
                ),
                diagram=_cache(step, vocabulary, source, written),
            )
        )
    return stepped_figure(steps, "Decoding the cat sleeps with a cache")


def _cache(step: int, vocabulary: list[str], source: int, written: int) -> Diagram:
    """Draw one step of `decoding_with_a_cache`."""
    word, answer = vocabulary[step], vocabulary[step + 1]
    diagram = Diagram(
        f"cache-{step + 1}",
        300,
        f"Decoding with a cache, step {step + 1}",
        f"The decoder reads {word}. Its query meets the keys of the {written} words"
        f" read so far, of which only the last is new, then the keys of {source} source"
        f" words. It writes {answer}.",
    )
    diagram.label(2, 72, "source:\ncomputed\nonce", "small soft start")
    diagram.label(2, 206, "read so far:\none new\neach step", "small soft start")
    for y, words, fresh, name in (
        (40, SOURCE[:source], None, "cross-attention"),
        (174, vocabulary[:written], written - 1, "masked self-attention"),
    ):
        for at, text in enumerate(words):
            x, new = 92 + 54 * at, at == fresh
            diagram.label(x + 20, y - 10, text, "bold" if new else "")
            for down, role in ((0, "k"), (30, "v")):
                shade = [[1.0 if new else 0.0] * 4]
                diagram.tensor(x, y + down, 1, 4, role, (10, 24), shade=shade)
        diagram.label(84, y + 12, "K", "k tint bold end")
        diagram.label(84, y + 42, "V", "v tint bold end")
        frame = diagram.group(88, y - 22, 54 * 4, 80)
        diagram.label(196, y + 68, name, "small")
        query = diagram.tensor(340, y + 15, 1, 4, "q", (10, 24))
        diagram.label(360, y + 5, "Q", "q tint bold")
        diagram.arrow(query.left, (frame.right[0] + 2, query.left[1]), role="q")
    diagram.label(399, 284, f"reads {word}", "end")
    diagram.arrow((360, 274), (360, 214))
    diagram.arrow((360, 158), (360, 80))
    diagram.arrow((360, 32), (360, 20))
    diagram.label(399, 10, f"writes {answer}", "bold end")
    return diagram
