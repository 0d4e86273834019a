"""English-French sentence pairs with gold word alignments, generated; the grammar is in
:mod:`course_lib.data.grammar`."""

import random
from collections.abc import Collection
from typing import TypedDict

from course_lib.data.grammar import Grammar, Phrase

SHORTEST, LONGEST = 3, 60


class Pair(TypedDict):
    """One row: both sentences, words separated by one space, and [English position,
    French position] links."""

    en: str
    fr: str
    alignment: list[list[int]]


def generate(
    n: int,
    seed: int,
    min_length: int = SHORTEST,
    max_length: int = LONGEST,
    exclude: Collection[str] = frozenset(),
) -> list[Pair]:
    """Generate n different sentence pairs whose English lengths are spread evenly."""
    if n < 0:
        raise ValueError(f"n is {n}; ask for 0 or more sentence pairs")
    if not SHORTEST <= min_length <= max_length <= LONGEST:
        raise ValueError(
            f"min_length={min_length}, max_length={max_length}: the grammar makes"
            f" sentences of {SHORTEST} to {LONGEST} English words; choose {SHORTEST} <="
            f" min_length <= max_length <= {LONGEST}"
        )
    rng = random.Random(seed)
    span = max_length - min_length + 1
    lengths = [min_length + i % span for i in range(n)]
    rng.shuffle(lengths)
    grammar = Grammar(rng)
    seen = set(exclude)
    pairs: list[Pair] = []
    for length in lengths:
        for _attempt in range(1000):
            pair = _finish(grammar.sentence(length))
            if pair["en"] not in seen:
                break
        else:
            raise ValueError(
                f"1,000 attempts gave no new sentence of {length} English words after"
                f" {len(pairs)} of {n} pairs; ask for fewer pairs or raise max_length"
                f" (now {max_length})"
            )
        seen.add(pair["en"])
        pairs.append(pair)
    return pairs


def _finish(phrase: Phrase) -> Pair:
    position = {id(word): s for s, word in enumerate(phrase.en)}
    return Pair(
        en=" ".join(word.text for word in phrase.en),
        fr=" ".join(text for text, _ in phrase.fr),
        alignment=[
            [position[id(word)], t]
            for t, (_, words) in enumerate(phrase.fr)
            for word in words
        ],
    )
