"""The diagrams of chapter 1: an encoder and a decoder, a gated recurrent unit, teacher
forcing and one step of attention. Their numbers and shapes are those of the library's
own functions; the searches are drawn in :mod:`course_lab.ch01_seq2seq.search_drawings`.
"""

import math
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from course_lab.ch01_seq2seq.text import SPECIAL_TOKENS, Pair, collate
from course_lib.attention.multi_head import attend
from course_lib.attention.scores import DotScore
from course_lib.figures.diagrams import Area, Diagram
from course_lib.figures.explorer import Explorer
from course_lib.figures.stepper import Step, stepped_figure
from course_lib.seq2seq.model import Seq2Seq, Seq2SeqConfig

SOURCE, TARGET = ["the", "cat", "sleeps"], ["le", "chat", "dort"]
#: The states of the attention step that is worked by hand, and the decoder's.
STATES, ASKING = ((1, -1), (1, 1), (-1, 2)), (2, 1)


@cache
def drawn_states() -> tuple[Tensor, Tensor]:
    """The states of the encoder and of the decoder of a model that is small enough to
    draw: ``(S, D)`` and ``(T, D)``."""
    model = Seq2Seq(Seq2SeqConfig(9, 9, embedding_dim=3, hidden_dim=4))
    batch = collate([Pair([4, 5, 6], [4, 5, 6])])
    start = model.start(batch["source_ids"], batch["source_lengths"])
    words = model.decoder.embedding(batch["target_ids"])
    hidden, _ = model.decoder.gru(words, start.hidden[None])
    return start.encoder_states[0], hidden[0]


def encoder_decoder(here: str | None = None, attention: bool = False) -> Diagram:
    """An encoder and a decoder, unrolled: with one vector between them, or with
    attention. Parts: encoder, decoder, and bottleneck or attention."""
    between = "attention" if attention else "bottleneck"
    told = (
        "At the step that predicts chat, attention compares the decoder's state with"
        " all three encoder states and hands their weighted average to the prediction."
        if attention
        else "The last state of each direction, side by side, is the one vector c that"
        " begins the decoder and goes to each of its predictions."
    )
    d = Diagram(
        f"{between}-{here or 'whole'}",
        352,
        f"An encoder-decoder with {'attention' if attention else 'a bottleneck'}",
        f"Left: {' '.join(SOURCE)} is read by a recurrent unit in each direction, and"
        f" the two states of a word are its encoder state. {told} Right: from <bos>"
        f" {' '.join(TARGET)} the decoder predicts {' '.join(TARGET)} <eos>.",
        here,
    )
    encoder, decoder = drawn_states()
    with d.part("encoder"):
        states = _encoder(d, (34, 90, 146), encoder)
    with d.part("decoder"):
        output, hidden = _decoder(d, (218, 270, 322, 374), decoder)
    with d.part(between):
        draw = _attention if attention else _bottleneck
        draw(d, states, output, hidden)
    return d


def _encoder(d: Diagram, xs: tuple[int, ...], states: Tensor) -> list[Area]:
    units = [d.box(x, 246, 40, 40, "GRU") for x in xs]
    for a, b in pairwise(units):
        d.arrow(a.at(1, 0.25), b.at(0, 0.25), role="r")
        d.arrow(b.at(0, 0.75), a.at(1, 0.75), role="r")
    vectors = []
    for j, (x, word, state) in enumerate(zip(xs, SOURCE, states, strict=True), 1):
        d.label(x, 318, word)
        d.arrow((x, 308), (x, 286))
        vectors.append(d.tensor(x - 22, 192, 1, len(state), "k", (11, 16)))
        d.arrow((x, 246), vectors[-1].bottom)
        d.label(x + 6, 226, f"h_{{{j}}}", "small start")
    d.label(90, 342, "encoder", "bold")
    return vectors


def _decoder(
    d: Diagram, xs: tuple[int, ...], states: Tensor
) -> tuple[Area, list[Area]]:
    output = d.box(296, 62, 204, 30, "linear layers and softmax", "w")
    hidden: list[Area] = []
    words = zip(xs, ["<bos>", *TARGET], [*TARGET, "<eos>"], states, strict=True)
    for t, (x, read, written, state) in enumerate(words, 1):
        d.label(x, 318, read)
        unit = d.box(x, 246, 38, 40, "GRU")
        d.arrow((x, 308), unit.bottom)
        if hidden:
            d.arrow((x - 33, 266), unit.left, role="r")
        hidden.append(d.tensor(x - 22, 192, 1, len(state), "q", (11, 16)))
        d.arrow(unit.top, hidden[-1].bottom)
        d.label(x + 6, 226, f"s_{{{t}}}", "small start")
        d.arrow((x + 8, 192), (x + 8, output.bottom[1]))
        d.arrow((x, 62), (x, 36))
        d.label(x, 24, written, "bold")
    d.label(296, 342, "decoder", "bold")
    return output, hidden


