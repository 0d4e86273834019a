"""Find submissions that are too alike, by fingerprints of their tokens.

Winnowing (Schleimer, Wilkerson and Aiken 2003, "Winnowing: local algorithms for
document fingerprinting", section 3): all runs of RUN tokens are hashed, and of each
WINDOW hashes in a row the least is kept. So two texts that share RUN + WINDOW - 1
tokens in a row share a fingerprint, wherever it stands. Names that a student chooses
count as one and the same; names that follow a dot, keywords and builtins stay, since
they tell one way of solving from another.

What is found is a reason to look, and no proof: short answers to the same question are
alike by themselves.
"""

import builtins
import hashlib
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

RUN, WINDOW = 12, 6
LEAST_SHARE, LEAST_COMMON = 0.7, 8
#: A fingerprint that more than this share of the class has is the common way of doing
#: it.
COMMON_WAY = 1 / 2
TOKEN = re.compile(  # a comment, a text in one of four ways, a name, a number, a sign
    r"#[^\n]*|\"\"\".*?\"\"\"|'''.*?'''|\"[^\"\n]*\"|'[^'\n]*'|\.?[^\W\d]\w*|\d[\w.]*|[^\s\w]",
    re.DOTALL,
)
KEPT = frozenset(keyword.kwlist) | frozenset(dir(builtins))


@dataclass(frozen=True)
class Alike:
    """Two submissions, and the fingerprints of the shorter one in both."""

    one: str
    other: str
    common: int
    share: float


def tokens(source: str) -> list[str]:
    """Cut code into tokens; chosen names, numbers and texts are nameless."""
    return [_kind(token) for token in TOKEN.findall(source) if token[0] != "#"]


def _kind(token: str) -> str:
    if token[0] in "\"'":
        return "s"
    if token[0].isdigit():
        return "0"
    chosen = token not in KEPT and (token[0].isalpha() or token[0] == "_")
    return "n" if chosen else token


def fingerprints(sources: Iterable[str]) -> frozenset[int]:
    """Return the fingerprints of some cells, each taken by itself."""
    found: set[int] = set()
    for source in sources:
        cut = tokens(source)
        runs = [" ".join(cut[n : n + RUN]) for n in range(len(cut) - RUN + 1)]
        hashes = [_hash(run) for run in runs]
        starts = range(max(len(hashes) - WINDOW + 1, bool(hashes)))
        found.update(min(hashes[start : start + WINDOW]) for start in starts)
    return frozenset(found)


def _hash(run: str) -> int:
    return int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest())


def alike(
    submissions: Mapping[str, frozenset[int]], given: frozenset[int]
) -> list[Alike]:
    """Name the pairs that share most of what is their own."""
    having = Counter(mark for marks in submissions.values() for mark in marks)
    many = max(2, COMMON_WAY * len(submissions))
    usual = {mark for mark, count in having.items() if count > many}
    own = {student: marks - given - usual for student, marks in submissions.items()}
    pairs = []
    for (one, first), (other, second) in combinations(sorted(own.items()), 2):
        common, least = len(first & second), min(len(first), len(second))
        if common >= LEAST_COMMON and common >= LEAST_SHARE * least:
            pairs.append(Alike(one, other, common, common / least))
    return sorted(pairs, key=lambda p: (-p.share, -p.common, p.one, p.other))
