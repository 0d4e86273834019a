"""From a trained translator to scores: translate, compare with the references, all
together and by length.

Chapters 1 and 3.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import torch

from course_lab.ch01_seq2seq.text import BOS, EOS, Pair, collate
from course_lib.metrics.scores import bleu, exact_match
from course_lib.seq2seq.batched_search import beam_search_batch
from course_lib.seq2seq.model import Seq2Seq
from course_lib.seq2seq.search import Hypothesis, greedy
from course_lib.training.loop import device
from course_lib.transformer.model import Transformer

Translator: TypeAlias = Seq2Seq | Transformer
"""Both score a known target (`forward`) and write an unknown one word by word (`start`,
`step`)."""


def sorted_chunks(
    pairs: Sequence[Pair], size: int
) -> Iterator[tuple[list[int], list[Pair]]]:
    """Yield the pairs with their places, sorted by length so that little is padding."""
    order = sorted(range(len(pairs)), key=lambda place: len(pairs[place].source))
    for start in range(0, len(order), size):
        places = order[start : start + size]
        yield places, [pairs[place] for place in places]


@torch.no_grad()
def translate(
    model: Translator,
    pairs: Sequence[Pair],
    beam_size: int = 1,
    length_penalty: float = 0.6,
    max_length: int = 80,
) -> list[Hypothesis]:
    """Translate the source side of each pair: greedily if `beam_size` is 1, else with
    beam search."""
    model.eval()
    found: dict[int, Hypothesis] = {}
    for places, chunk in sorted_chunks(pairs, 256 // beam_size + 1):
        batch = collate(chunk)
        state = model.start(
            batch["source_ids"].to(device()), batch["source_lengths"].to(device())
        )
        if beam_size == 1:
            best = greedy(model.step, state, len(chunk), BOS, EOS, max_length)
        else:
            beams = beam_search_batch(
                model.step,
                state,
                len(chunk),
                BOS,
                EOS,
                max_length,
                beam_size,
                length_penalty,
            )
            best = [beam[0] for beam in beams]
        found.update(zip(places, best, strict=True))
    return [found[place] for place in range(len(pairs))]


def quality(texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Score translations three ways."""
    lower_texts, lower_references = (
        [text.lower() for text in side] for side in (texts, references)
    )
    return {
        "bleu": bleu(texts, references),
        "bleu_lowercase": bleu(lower_texts, lower_references, tokenize="intl"),
        "exact_match": exact_match(texts, references),
    }


def quality_by_length(
    texts: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str],
    edges: Sequence[int],
) -> list[dict[str, int | float]]:
    """Score translations apart for each group of source lengths."""
    lengths = [len(sentence.split()) for sentence in sources]
    rows: list[dict[str, int | float]] = []
    lower = 0
    for upper in edges:
        places = [
            place for place, length in enumerate(lengths) if lower < length <= upper
        ]
        if places:
            scores = quality(
                [texts[place] for place in places],
                [references[place] for place in places],
            )
            rows.append({"longest": upper, "pairs": len(places), **scores})
        lower = upper
    return rows
