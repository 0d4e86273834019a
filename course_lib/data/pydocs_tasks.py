"""Labelled tasks derived from `pydocs`: what they share, and :func:`load`.

Each task turns documentation into questions whose answers its authors wrote down: a
paragraph and its library, a summary and its description, a parameter and its type. A
row is in the split of its module, as in `pydocs` itself: what a model was pre-trained
on is never in the test split of a task. Of rows that say nearly the same, one is kept,
first of all in the test split, so that no text of it is in training.

Chapter: fine-tuning
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

from datasets import Dataset, Features, Value

from course_lib._files import digest_of_code
from course_lib.data import near_duplicates, pydocs, pydocs_extract, pydocs_prose
from course_lib.data.arrow_cache import cached

Row = Mapping[str, Any]
Item = TypeVar("Item")
HELD_OUT_FIRST = ("test", "validation", "train")
DOCSTRINGS = Features(
    {name: Value("string") for name in ("package", "module", "owner", "text")}
)


def drawn(rows: Iterable[Item], key: Callable[[Item], str]) -> list[Item]:
    """Return rows in an order as good as drawn by lot, the same on every machine.

    Parameters
    ----------
    rows
        Anything.
    key
        What tells a row from others.

    Returns
    -------
    list
        All rows, sorted by a hash of their keys.

    Notes
    -----
    Chapter: fine-tuning

    Examples
    --------
    >>> drawn(["one", "two", "three"], str)
    ['two', 'one', 'three']
    """
    return sorted(rows, key=lambda row: hashlib.sha256(key(row).encode()).digest())


def lot(text: str, size: int) -> int:
    """Return a number that a text draws.

    Parameters
    ----------
    text
        Another text draws another number.
    size
        How many numbers there are.

    Returns
    -------
    int
        0 to size - 1.

    Notes
    -----
    Chapter: fine-tuning

    Examples
    --------
    >>> [lot(text, 7) for text in ("a", "b", "c")]
    [4, 0, 3]
    """
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % size


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry meaning.

    Parameters
    ----------
    text
        Plain text.

    Returns
    -------
    frozenset
        Its words in lower case, without those that English needs to make a sentence of
        others.

    Notes
    -----
    Chapter: fine-tuning

    Examples
    --------
    >>> sorted(content_words("The mean of the samples is the mean."))
    ['mean', 'samples']
    """
    return frozenset(re.findall(r"\w+", text.lower())) - pydocs_prose.FUNCTION_WORDS


def distinct(
    rows: Mapping[str, Sequence[Row]],
    text: Callable[[Row], str],
    threshold: float = pydocs.THRESHOLD,
) -> dict[str, list[Row]]:
    """Keep of rows that say nearly the same the first, looking at test before
    validation before training.

    Parameters
    ----------
    rows
        The rows of each split.
    text
        What is compared.
    threshold
        Jaccard index of runs of three words from which two texts are nearly the same.

    Returns
    -------
    dict
        The rows that are left.

    Notes
    -----
    Chapter: fine-tuning

    Examples
    --------
    >>> rows = {
    ...     "train": [{"text": "a b c d"}, {"text": "e f g"}],
    ...     "validation": [],
    ...     "test": [{"text": "a b c d"}],
    ... }
    >>> distinct(rows, lambda row: row["text"])["train"]
    [{'text': 'e f g'}]
    """
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
    """Keep the first rows of each value of a column.

    Parameters
    ----------
    rows
        In their order.
    column
        Its name.
    count
        How many rows may have the same value in it.

    Returns
    -------
    list
        The rows kept, in their order.

    Notes
    -----
    Chapter: fine-tuning

    Examples
    --------
    >>> [
    ...     row["n"]
    ...     for row in at_most(
    ...         [{"m": "a", "n": 1}, {"m": "a", "n": 2}, {"m": "b", "n": 3}], "m", 1
    ...     )
    ... ]
    [1, 3]
    """
    seen: Counter[str] = Counter()
    kept = []
    for row in rows:
        seen[row[column]] += 1
        if seen[row[column]] <= count:
            kept.append(row)
    return kept


def docstrings() -> Dataset:
    """Return every docstring of the packages of `pydocs` as its author wrote it, from
    the cache where it is there.

    Returns
    -------
    Dataset
        With the columns of DOCSTRINGS, in the order of packages, modules and source.

    Notes
    -----
    Chapter: fine-tuning

    Examples
    --------
    >>> docstrings().column_names
    ['package', 'module', 'owner', 'text']
    """
    made_from = {**pydocs.fingerprint(), **_code(pydocs_extract)}
    return cached("pydocs-docstrings", made_from, DOCSTRINGS, _read_docstrings)["all"]


def _read_docstrings() -> dict[str, list[Row]]:
    return {
        "all": [
            {
                "package": package,
                "module": part.module,
                "owner": part.owner,
                "text": part.text,
            }
            for package in pydocs.PACKAGES
            for part in pydocs_extract.docstrings(package)
        ]
    }


def load(
    name: str,
    features: Features,
    make: Callable[[], Mapping[str, Sequence[Row]]],
    *modules: ModuleType,
) -> dict[str, Dataset]:
    """Return a task from the cache, or make it: at most a minute of CPU time, once for
    each set of versions.

    Parameters
    ----------
    name
        Of the task.
    features
        Columns and types.
    make
        Makes the rows of every split.
    *modules
        Whose code decides what the rows are; if it changes, they are made anew.

    Returns
    -------
    dict
        The splits.

    Notes
    -----
    Chapter: fine-tuning

    Examples
    --------
    >>> features = Features({"n": Value("int64")})
    >>> load("doctest", features, lambda: {"test": [{"n": 3}]})["test"]["n"][:]
    [3]
    """
    return cached(name, {**pydocs.fingerprint(), **_code(*modules)}, features, make)


def _code(*modules: ModuleType) -> dict[str, str]:
    files = [__file__, *(str(module.__file__) for module in modules)]
    return {"tasks": digest_of_code(files, imports=False)[:16]}
