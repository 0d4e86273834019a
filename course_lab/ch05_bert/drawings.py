"""The diagrams of chapter 5: BERT's stack, its input, a padded batch, and what ELMo,
GPT and BERT let a state see. Shapes and numbers are those of the model that is drawn.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import torch
from torch import Tensor

from course_lib.attention.masks import masked_softmax
from course_lib.bert.layers import BertEmbeddings
from course_lib.bert.model import BertForPreTraining
from course_lib.figures.diagrams import Area, Diagram, Number, Point
from course_lib.wordpiece.tokenizer import Encoding

PARTS = ("input embeddings", "encoder blocks", "heads")
WORDS = ("the", "river", "bank", "was", "steep")
CHOSEN = WORDS.index("bank")


def shapes_of(model: BertForPreTraining, input_ids: Tensor) -> dict[str, str]:
    """Run a model, and write the shape of everything that goes through it."""
    with torch.no_grad():
        hidden, pooled, _ = model.bert(input_ids)
        words, next_sentence = model(input_ids)
    tensors = {
        "ids": input_ids,
        "embeddings": model.bert.embeddings(input_ids),
        "hidden": hidden,
        "pooled": pooled,
        "words": words,
        "next": next_sentence,
    }
    return {name: str(tuple(tensor.shape)) for name, tensor in tensors.items()}


def bert_stack(
    model: BertForPreTraining,
    tokens: Sequence[str],
    input_ids: Tensor,
    here: str | None = None,
) -> Diagram:
    """BERT from its input to its two heads, read upwards (Devlin et al. 2019, figures
    1 and 2)."""
    shapes, layers = shapes_of(model, input_ids), len(model.bert.blocks)
    d = Diagram(
        f"bert-stack-{(here or 'all').replace(' ', '-')}",
        534,
        "BERT" + f": {here}" * bool(here),
        f"Read upwards. {len(tokens)} tokens become embeddings of shape"
        f" {shapes['embeddings']}; {layers} encoder blocks, each with self-attention"
        " over all positions and a feed-forward layer, keep that shape. From the state"
        f" of [CLS] the pooler makes a vector of shape {shapes['pooled']} and the"
        f" next-sentence head two scores, {shapes['next']}. From every state the"
        f" masked-language-model head makes scores of all tokens, {shapes['words']}.",
        here,
    )
    left, right = 44, 308
    step = (right - left) / (len(tokens) - 1)
    places = [left + step * i for i in range(len(tokens))]
    middle = (left + right) / 2

    def shape(y: Number, name: str) -> None:
        d.label(396, y, shapes[name], "small end")

    def row(y: Number) -> list[Area]:
        return [d.tensor(x - 20, y, 1, 4, "r", (10, 12)) for x in places]

    with d.part(PARTS[0]):
        for x, token in zip(places, tokens, strict=True):
            d.label(x, 522, token)
            d.arrow((x, 513), (x, 496), gap=0)
        shape(522, "ids")
        box = d.box(middle, 456, 290, 40, "token + segment + position\nlayer norm")
        embedded = row(422)
        for area in embedded:
            d.arrow((area.bottom[0], box.y), area.bottom)
        shape(428, "embeddings")
    with d.part(PARTS[1]):
        d.group(4, 240, 320, 166)
        d.label(396, 324, f"× {layers} blocks", "small bold end")
        below = [area.top for area in embedded]
        for y, text, role in (
            (366, "self-attention: every position sees all", "w"),
            (290, "feed-forward: each position alone", "n"),
        ):
            layer = d.box(middle, y - 10, 270, 28, text, role)
            norm = d.box(middle, y - 43, 270, 22, "add + norm", "r")
            for x, start in zip(places, below, strict=True):
                d.arrow(start, (x, layer.y + 28), gap=0)
                d.arrow((x, layer.y), (x, norm.y + 22), gap=0)
            start, corner = (left, layer.y + 33), (middle - 150, norm.left[1])
            d.arrow(start, "-", corner, norm.left, role="r", dash=True)
            below = [(x, norm.y) for x in places]
        final = row(214)
        for start, area in zip(below, final, strict=True):
            d.arrow(start, area.bottom, gap=0)
        shape(220, "hidden")
    with d.part(PARTS[2]):
        d.box(173, 160, 298, 34, "masked-language-model head:\nlinear, GELU, norm")
        pooler = d.box(56, 113, 104, 34, "pooler:\nlinear, tanh")
        following = d.box(56, 62, 104, 34, "next-sentence\nhead", "w")
        scores = "scores of all tokens:\nthe token embedding,\ntransposed"
        tied = d.box(219, 62, 206, 52, scores, "w")
        for area in final:
            d.arrow(area.top, (area.top[0], 194))
        d.arrow(final[0].left, "-", (14, 147))
        d.arrow(pooler.top, following.bottom)
        d.arrow((219, 160), tied.bottom)
        ends = (following, "next", "is next?"), (tied, "words", "which token?")
        for box, name, text in ends:
            d.arrow(box.top, (box.top[0], 44), gap=0)
            d.label(box.top[0], 32, text)
            d.label(box.top[0], 14, shapes[name], "small")
        d.label(114, 134, shapes["pooled"], "small start")
    return d


def input_sum(encoding: Encoding, embeddings: BertEmbeddings) -> Diagram:
    """What each token adds up, a row for each (Devlin et al. 2019, figure 2)."""
    ids, segments = torch.tensor(encoding.ids), torch.tensor(encoding.type_ids)
    positions = torch.arange(len(ids))
    rows = (
        embeddings.token(ids)
        + embeddings.segment(segments)
        + embeddings.position(positions)
    ).tolist()
    columns = (
        (128, "token", "E", encoding.ids),
        (206, "segment", "Z", encoding.type_ids),
        (284, "position", "P", positions.tolist()),
    )
    high, top = 32, 46
    d = Diagram(
        "bert-input-sum",
        top + high * len(ids) + 8,
        "BERT's input for a pair",
        "One line for each token, with the rows that are added. "
        + " ".join(
            f"{token}: token {w}, segment {z}, position {t}; the sum is"
            f" {', '.join(f'{x:g}' for x in row)}."
            for t, (token, w, z, row) in enumerate(
                zip(encoding.tokens, encoding.ids, encoding.type_ids, rows, strict=True)
            )
        ),
    )
    for segment in sorted(set(encoding.type_ids)):
        first = encoding.type_ids.index(segment)
        number = encoding.type_ids.count(segment)
        frame = d.group(4, top + high * first - 2, 392, high * number - 3)
        d.label(14, frame.at(0, 0.5)[1], "AB"[segment], "bold")
    for x, name, _, _ in columns:
        d.label(x, 16, f"{name}\nembedding", "small soft")
    d.label(358, 16, "sum", "small soft")
    for t, (token, row) in enumerate(zip(encoding.tokens, rows, strict=True)):
        y = top + high * t + 14
        d.label(30, y, token, "start")
        for x, _, letter, numbers in columns:
            d.box(x, y - 12, 48, 24, f"{letter}_{{{numbers[t]}}}")
            d.label(x + 38, y, "=" if letter == "P" else "+")
        d.tensor(328, y - 11, 1, len(row), "r", (20, 22), [[f"{x:g}" for x in row]])
    return d


def padded_batch(batch: Sequence[Encoding]) -> Diagram:
    """A padded batch, its mask and its segments, and the weights of the last sequence
    where all scores are equal."""
    longest = max(len(encoding.ids) for encoding in batch)
    mask = torch.tensor([encoding.attention_mask for encoding in batch]).bool()
    weights = masked_softmax(
        torch.zeros(1, longest, longest), mask[-1].expand(1, longest, longest)
    )[0]
    wide = 384 / longest  # of a cell
    d = Diagram(
        "padded-batch",
        476,
        "A padded batch and its mask",
        f"{len(batch)} sequences of {longest} positions. "
        + " ".join(
            f"Sequence {i}: {' '.join(encoding.tokens)};"
            f" mask {' '.join(map(str, encoding.attention_mask))}."
            for i, encoding in enumerate(batch, start=1)
        )
        + " Below, the weights of the last sequence: with equal scores each query gives"
        f" {weights.max():.2f} to every real token and 0 to padding.",
    )
    tables = (
        ("tokens, as input_ids", "n", [encoding.tokens for encoding in batch]),
        (
            "attention_mask: 1 is real",
            "w",
            [encoding.attention_mask for encoding in batch],
        ),
        ("token_type_ids: the segment", "n", [encoding.type_ids for encoding in batch]),
    )
    y = 10
    for name, role, numbers in tables:
        d.label(8, y, f"{name}  ({len(batch)}, {longest})", "small start")
        shade = (0.3 * mask).tolist()
        d.tensor(8, y + 10, len(batch), longest, role, (wide, 22), shade=shade)
        for i, j in product(range(len(batch)), range(longest)):
            x = 8 + wide * (j + 0.5)
            d.label(x, y + 21 + 22 * i, str(numbers[i][j]), "small")
        y += 10 + 22 * len(batch) + 22
    d.label(8, y, "weights of the last sequence, equal scores", "small start")
    d.label(
        8, y + 15, "(a row for each query, a column for each key)", "small soft start"
    )
    texts = [[f"{x:.1f}" if x else "0" for x in row] for row in weights.tolist()]
    shade = (0.3 * weights / weights.max()).tolist()
    grid = d.tensor(70, y + 46, longest, longest, "w", (40, 22), texts, shade)
    for i, token in enumerate(batch[-1].tokens):
        d.label(62, grid.y + 22 * i + 11, token, "small end")
        d.label(grid.x + 40 * i + 20, y + 36, token, "small")
    return d


def wiring(connected: Mapping[str, Tensor]) -> Diagram:
    """What a state may read in BERT, GPT and ELMo, layer by layer (Devlin et al. 2019,
    figure 3); `connected` says of each state of the first layer which words it depends
    on, ELMo's halves apart."""
    d = Diagram(
        "wiring",
        520,
        "BERT, GPT and ELMo, wired",
        "Two layers of states above five words; bold lines lead to what the word"
        " bank may read. In BERT every state reads all states below, in GPT those at"
        " its place and to the left. In ELMo one chain of states runs from left to"
        " right, another from right to left, and they are joined at the top only.",
    )
    places = [100 + 65 * i for i in range(len(WORDS))]

    def words(y: Number) -> None:
        for i, (x, word) in enumerate(zip(places, WORDS, strict=True)):
            d.label(x, y, word, "bold" if i == CHOSEN else "")

    def states(y: Number, role: str = "r", shift: Number = 0) -> list[Area]:
        return [d.tensor(x + shift - 14, y, 1, 2, role, (14, 12)) for x in places]

    for name, note, top in (("BERT", "all to all", 8), ("GPT", "causal mask", 154)):
        d.label(6, top + 46, f"{name}", "bold start")
        d.label(6, top + 62, note, "small soft start")
        rows = [states(top), states(top + 52)]
        bottom: list[Point] = [(x, top + 108) for x in places]
        below: list[list[Point]] = [[area.top for area in rows[1]], bottom]
        for number, (reached, starts) in enumerate(zip(rows, below, strict=True)):
            strong = [t == CHOSEN for t in range(len(WORDS))]
            if number == 1:
                strong = connected[name][CHOSEN].tolist()
            for t in sorted(range(len(WORDS)), key=lambda t: strong[t]):
                for s in connected[name][t].nonzero().flatten().tolist():
                    role = "q" if strong[t] else ""
                    d.arrow(starts[s], reached[t].bottom, role=role, head=strong[t])
        words(top + 118)
    top = 312
    d.label(6, top + 30, "ELMo", "bold start")
    d.label(6, top + 46, "two LSTMs", "small soft start")
    words(top + 198)
    joined = [d.tensor(x - 28, top, 1, 4, "r", (14, 12)) for x in places]
    for name, role, shift, heights in (
        ("ELMo, forward", "k", -20, (140, 108)),
        ("ELMo, backward", "v", 20, (72, 40)),
    ):
        depends = connected[name]
        ends: list[Point] = [(x + shift, top + 188) for x in places]
        for height in heights:
            layer = states(top + height, role, shift)
            for t, area in enumerate(layer):
                lit = bool(depends[CHOSEN][t])
                colour = role if lit else ""
                d.arrow(ends[t], area.bottom, role=colour, head=lit)
                if t and depends[t][t - 1]:
                    d.arrow(layer[t - 1].right, area.left, role=colour)
                if t + 1 < len(WORDS) and depends[t][t + 1]:
                    d.arrow(layer[t + 1].left, area.right, role=colour)
            ends = [area.top for area in layer]
        for t, (start, area) in enumerate(zip(ends, joined, strict=True)):
            end = (area.bottom[0] + shift, area.bottom[1])
            d.arrow(start, end, role=role if t == CHOSEN else "", head=t == CHOSEN)
    return d
