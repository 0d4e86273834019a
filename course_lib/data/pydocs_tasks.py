"""Labelled tasks derived from `pydocs`: what they share, and :func:`load`.

Each task turns documentation into questions whose answers its authors wrote down: a
paragraph and its library, a summary and its description, a parameter and its type. A
row is in the split of its module, as in `pydocs` itself: what a model was pre-trained
on is never in the test split of a task. Of rows that say nearly the same, one is kept,
first of all in the test split, so that no text of it is in training.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

from datasets import Dataset, Features

from course_lib.data import near_duplicates, pydocs, pydocs_prose
from course_lib.data.arrow_cache import cached
from course_lib.files import digest_of_code

Row = Mapping[str, Any]
Item = TypeVar("Item")
HELD_OUT_FIRST = ("test", "validation", "train")


def drawn(rows: Iterable[Item], key: Callable[[Item], str]) -> list[Item]:
    """Return rows in an order as good as drawn by lot, the same on every machine."""
    return sorted(rows, key=lambda row: hashlib.sha256(key(row).encode()).digest())


def lot(text: str, size: int) -> int:
    """Return a number that a text draws."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % size


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry meaning."""
    return frozenset(re.findall(r"\w+", text.lower())) - pydocs_prose.FUNCTION_WORDS


def distinct(
    rows: Mapping[str, Sequence[Row]],
    text: Callable[[Row], str],
    threshold: float = pydocs.THRESHOLD,
) -> dict[str, list[Row]]:
    """Keep of rows that say nearly the same the first, looking at test before
    validation before training."""
    flat = [(split, row) for split in HELD_OUT_FIRST for row in rows[split]]
    keep = near_duplicates.first_of_its_kind(
        [text(row) for _, row in flat], threshold, pydocs.SHINGLE
    )
    left: dict[str, list[Row]] = {split: [] for split in pydocs.SPLITS}
    for (split, row), kept in zip(flat, keep, strict=True):
        if kept:
            left[split].append(row)
    return left


def at_most(rows: Iterable[Row], column: str, count: int) -> list[Row]:
    """Keep the first rows of each value of a column."""
    seen: Counter[str] = Counter()
    kept = []
    for row in rows:
        seen[row[column]] += 1
        if seen[row[column]] <= count:
            kept.append(row)
    return kept


def chosen(
    rows: Mapping[str, Sequence[Row]],
    key: Callable[[Row], str],
    most: Mapping[str, int],
    column: str | None = None,
    of_one: int = 0,
) -> dict[str, list[Row]]:
    """Draw so many rows of each split, and so many of each value of a column."""
    drawn_ones = {split: drawn(rows[split], key) for split in pydocs.SPLITS}
    return {
        split: (own if column is None else at_most(own, column, of_one))[: most[split]]
        for split, own in drawn_ones.items()
    }


def load(
    name: str,
    features: Features,
    make: Callable[[], Mapping[str, Sequence[Row]]],
    *modules: ModuleType,
) -> dict[str, Dataset]:
    """Return a task from the cache, or make it: at most a minute of CPU time, once for
    each set of versions."""
    return cached(name, {**pydocs.fingerprint(), **_code(*modules)}, features, make)


def _code(*modules: ModuleType) -> dict[str, str]:
    files = [__file__, *(str(module.__file__) for module in modules)]
    return {"tasks": digest_of_code(files, imports=False)[:16]}