def _bottleneck(
    d: Diagram, states: list[Area], output: Area, hidden: list[Area]
) -> None:
    d.group(52, 52, 76, 48, here=True)
    columns = round(states[0].width / 11)
    c = d.tensor(68, 72, 1, columns, "v", (11, 16))
    d.label(90, 62, "c", "bold")
    d.arrow(states[2].at(0.25, 0), "|", (135, 130), "-", (79, 130), c.at(0.25, 1))
    d.arrow(states[0].at(0.75, 0), "|", (45, 160), "-", (101, 160), c.at(0.75, 1))
    d.arrow(c.right, "-", (184, 130), "|", (184, 266), "-", (199, 266), role="v")
    d.label(180, 282, "s_{0}", "small start")
    ends = [area.top[0] - 8 for area in hidden]
    d.arrow((184, 136), (ends[-1], 136), role="v", head=False, gap=0)
    for x in ends:
        d.arrow((x, 136), (x, output.bottom[1]), role="v", gap=0)


def _attention(
    d: Diagram, states: list[Area], output: Area, hidden: list[Area]
) -> None:
    box = d.box(96, 62, 164, 30, "attention", "w")
    for state in states:
        d.arrow(state.top, (state.top[0], box.bottom[1]), role="k")
    asks, into = hidden[1].at(0.3, 0), hidden[1].top[0] - 8
    d.arrow(asks, (asks[0], 172), (168, 172), (168, box.bottom[1]), role="q")
    d.arrow(box.right, (184, 77), (184, 136), (into, 136), (into, output.bottom[1]),
            role="v")  # fmt: skip
    d.label(190, 124, "c_{2}", "v tint bold start")
    d.arrow((167, 266), (199, 266), role="r")
    d.label(174, 282, "s_{0}", "small start")


def gated_unit() -> Diagram:
    """A gated recurrent unit: two gates decide what is kept."""
    d = Diagram(
        "gated-unit",
        252,
        "A gated recurrent unit",
        "The old state and the input enter two gates and a candidate. The reset gate"
        " says how much of the old state the candidate may use. The update gate z says"
        " how to mix: z times the old state plus 1 minus z times the candidate is the"
        " new state.",
    )
    old = d.tensor(10, 34, 1, 4, "r", (11, 16))
    word = d.tensor(10, 206, 1, 3, "n", (11, 16))
    d.label(10, 22, "old state h_{t-1}", "small start")
    d.label(10, 234, "input x_{t}", "small start")
    mix = d.box(270, 24, 104, 36, "z · old +\n(1 − z) · new", "r")
    new = d.tensor(352, 34, 1, 4, "r", (11, 16))
    d.label(396, 64, "new state h_{t}", "small end")
    d.arrow(old.right, mix.left, role="r")
    d.arrow(mix.right, new.left, role="r")
    gates = [
        d.box(x, 124, 92, 40, text, role)
        for x, text, role in (
            (96, "reset gate\nr: sigmoid", "n"),
            (202, "candidate\nnew: tanh", "n"),
            (308, "update gate\nz: sigmoid", "w"),
        )
    ]
    d.arrow(old.at(0.5, 1), (32, 186), head=False)
    d.arrow((32, 186), (gates[-1].bottom[0], 186), gates[-1].bottom, gap=0)
    d.arrow(word.right, "-", (60, 186), head=False)
    for gate in gates[:2]:
        d.arrow((gate.bottom[0], 186), gate.bottom)
    d.arrow(gates[0].right, gates[1].left)
    d.arrow(gates[1].top, (202, 92), (246, 92), (246, 60))
    d.arrow(gates[2].top, (308, 60), role="w")
    return d


def teacher_forcing() -> Diagram:
    """The decoder reads the reference, shifted by one place, and predicts it."""
    names = [*SPECIAL_TOKENS, *TARGET]
    batch = collate([Pair([4], [names.index(word) for word in TARGET])])
    reads, labels = (
        [names[i] for i in batch[name][0]] for name in ("target_ids", "labels")
    )
    d = Diagram(
        "teacher-forcing",
        232,
        "Teacher forcing and the shifted target",
        f"The decoder reads {' '.join(reads)} and should predict {' '.join(labels)}:"
        " at each place the next word of the reference, whatever it would have"
        " predicted itself.",
    )
    for y, text in ((214, "reads"), (32, "label")):
        d.label(4, y, text, "small soft start")
    d.label(4, 94, "loss", "small soft start")
    columns: list[tuple[Area, Area, Area]] = []
    for x, read, label in zip((88, 176, 264, 352), reads, labels, strict=True):
        below = d.box(x, 200, 62, 28, read)
        unit = d.box(x, 136, 62, 28, "decoder")
        loss = d.box(x, 74, 62, 40, f"−ln p of\n{label}", "w")
        above = d.box(x, 18, 62, 28, label, "v")
        for a, b in ((below.top, unit.bottom), (unit.top, loss.bottom)):
            d.arrow(a, b)
        d.arrow(above.bottom, loss.top, role="v")
        if columns:
            d.arrow(columns[-1][1].right, unit.left, role="r")
            d.arrow(
                columns[-1][2].right, "-", (x - 44, 120), "|", (x - 44, 214),
                "-", below.left, role="v", dash=True,
            )  # fmt: skip
        columns.append((below, unit, above))
    return d


