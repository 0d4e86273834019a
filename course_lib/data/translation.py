"""English-French sentence pairs with gold word alignments, generated; the grammar is in
:mod:`course_lib.data.grammar`.

Chapter: seq2seq-attention
"""

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
    """Generate n different sentence pairs whose English lengths are spread evenly.

    Parameters
    ----------
    n
        Number of pairs.
    seed
        The same seed gives the same pairs, in the same order, on every machine.
    min_length, max_length
        Lengths of the English sentence in words, both included.
    exclude
        English sentences that must not appear (those of another split).

    Returns
    -------
    list
        n pairs in random order; every length in the range appears n / (number of
        lengths) times, rounded up or down.

    Raises
    ------
    ValueError
        If the range of lengths is empty or outside 3 to 60, n is negative, or the
        grammar holds fewer than n different sentences of these lengths.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> pair = generate(1, seed=5, min_length=4, max_length=4)[0]
    >>> len(pair["en"].split())
    4
    """
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
