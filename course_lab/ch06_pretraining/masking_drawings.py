"""Chapter 6's diagrams of masking: what becomes of tokens on average, and of one
sequence draw by draw. They show what `mask_tokens` draws and returns.
"""

from collections.abc import Mapping, Sequence

import torch

from course_lab.ch06_pretraining.drawings import token_row
from course_lib.figures.diagrams import Diagram
from course_lib.figures.stepper import Step
from course_lib.pretraining.masking import IGNORE, MaskingConfig, VocabIds, mask_tokens
from course_lib.wordpiece.tokenizer import Encoding


def two_hundred_tokens(config: MaskingConfig | None = None) -> Diagram:
    """What becomes of 200 tokens on average, one cell for each."""
    config, number = config or MaskingConfig(), 200
    chosen = round(config.rate * number)
    masked, replaced = (
        round(share * chosen) for share in (config.mask_share, config.random_share)
    )
    fates = "M" * masked + "R" * replaced + "=" * (chosen - masked - replaced)
    d = Diagram(
        "two-hundred-tokens",
        246,
        f"What becomes of {number} tokens",
        f"Of {number} tokens {chosen} are chosen on average: {masked} become [MASK],"
        f" {replaced} a random token and {chosen - masked - replaced} stay as they are."
        f" The other {number - chosen} give no loss.",
    )
    step = number // chosen  # spread them evenly
    for i in range(number):
        place = i // step if i % step == 0 and i // step < chosen else None
        # One of each ten in turn, so that the rare fates do not sit together.
        fate = "" if place is None else (fates[place * 7 % chosen])
        area = d.tensor(
            10 + 19 * (i % 20), 8 + 17 * (i // 20), 1, 1, "w" if fate else "n", (19, 17)
        )
        if fate:
            d.label(*area.at(0.5, 0.5), fate, "small bold")
    for y, text in (
        (194, f"M: {masked} become [MASK]"),
        (212, f"R: {replaced} become a random token"),
        (230, f"=: {chosen - masked - replaced} stay as they are"),
    ):
        d.label(60, y, text, "small start")
    d.label(390, 194, f"{chosen} of {number} chosen", "small end")
    d.label(390, 212, f"{number - chosen} without a loss", "small end")
    return d


def masking_steps(
    encoding: Encoding, vocab: Mapping[str, int], seed: int
) -> list[Step]:
    """Masking of one sequence with the paper's settings, one draw after the other."""
    ids, tokens = torch.tensor([encoding.ids]), encoding.tokens
    names, of_vocab = {i: token for token, i in vocab.items()}, VocabIds.of(vocab)
    config, special = MaskingConfig(), of_vocab.is_special[ids]
    # What `mask_tokens` draws first: a number to choose, and one for the fate.
    drawn = torch.rand(
        2, *ids.shape, generator=torch.Generator().manual_seed(seed)
    ).tolist()
    choice, fates = drawn[0][0], drawn[1][0]
    masked, labels = mask_tokens(
        ids, special, torch.Generator().manual_seed(seed), of_vocab, config
    )
    read = [names[i] for i in masked[0].tolist()]
    chosen = (labels[0] != IGNORE).tolist()
    edge = config.mask_share + config.random_share
    kinds = [
        "[MASK]" if fate < config.mask_share else "random" if fate < edge else "stays"
        for fate in fates
    ]
    nothing = [""] * len(tokens)
    numbers = [
        "" if known else f"{draw:.2f}"
        for known, draw in zip(special[0].tolist(), choice, strict=True)
    ]
    told = [
        f"{fate:.2f}: {kind}" if mark else ""
        for fate, kind, mark in zip(fates, kinds, chosen, strict=True)
    ]
    answers = [
        token if mark else "" for token, mark in zip(tokens, chosen, strict=True)
    ]
    number = sum(chosen)
    return [
        Step(
            "1. The sequence",
            (),
            "A text with its special tokens, which are never chosen.",
            _sequence("start", tokens, nothing, [False] * len(tokens)),
        ),
        Step(
            "2. Choose positions",
            (),
            "Each other position draws a number from 0 to 1. Those below"
            f" {config.rate:g} are chosen, here {number}.",
            _sequence("choose", tokens, numbers, chosen),
        ),
        Step(
            "3. Decide what becomes of them",
            (),
            "Each chosen position draws a second number. Below"
            f" {config.mask_share:g} the token becomes [MASK], from there to {edge:g} a"
            " random token, and above that it stays.",
            _sequence("fates", tokens, told, chosen),
        ),
        Step(
            "4. Input and labels",
            (),
            "Above is what the model reads, and below are the labels. Positions without"
            f" a label have the value {IGNORE}, which the loss ignores.",
            _sequence("labels", read, answers, chosen),
        ),
    ]


def _sequence(
    name: str, tokens: Sequence[str], below: Sequence[str], marked: Sequence[bool]
) -> Diagram:
    """A sequence in two lines, with a note below each token."""
    half = -(-len(tokens) // 2)
    d = Diagram(
        f"masking-{name}",
        140,
        f"Masking: {name}",
        "; ".join(
            f"{token}{' ' + note if note else ''}{', chosen' if mark else ''}"
            for token, note, mark in zip(tokens, below, marked, strict=True)
        ),
    )
    for begin in (0, half):
        part = slice(begin, begin + half)
        y = 14 if begin == 0 else 82
        areas = token_row(d, y, tokens[part], marked[part], 56)
        for area, note in zip(areas, below[part], strict=True):
            for line, text in enumerate(note.split(": ")):
                place = area.bottom[0], area.bottom[1] + 13 + 14 * line
                d.label(*place, text, "small")
    return d
