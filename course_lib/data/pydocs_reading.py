"""How well `pydocs` is cleaned: a reader's verdict on each paragraph of a random sample, tied to what was read.

The sample is the 50 paragraphs whose hash, together with a seed, is smallest: as good as drawn by lot, the same on
every machine, and in a corpus that differs little nearly the same paragraphs. A verdict belongs to a paragraph by the
hash of its text. A paragraph that nobody has read has no verdict, so that a changed corpus asks for a new reading.

The seed was chosen before the sample was looked at, and no rule was changed afterwards.

Chapter: wordpiece
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from datasets import DatasetDict

from course_lib.data.corpus import markdown_table

SEED, SIZE, ENOUGH = 1, 50, 48
PROSE, NOT_PROSE, UNREAD = "prose", "not prose", "not read"

# What the corpus was made from that was read.
READ_FROM: dict[str, str] = {}
# The beginning of a paragraph's SHA-256 -> whether the reader found prose: whole sentences, that say something.
VERDICTS: dict[str, bool] = {}


class Reading(NamedTuple):
    """A sampled paragraph, where it stands, and what the reader found."""

    document: str
    paragraph: str
    verdict: str


def sample(data: DatasetDict, size: int = SIZE, seed: int = SEED) -> list[Reading]:
    """Return the sampled paragraphs with their verdicts.

    Parameters
    ----------
    data
        The splits of the corpus.
    size
        Number of paragraphs.
    seed
        Another seed draws another sample.

    Returns
    -------
    list
        Paragraphs from all splits, with "prose", "not prose" or "not read".

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> from datasets import Dataset
    >>> rows = Dataset.from_dict({"document": ["a", "b"], "paragraphs": [["One.", "Two."], ["Three."]]})
    >>> len(sample(DatasetDict(test=rows), size=2))
    2
    """
    drawn = sorted(
        (hashlib.sha256(f"{seed} {paragraph}".encode()).hexdigest(), document, paragraph)
        for rows in data.values()
        for document, paragraphs in zip(rows["document"], rows["paragraphs"], strict=True)
        for paragraph in paragraphs
    )[:size]
    return [Reading(document, paragraph, verdict(paragraph)) for _, document, paragraph in drawn]


def verdict(paragraph: str) -> str:
    """Return what the reader found in a paragraph.

    Parameters
    ----------
    paragraph
        Its text.

    Returns
    -------
    str
        "prose", "not prose" or "not read".

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> verdict("A sentence that is in no documentation.")
    'not read'
    """
    found = VERDICTS.get(hashlib.sha256(paragraph.encode()).hexdigest()[:16])
    return UNREAD if found is None else PROSE if found else NOT_PROSE


def differences(made_from: Mapping[str, str]) -> str:
    """Say how a corpus differs, in what it is made from, from the one that was read.

    Parameters
    ----------
    made_from
        Versions, as :func:`course_lib.data.pydocs.fingerprint` gives them.

    Returns
    -------
    str
        For instance "torch 2.9.0 instead of 2.13.0"; empty where there is no difference.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> differences({**READ_FROM, "torch": "2.9.0"})
    'torch 2.9.0 instead of ...'
    """
    return ", ".join(
        f"{name} {made_from.get(name, 'missing')} instead of {version}"
        for name, version in READ_FROM.items()
        if made_from.get(name) != version
    )


def reading_card(data: DatasetDict, made_from: Mapping[str, str]) -> str:
    """Return the part of the data card that says what the corpus is made from and what a reader found in it.

    Parameters
    ----------
    data
        The splits of the corpus.
    made_from
        Versions, as :func:`course_lib.data.pydocs.fingerprint` gives them.

    Returns
    -------
    str
        Markdown: versions, the count of verdicts, and the sample.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> from datasets import Dataset
    >>> rows = Dataset.from_dict({"document": ["a"], "paragraphs": [["One."]]})
    >>> print(reading_card(DatasetDict(test=rows), {"numpy": "2.4.6"}).splitlines()[0])
    ### Made from
    """
    readings = sample(data)
    counts = {found: sum(reading.verdict == found for reading in readings) for found in (PROSE, NOT_PROSE, UNREAD)}
    found = ", ".join(f"{count} {name}" for name, count in counts.items())
    other = differences(made_from)
    rows = [(f"`{reading.document}`", reading.paragraph, reading.verdict) for reading in readings]
    return "\n\n".join(
        (
            "### Made from",
            markdown_table(("package", "version"), [(f"`{name}`", version) for name, version in made_from.items()]),
            f"The corpus that was read differs: {other}." if other else "This is the corpus that was read.",
            "### What a reader finds",
            f"A random sample of {len(readings)} paragraphs, each read for whether it is prose, whole sentences "
            f"in English that say something: {found}. A paragraph that changed since counts as not read.",
            markdown_table(("document", "paragraph", "verdict"), rows),
        )
    )