def attention_step() -> Explorer:
    """One step of attention with numbers, in three steps: compare, normalise, mix."""
    texts = (
        "The decoder's state, the query, meets the state of each source word, the"
        " keys. Multiply feature by feature and add: that is a dot product.",
        "The exponential makes every score positive. Divide each by their sum, and you"
        " have weights that sum to 1.",
        "Multiply each state, now called a value, by its weight, and add the columns."
        " The sum is the context.",
    )
    titles = ("Compare", "Normalise", "Mix")
    steps = [
        Step(title, text=text, diagram=_attention_until(stage))
        for stage, (title, text) in enumerate(zip(titles, texts, strict=True), 1)
    ]
    return stepped_figure(steps, "One step of attention: compare, normalise, mix")


def by_hand() -> tuple[Tensor, Tensor, Tensor]:
    """The scores, weights and context of the step that is worked by hand."""
    query, keys = torch.tensor([[ASKING]]).float(), torch.tensor([STATES]).float()
    scores = DotScore()(query, keys)
    context, weights = attend(scores, keys)
    return scores[0, 0], weights[0, 0], context[0, 0]


def _attention_until(stage: int) -> Diagram:
    scores, weights, context = (values.tolist() for values in by_hand())
    total = sum(map(math.exp, scores))
    told = (
        f"Scores: {', '.join(f'{s:g}' for s in scores)}.",
        f"Weights: {', '.join(f'{w:.2f}' for w in weights)}.",
        f"Context: {', '.join(f'{c:.2f}' for c in context)}.",
    )
    d = Diagram(
        f"attention-step-{stage}",
        364,
        ("Compare", "Normalise", "Mix")[stage - 1],
        f"The query {ASKING} meets the states {', '.join(map(str, STATES))} of"
        f" {', '.join(SOURCE)}. {' '.join(told[:stage])}",
    )
    d.label(8, 14, "query s_{2}", "q tint bold start")
    query = d.tensor(8, 28, 1, 2, "q", (30, 28), [ASKING])
    d.label(150, 42, "The decoder is about to write chat.", "small soft start")
    d.label(8, 86, "keys h_{j}", "k tint bold start")
    d.label(146, 86, "scores", "bold")
    if stage > 1:
        d.label(232, 86, "weights", "w tint bold")
    if stage > 2:
        d.label(346, 86, "weight · value", "v tint bold")
    d.arrow(query.right, "-", (146, 76), role="q")
    frame = d.group(118, 98, 56, 208)
    for word, key, score, weight, y in zip(
        SOURCE, STATES, scores, weights, (120, 188, 256), strict=True
    ):
        d.label(8, y - 9, word, "start")
        keys = d.tensor(8, y, 1, 2, "k", (30, 28), [key])
        terms = [
            f"{q}·{k}" if k >= 0 else f"{q}·(−{-k})"
            for q, k in zip(ASKING, key, strict=True)
        ]
        d.label(8, y + 39, " + ".join(terms), "small soft start")
        number = d.tensor(129, y, 1, 1, "n", (34, 28), [[f"{score:g}"]])
        d.arrow(keys.right, number.left)
        if stage > 1:
            text = f"e^{{{score:g}}} = {math.exp(score):.2f}"
            share = d.tensor(208, y, 1, 1, "w", (48, 28), [[f"{weight:.2f}"]])
            d.label(232, y + 39, text, "small soft")
        if stage > 2:
            parts = [f"{weight * value:.2f}" for value in key]
            mixed = d.tensor(302, y, 1, 2, "v", (44, 28), [parts])
            d.arrow(share.right, mixed.left)
    if stage > 1:
        around = d.group(190, 98, 84, 208)
        d.arrow(frame.right, around.left, role="w")
        d.label(232, 326, f"sum of the e^{{score}}:\n{total:.2f}", "small soft")
    if stage > 2:
        d.arrow((302, 308), (390, 308), head=False)
        d.tensor(302, 314, 1, 2, "v", (44, 28), [[f"{c:.2f}" for c in context]])
        d.label(346, 350, "context c_{2}", "v tint bold")
    return d
