"""The diagrams of chapter 6: a step of pre-training, its loss, and how sentence pairs
are made. Numbers and shapes are those of the model and of the functions that are drawn.
Masking has a module of its own.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch

from course_lib.bert.model import BertForPreTraining
from course_lib.figures.diagrams import Area, Diagram, Number
from course_lib.pretraining.masking import corrupt
from course_lib.pretraining.next_sentence import IS_NEXT, sentence_pairs
from course_lib.wordpiece.tokenizer import Encoding

PARTS = ("sentence pair", "masking", "BERT and its heads", "loss", "gradient step")
NAMES = {IS_NEXT: "IsNext", 1 - IS_NEXT: "NotNext"}


def token_row(
    d: Diagram, y: Number, words: Sequence[str], marked: Sequence[bool], wide: Number
) -> list[Area]:
    """Draw tokens in cells, centred; those that are marked in another colour."""
    left = 200 - wide * len(words) / 2
    areas = []
    for i, (word, mark) in enumerate(zip(words, marked, strict=True)):
        area = d.tensor(left + wide * i, y, 1, 1, "w" if mark else "n", (wide, 24))
        d.label(*area.at(0.5, 0.5), word, "small")
        areas.append(area)
    return areas


def pretraining_step(
    model: BertForPreTraining,
    pair: Encoding,
    masked: int,
    mask_id: int,
    label: int,
    here: str | None = None,
) -> Diagram:
    """One step of pre-training on one pair, of which one token is masked."""
    ids = torch.tensor([pair.ids])
    right = int(ids[0, masked])
    read = ids.clone()
    read[0, masked] = mask_id
    with torch.no_grad():
        words, following = model(read, None, torch.tensor([pair.type_ids]))
    p = words[0, masked].softmax(-1)[right].item()
    q = following[0].softmax(-1)[label].item()
    losses = -math.log(p), -math.log(q)
    tokens, word = list(pair.tokens), pair.tokens[masked]
    corrupted = [
        "[MASK]" if i == masked else token for i, token in enumerate(pair.tokens)
    ]
    d = Diagram(
        f"pretraining-step-{(here or 'all').replace(' ', '-')}",
        494,
        "A step of pre-training" + f": {here}" * bool(here),
        f"Read downwards. Plain text gives the pair {' '.join(tokens)}. Masking"
        f" replaces {word} by [MASK]. BERT turns the tokens into hidden states. The"
        f" next-sentence head gives {NAMES[label]} the probability {q:.2f} from the"
        f" state of [CLS], and the masked-language-model head gives {word} the"
        f" probability {p:.2f} from the state of [MASK]. The loss is {losses[1]:.2f}"
        f" plus {losses[0]:.2f}, and its gradient changes BERT and both heads.",
        here,
    )
    wide = 48
    with d.part(PARTS[0]):
        d.label(160, 14, "plain text", "soft")
        box = d.box(160, 32, 190, 26, "make a sentence pair")
        d.arrow((160, 22), box.top, gap=0)
        d.arrow(box.bottom, (160, 76))
        token_row(d, 76, tokens, [False] * len(tokens), wide)
        d.label(396, 45, f"label: {NAMES[label]}", "small end")
    with d.part(PARTS[1]):
        box = d.box(160, 118, 190, 26, "mask some tokens")
        d.arrow((160, 100), box.top, gap=0)
        d.arrow(box.bottom, (160, 162))
        marked = [i == masked for i in range(len(tokens))]
        cells = token_row(d, 162, corrupted, marked, wide)
        d.label(396, 131, f"label: {word}", "small end")
    with d.part(PARTS[2]):
        bert = d.box(
            200, 210, 384, 32, f"BERT: {len(model.bert.blocks)} encoder blocks"
        )
        states = []
        for area in cells:
            x = area.top[0]
            d.arrow(area.bottom, (x, 210))
            states.append(d.tensor(x - 20, 262, 1, 4, "r", (10, 12)))
            d.arrow((x, bert.bottom[1]), (x, 262))
        nsp = d.box(58, 298, 104, 36, "next-sentence\nhead", "w")
        mlm = d.box(212, 298, 180, 36, "masked-language-\nmodel head", "w")
        d.arrow(states[0].bottom, (states[0].bottom[0], nsp.y))
        d.arrow(states[masked].bottom, (states[masked].bottom[0], mlm.y))
    with d.part(PARTS[3]):
        d.arrow(nsp.bottom, (58, 356))
        d.arrow(mlm.bottom, (212, 356))
        d.label(58, 368, f"q({NAMES[label]}) = {q:.2f}", "small")
        d.label(212, 368, f"p({word}) = {p:.2f}", "small")
        d.label(58, 388, f"−ln q = {losses[1]:.2f}")
        d.label(212, 388, f"−ln p = {losses[0]:.2f}")
        total = d.box(136, 420, 230, 28, f"loss = {losses[0]:.2f} + {losses[1]:.2f}")
        d.arrow((58, 400), (58, 420))
        d.arrow((212, 400), (212, 420))
    with d.part(PARTS[4]):
        box = d.box(136, 462, 230, 26, "optimizer: change all weights")
        d.arrow(total.bottom, box.top)
        d.arrow(box.right, "-", (344, 242), dash=True)
        d.label(338, 400, "gradient", "small end soft")
    return d


def mlm_step(
    words: Sequence[str],
    ids: Sequence[int],
    chosen: Sequence[bool],
    probabilities: Sequence[float],
    mask_id: int,
) -> Diagram:
    """The masked-language-model loss of one short text, from the probabilities that a
    model gives to the original tokens."""
    x, where = torch.tensor([ids]), torch.tensor([chosen])
    masked, labels = corrupt(x, where, torch.zeros(x.shape), x, mask_id)
    losses = [-math.log(p) for p in probabilities]
    counted = [loss for loss, mark in zip(losses, chosen, strict=True) if mark]
    d = Diagram(
        "mlm-step",
        398,
        "The loss of a masked language model",
        "A column for each token. "
        + " ".join(
            f"{word}, id {i}: "
            + (
                f"chosen, read as [MASK], probability {p:g}, loss {loss:.2f}."
                if mark
                else "not chosen, read as it is, no loss."
            )
            for word, i, mark, p, loss in zip(
                words, ids, chosen, probabilities, losses, strict=True
            )
        )
        + f" The sum is {sum(counted):.2f}.",
    )
    places = [150 + 98 * t for t in range(len(words))]
    for y, name in (
        (36, "tokens x"),
        (96, "chosen?"),
        (138, "the model reads"),
        (252, "label"),
        (288, "p of the label"),
        (326, "−ln p"),
    ):
        d.label(4, y, name, "small start")
    bert = d.box(248, 178, 290, 34, "BERT, head, softmax", "w")
    for t, (place, word) in enumerate(zip(places, words, strict=True)):
        mark, label = chosen[t], int(labels[0, t])
        role = "w" if mark else "n"
        cell = d.tensor(place - 42, 20, 1, 1, "n", (84, 34))
        d.label(*cell.at(0.5, 0.5), f"{word}\n{ids[t]}", "small")
        d.arrow(cell.bottom, (place, 84), head=False)
        d.label(place, 96, "yes" if mark else "no", "bold" if mark else "soft")
        d.arrow((place, 106), (place, 120))
        cell = d.tensor(place - 42, 121, 1, 1, role, (84, 34))
        text = f"{'[MASK]' if mark else word}\n{int(masked[0, t])}"
        d.label(*cell.at(0.5, 0.5), text, "small")
        d.arrow(cell.bottom, (place, bert.y))
        d.arrow((place, bert.y + 34), (place, 240))
        if not mark:
            d.label(place, 252, f"\N{MINUS SIGN}{-label}", "soft")
            d.label(place, 288, "not used", "small soft")
            continue
        d.label(place, 252, f"{label}", "bold")
        d.bar(place - 42, 280, 84 * probabilities[t], "w")
        d.label(place + 30, 288, f"{probabilities[t]:.2f}", "small")
        d.label(place, 326, f"{losses[t]:.3f}")
    d.brace((places[0] - 42, 338), (places[-1] + 42, 338), 10, "")
    mean = sum(counted) / len(counted)
    d.label(248, 368, f"sum {sum(counted):.3f} nats\nmean {mean:.3f} nats")
    return d


def exchanged_segments(documents: Sequence[Sequence[str]], seed: int) -> Diagram:
    """Documents of two sentences each, and which second sentence each first one gets
    as a pair for training."""
    words = [sentence.split() for document in documents for sentence in document]
    vocab = sorted({word for sentence in words for word in sentence})
    ids = np.array([vocab.index(word) for sentence in words for word in sentence])
    starts = np.cumsum([0, *map(len, words)])
    pairs = sentence_pairs(
        ids,
        starts,
        np.arange(0, len(words) + 1, 2),
        max_length=4 * max(map(len, words)),
        random=np.random.default_rng(seed),
        short_share=0.0,
    )
    first, second = np.searchsorted(starts, pairs.starts).reshape(-1, 2).T // 2
    told = [
        f"{documents[a][0]} / {documents[b][1]}: {NAMES[label]}"
        for a, b, label in zip(first, second, pairs.labels.tolist(), strict=True)
    ]
    high, top = 46, 40
    d = Diagram(
        "exchanged-segments",
        top + high * len(documents) + 4,
        "Sentence pairs",
        f"{len(documents)} documents, each split into two segments. The pairs:"
        f" {'; '.join(told)}.",
    )
    for x, text in ((76, "segment A"), (254, "segment B"), (366, "label")):
        d.label(x, 16, text, "small bold")
    ends = []
    for number, (one, other) in enumerate(documents):
        y = top + high * number
        ends.append(
            (d.box(76, y, 144, 28, one, "r").right, d.box(254, y, 120, 28, other, "r"))
        )
    for a, b, label in zip(first, second, pairs.labels.tolist(), strict=True):
        d.arrow(ends[a][0], ends[b][1].left, role="" if label == IS_NEXT else "w")
        d.label(366, ends[a][0][1], NAMES[label], "" if label == IS_NEXT else "bold")
    return d
