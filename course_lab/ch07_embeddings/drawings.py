"""The diagrams of chapter 7: two vectors of one word, the window of skip-gram, the
vector that ELMo makes of a word, and the ways to choose layers. Numbers and shapes are
those of the functions and models that are drawn; who reads whom in ELMo, GPT and BERT
is the wiring of chapter 5.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_lab.ch05_bert import contexts
from course_lab.ch05_bert.drawings import wiring
from course_lib.bert.model import BertModel
from course_lib.embeddings.contextual import LayerMix, Selection, select_layers
from course_lib.embeddings.elmo import ELMoOutput
from course_lib.embeddings.skip_gram import skip_gram_pairs
from course_lib.figures.diagrams import Area, Diagram
from course_lib.wordpiece.fast import FastWordPiece

PARTS = ("static", "contextual")
ROWS: Mapping[Selection, str] = {
    "first": "embeddings",
    "second_to_last": "second to last",
    "last": "last",
    "sum_last_4": "sum of the last four",
    "concat_last_4": "concatenation of the last four",
}


def who_reads_whom(length: int, seeds: Sequence[int] = (0,)) -> Diagram:
    """Draw what a state may read in BERT, GPT and ELMo, as it was measured."""
    return wiring(contexts.connections(contexts.measure(list(seeds), length=length)))


def short(values: Tensor, number: int = 3) -> list[list[str]]:
    """Write the first features of a vector, with two decimals."""
    return [[f"{value:.2f}" for value in values[:number].tolist()]]


def two_vectors(
    model: BertModel,
    tokenizer: FastWordPiece,
    texts: tuple[str, str],
    word: str,
    here: str | None = None,
) -> Diagram:
    """One word in two sentences: its vector at the input and after the last layer."""
    tokens, pairs = [], []
    for text in texts:
        encoding = tokenizer.encode(text)
        place = encoding.tokens.index(word)
        with torch.no_grad():
            states = model(torch.tensor([encoding.ids])).last_hidden_state
            token = model.embeddings.token.weight[encoding.ids[place]]
        pairs.append((token, states[0, place]))
        tokens.append([token for token in encoding.tokens if token[0] != "["])
    same, other = (
        F.cosine_similarity(one, two, dim=0).item()
        for one, two in zip(*pairs, strict=True)
    )
    layers, size = len(model.blocks), model.config.hidden_size
    d = Diagram(
        f"two-vectors-{here or 'all'}",
        268,
        "One word, two sentences, two vectors" + f": {here}" * bool(here),
        f"The word {word} in two sentences: {texts[0]}; and {texts[1]}. At the bottom"
        f" its token embedding, which is the same in both: cosine {same:.2f}. After"
        f" {layers} encoder blocks the two vectors differ: cosine {other:.2f}. The"
        f" first three of {size} features are written out.",
        here,
    )
    above: list[Area] = []
    with d.part(PARTS[0]):
        for x, words, (token, _) in zip((88, 312), tokens, pairs, strict=True):
            wide = 170 / len(words)
            for i, text in enumerate(words):
                weight = "bold" if text == word else "soft"
                d.label(x - 85 + wide * (i + 0.5), 256, text, f"small {weight}")
            mark = x - 85 + wide * (words.index(word) + 0.5)
            vector = d.tensor(x - 66, 204, 1, 3, "n", (44, 22), short(token))
            d.arrow((mark, 247), vector.bottom)
        d.label(200, 180, "static: one vector", "bold small")
        _compare(d, 215, same)
    with d.part(PARTS[1]):
        for x, (_, state) in zip((88, 312), pairs, strict=True):
            box = d.box(x, 112, 160, 44, f"{layers} encoder blocks\nread all words")
            d.arrow((x, 204), box.bottom)
            above.append(d.tensor(x - 66, 54, 1, 3, "r", (44, 22), short(state)))
            d.arrow(box.top, above[-1].bottom)
        d.label(200, 24, "contextual: a vector for each use", "bold small")
        _compare(d, 65, other)
    return d


def _compare(d: Diagram, y: int, cosine: float) -> None:
    for x in (157, 243):
        d.arrow((200, y), (x, y), gap=0)
    d.label(200, y - 11, f"cosine {cosine:.2f}", "small")


def skip_gram_window(
    words: Sequence[str], centre: str, window: int, noise: Sequence[str]
) -> Diagram:
    """The pairs of one centre word within its window, and the noise words of one
    pair."""
    reach = np.full(len(words), window)
    pairs = skip_gram_pairs(np.zeros_like(reach), reach, window)
    at = words.index(centre)
    near = sorted(int(other) for one, other in pairs if one == at)
    d = Diagram(
        "skip-gram-window",
        232,
        f"Skip-gram with a window of {window}",
        f"The sentence {' '.join(words)}. The centre word is {centre}; its neighbours"
        f" within {window} words are {', '.join(words[i] for i in near)}, and each"
        f" makes a true pair. For one of the pairs, {len(noise)} noise words are drawn:"
        f" {', '.join(noise)}.",
    )
    wide = 384 / len(words)
    boxes: list[Area] = []
    left = 8 + wide * near[0]
    d.group(left - 2, 46, wide * (max(*near, at) - near[0] + 1) + 4, 44)
    d.label(392, 36, f"window: {window} words to each side", "small end soft")
    for i, word in enumerate(words):
        role = "q" if i == at else "k" if i in near else "n"
        boxes.append(d.box(8 + wide * (i + 0.5), 54, wide - 12, 28, word, role))
    d.label(boxes[at].top[0], 14, "centre", "bold small")
    d.arrow((boxes[at].top[0], 22), boxes[at].top, role="q")
    d.label(8, 116, "true pairs", "bold small start")
    for row, other in enumerate(near):
        d.label(8, 138 + 22 * row, f"({centre}, {words[other]})", "start")
    target = near[-1]
    d.label(196, 116, f"for ({centre}, {words[target]}):", "bold small start")
    lines = [(words[target], "k", "true: product up")]
    lines += [(word, "n", "noise: product down") for word in noise]
    for row, (word, role, text) in enumerate(lines):
        y = 128 + 34 * row
        d.box(228, y, 64, 24, word, role)
        d.label(268, y + 12, text, "small start")
    return d


def elmo_vector(word: str, output: ELMoOutput, mix: LayerMix) -> Diagram:
    """The three steps that make ELMo's vector of one word: concatenate both directions,
    weight the layers, add them up. `output` has one sequence of one token."""
    with torch.no_grad():
        shares = mix.weights.softmax(dim=0)
        joined = [state[0, 0] for state in output.hidden_states]
        mixed = mix(output.hidden_states)[0, 0]
        scale = mix.scale.item()
    d = Diagram(
        "elmo-vector",
        300,
        f"ELMo's vector of {word}",
        " ".join(
            f"Layer {j}: the states of both directions side by side are"
            f" {', '.join(f'{x:g}' for x in state.tolist())}; weight {share:.2f}."
            for j, (state, share) in enumerate(
                zip(joined, shares.tolist(), strict=True)
            )
        )
        + f" Their weighted sum times {scale:g} is"
        f" {', '.join(f'{x:g}' for x in mixed.tolist())}.",
    )
    cell, high = (38, 22), 58

    def numbers(values: Tensor) -> list[list[str]]:
        return [[f"{value:g}" for value in values.tolist()]]

    areas: list[Area] = []
    d.label(128, 16, "1. concatenate", "bold small")
    d.label(90, 36, "forward", "small")
    d.label(170, 36, "backward", "small")
    d.label(286, 16, "2. weight", "bold small")
    for j, state in enumerate(joined):
        y = 52 + high * (len(joined) - 1 - j)
        half = len(state) // 2
        d.label(4, y + 11, f"layer {j}" if j else "layer 0:\ntoken", "small start")
        start = 130 - cell[0] * half
        d.tensor(start, y, 1, half, "k", cell, numbers(state[:half]))
        areas.append(d.tensor(130, y, 1, half, "v", cell, numbers(state[half:])))
    for j, (area, share) in enumerate(zip(areas, shares.tolist(), strict=True)):
        box = d.box(286, area.y - 3, 116, 28, f"× s_{{{j}}} = {share:.2f}", "w")
        d.arrow(area.right, box.left)
        d.arrow(box.right, "-", (376, 242), head=not j)
    d.label(8, 254, f"3. add, and scale by γ = {scale:g}", "bold small start")
    width = 54 * len(mixed)
    d.tensor(396 - width, 242, 1, len(mixed), "r", (54, 24), numbers(mixed))
    d.label(396 - width / 2, 280, f"the vector of {word}", "small")
    return d


def layer_choice(states: Sequence[Tensor], mix: LayerMix) -> Diagram:
    """What each way to choose among layers makes of the states of one token."""
    with torch.no_grad():
        vectors = {
            name: select_layers(states, how)[0, 0].tolist()
            for how, name in ROWS.items()
        }
        vectors["learned mix, at its start"] = mix(states)[0, 0].tolist()
    top, high = 34, 36
    d = Diagram(
        "layer-choice",
        top + high * len(states) + 6,
        "Which layers make the vector",
        f"The states of one token in {len(states)} layers, the embeddings included. "
        + " ".join(
            f"{name}: {', '.join(f'{x:g}' for x in vector)}."
            for name, vector in vectors.items()
        ),
    )
    d.label(42, 14, "states of a token", "bold small start")
    d.label(206, 14, "its vector", "bold small start")
    areas: list[Area] = []
    for j, state in enumerate(states):
        y = top + high * (len(states) - 1 - j)
        d.label(80, y + 11, f"layer {j}" if j else "embeddings", "small end")
        numbers = [[f"{x:g}" for x in state[0, 0].tolist()]]
        areas.append(d.tensor(86, y, 1, len(numbers[0]), "r", (28, 22), numbers))
    right = areas[-1].right[0] + 6
    d.brace((right, areas[-1].y), (right, areas[-4].y + 22), 14, "last\nfour")
    step = (high * len(states)) / len(vectors)
    for row, (name, vector) in enumerate(reversed(vectors.items())):
        down = top + step * row
        d.label(206, down + 2, name, "small start")
        cells = [[f"{x:g}" for x in vector]]
        d.tensor(206, down + 11, 1, len(vector), "r", (23, 20), cells)
    return d
