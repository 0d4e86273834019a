"""The diagrams of chapter 1's searches: a beam as a tree, and ways to draw a word.
Their numbers are those of the library's own functions."""

import math

import torch
from torch import Tensor

from course_lib.figures.diagrams import Area, Diagram
from course_lib.figures.explorer import Explorer
from course_lib.figures.stepper import Step, stepped_figure
from course_lib.seq2seq.search import Hypothesis, extensions

#: The probability of the next word after a word, for the beam that is worked by hand.
NEXT = {
    "<bos>": {"la": 0.5, "le": 0.4, "les": 0.1},
    "la": {"chatte": 0.4, "souris": 0.3, "chat": 0.3},
    "le": {"chat": 0.9, "chien": 0.1},
    "les": {"chats": 1.0},
    "chat": {"dort": 0.9, "<eos>": 0.1},
    "chatte": {"dort": 0.9, "<eos>": 0.1},
    "chien": {"dort": 0.9, "<eos>": 0.1},
    "souris": {"dort": 0.9, "<eos>": 0.1},
    "chats": {"<eos>": 1.0},
    "dort": {"<eos>": 1.0},
}
WORDS = [*NEXT, "<eos>"]


def next_words(state: None, last: Tensor) -> tuple[Tensor, None]:
    """The step function of the beam that is worked by hand."""
    rows = [[NEXT.get(WORDS[i], {}).get(word, 0.0) for word in WORDS] for i in last]
    return torch.tensor(rows).log(), state


def beam_rounds(size: int = 2) -> list[list[tuple[Hypothesis, bool]]]:
    """The hypotheses of each round of the beam that is worked by hand, best first, and
    whether they were kept."""
    live, rounds = [Hypothesis([], 0.0, False, 0.0)], []
    while live:
        last = torch.tensor([(h.tokens or [WORDS.index("<bos>")])[-1] for h in live])
        scored, eos = next_words(None, last)[0], WORDS.index("<eos>")
        longer = [
            Hypothesis([*live[i].tokens, word], p, word == eos, p)
            for i, word, p in extensions(live, scored, len(live) * len(WORDS))
        ]
        rounds.append([(h, n < size) for n, h in enumerate(longer)])
        live = [h for h in longer[:size] if not h.finished]
    return rounds


def beam() -> Explorer:
    """A beam of two as a tree that grows by a word a step."""
    rounds = beam_rounds()
    texts = (
        "Three words can begin the sentence. The beam keeps the two best; les is"
        " dropped, and with it every sentence that begins with les.",
        "Each of the two is extended by every word. Le was only second, but le chat is"
        " now the best hypothesis: 0.4 times 0.9.",
        "Both continue with dort. Ending here instead has a probability of only 0.1.",
        "Both hypotheses predict <eos> and are finished. Greedy decoding would have"
        " returned la chatte dort, which is less probable.",
    )
    steps = [
        Step(f"Word {n}", text=text, diagram=_tree(rounds[:n]))
        for n, text in enumerate(texts, 1)
    ]
    return stepped_figure(steps, "Beam search with a beam of 2")


def _tree(rounds: list[list[tuple[Hypothesis, bool]]]) -> Diagram:
    kept = [h for h, keep in rounds[-1] if keep]
    said = ", ".join(f"{_text(h)} ({math.exp(h.log_prob):.3g})" for h in kept)
    d = Diagram(
        f"beam-{len(rounds)}",
        278,
        f"A beam of 2 after word {len(rounds)}",
        f"A tree that grows to the right. Kept after word {len(rounds)}: {said}. What"
        " was dropped is joined by dashed lines.",
    )
    root = d.box(30, 120, 50, 36, "<bos>")
    places: dict[tuple[int, ...], Area] = {(): root}
    for level, hypotheses in enumerate(rounds, 1):
        # in the order of the table, so that no two lines cross
        in_order = sorted(hypotheses, key=lambda pair: pair[0].tokens)
        gap = 262 / len(in_order)
        for n, (h, keep) in enumerate(in_order):
            x, y = 32 + 84 * level, 8 + gap * (n + 0.5) - 18
            word = WORDS[h.tokens[-1]]
            text = f"{word}\n{math.exp(h.log_prob):.3g}"
            box = d.box(x, y, 60, 36, text, "w" if keep else "n")
            parent = places[tuple(h.tokens[:-1])]
            d.arrow(parent.right, box.left, role="w" * keep, dash=not keep)
            places[tuple(h.tokens)] = box
    return d


def _text(hypothesis: Hypothesis) -> str:
    return " ".join(WORDS[token] for token in hypothesis.tokens)


def ways_to_draw() -> Diagram:
    """One distribution, and what temperature, top-k and top-p make of it."""
    words = ["dort", "mange", "rit", "chante", "zone"]
    p = torch.tensor([0.45, 0.25, 0.15, 0.1, 0.05])
    sharper = (p.log() / 0.5).softmax(0)
    top = torch.where(torch.arange(5) < 2, p, 0.0)
    nucleus = torch.where(p.cumsum(0) - p < 0.8, p, 0.0)
    columns = {
        "the model": p,
        "temperature\nτ = 0.5": sharper,
        "top-k\nk = 2": top / top.sum(),
        "top-p\np = 0.8": nucleus / nucleus.sum(),
    }
    told = "; ".join(
        f"{' '.join(name.split())}: {', '.join(f'{v:.2f}' for v in values)}"
        for name, values in columns.items()
    )
    d = Diagram(
        "ways-to-draw",
        212,
        "Temperature, top-k and top-p",
        f"Probabilities of {', '.join(words)} after le chat. {told}.",
    )
    for n, word in enumerate(words):
        d.label(2, 64 + 32 * n, word, "small start")
    for x, (name, values) in zip((56, 140, 236, 320), columns.items(), strict=True):
        d.label(x, 22, name, "small bold start")
        for n, value in enumerate(values.tolist()):
            y = 56 + 32 * n
            if value:
                d.bar(x, y, 50 * value, "w")
            text = f"{value:.2f}" if value else "0"
            d.label(x + 50 * value + 5, y + 8, text, "small start")
    return d
