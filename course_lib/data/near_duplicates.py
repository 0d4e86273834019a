"""Texts that say nearly the same, found exactly: every pair whose shared runs of words
reach a threshold.

Two texts are compared as sets of their runs of n words ("shingles", Broder 1997) by the
Jaccard index, the share of all their runs that both have. MinHash estimates that index;
here it is computed. What makes it fast is the prefix filter (Chaudhuri, Ganti and
Kaushik 2006; Bayardo, Ma and Srikant 2007): sort each set from its rarest run to its
most common one; two sets of at least threshold t in common share a run among the first
|x| - ceil(t|x|) + 1 of either.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

_WORDS = re.compile(r"\w+")


def shingles(text: str, n: int) -> frozenset[str]:
    """Return the runs of n words in a text, in lower case; of a shorter text, the
    whole."""
    words = _WORDS.findall(text.lower())
    return frozenset(
        " ".join(words[i : i + n]) for i in range(max(1, len(words) - n + 1))
    )


def first_of_its_kind(texts: Sequence[str], threshold: float, n: int) -> list[bool]:
    """Say of each text whether no kept text before it is nearly the same."""
    if not 0 < threshold <= 1:
        raise ValueError(
            f"threshold is {threshold}; give a share above 0 and at most 1, e.g. 0.7"
        )
    sets = [shingles(text, n) for text in texts]
    rare_first = _rarest_first(sets)
    kept: list[bool] = []
    holders: dict[
        str, list[int]
    ] = {}  # a shingle -> the kept texts that have it in their prefix
    for i, ordered in enumerate(rare_first):
        prefix = ordered[: len(ordered) - math.ceil(threshold * len(ordered)) + 1]
        candidates = {j for shingle in prefix for j in holders.get(shingle, ())}
        kept.append(not any(_alike(sets[i], sets[j], threshold) for j in candidates))
        if kept[-1]:
            for shingle in prefix:
                holders.setdefault(shingle, []).append(i)
    return kept


def _rarest_first(sets: Iterable[frozenset[str]]) -> list[list[str]]:
    sets = list(sets)
    frequency = Counter(shingle for shingles in sets for shingle in shingles)
    return [
        sorted(shingles, key=lambda shingle: (frequency[shingle], shingle))
        for shingles in sets
    ]


def _alike(a: frozenset[str], b: frozenset[str], threshold: float) -> bool:
    if min(len(a), len(b)) < threshold * max(len(a), len(b)):
        return False
    shared = len(a & b)
    return shared >= threshold * (len(a) + len(b) - shared)
