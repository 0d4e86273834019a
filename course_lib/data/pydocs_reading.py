"""How well `pydocs` is cleaned: a reader's verdict on each paragraph of a random sample, tied to what was read.

The sample is the 50 paragraphs whose hash, together with a seed, is smallest: as good as drawn by lot, the same on
every machine, and in a corpus that differs little nearly the same paragraphs. A verdict belongs to a paragraph by the
hash of its text. A paragraph that nobody has read has no verdict, so that a changed corpus asks for a new reading.

Samples with the seeds 0 and 1 were read while the rules were written, and each led to a better rule (48 and 45 of 50
were prose, most others noun phrases without a verb). The sample of this seed was read after that, once, and no rule has
changed since.

Chapter: wordpiece
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from datasets import DatasetDict

from course_lib.data.corpus import markdown_table, plain_text

SEED, SIZE, ENOUGH = 2, 50, 48
PROSE, NOT_PROSE, UNREAD = "prose", "not prose", "not read"

# What the corpus was made from that was read.
READ_FROM: dict[str, str] = {
    "python": "3.11.7",
    "numpy": "2.4.6",
    "scipy": "1.17.1",
    "sympy": "1.14.0",
    "networkx": "3.6.1",
    "pandas": "3.1.1",
    "matplotlib": "3.11.2",
    "torch": "2.13.0",
    "pyarrow": "26.0.1",
    "datasets": "5.2.0",
    "huggingface_hub": "2.4.0",
    "mpmath": "1.3.0",
    "sqlalchemy": "2.1.9",
    "pydantic": "2.14.3",
    "fonttools": "4.68.0",
    "pillow": "13.0.0",
    "setuptools": "84.2.1",
    "jinja2": "3.1.6",
    "pygments": "2.21.0",
    "click": "8.5.1",
    "typer": "0.29.2",
    "rich": "15.0.0",
    "fsspec": "2026.9.0",
    "pyparsing": "3.3.3",
    "psutil": "7.2.2",
    "packaging": "26.3",
    "filelock": "4.2.11",
    "portalocker": "4.4.2",
    "anyio": "4.16.0",
    "lxml": "6.1.3",
    "python-dateutil": "4.0.0",
    "cleaning": "0ecf1571f24a1ce1",
}
# The beginning of a paragraph's SHA-256 -> whether the reader found prose: whole sentences, that say something.
VERDICTS: dict[str, bool] = {
    "84bcbcbd5b85dc5c": True,
    "2b9e99252e3c40cc": True,
    "07914a3ccdc085c9": True,
    "4926700e03ae8c45": True,
    "f0845ffdf49f8da0": True,
    "2c098fa62c77a925": True,
    "847223578133c53d": True,
    "6987b6730db725bc": True,
    "6ddf8f01f092b576": True,
    "c55fd390cf9d67d1": True,
    "ef9b5e2a8d7e5713": True,
    "6350ec975e00ccb9": True,
    "efaca885b014fbb7": True,
    "fbfde39132ee6564": True,
    "2995630ff4ae58ab": True,
    "83a8c0920bce22ba": True,
    "a8bab268badca1b5": True,
    "fb2c6b3b7ac34214": True,
    "4ff4254779bd107f": True,
    "6bbae7146538056b": True,
    "129e17b9f88a3b40": True,
    "29d4a0357f8b444d": False,
    "05a7a95f295f63eb": True,
    "16016160ee2762ef": True,
    "f60175b592464abf": True,
    "4855f2cf54145cf2": True,
    "6202bb136ef1415c": True,
    "2953a5bb2ef9ae51": True,
    "36a3e9e3beed2baa": True,
    "44206dcd652a6185": True,
    "648dc715f5484c07": True,
    "9a9894a8da051e04": True,
    "e5cede1928cb477a": True,
    "521fd104b525b3b6": True,
    "9f2a7a439b4cd1d2": True,
    "e32d9214694feadd": True,
    "6348196aee7d80b2": True,
    "008562fa8379fe9e": True,
    "88fc63603075e119": True,
    "59280d2f8fc658eb": True,
    "ad46c996e29dd9bf": True,
    "ec3112cc182462f9": True,
    "d159f45796993ec4": True,
    "bc1c15af36326f9f": True,
    "195e485efb7d6e2b": True,
    "51914485fb77c29d": True,
    "2669ba3926ec2f53": True,
    "c5669583504895c0": True,
    "6fcf61550c3ba3f8": True,
    "685a865da3b42bea": True,
}


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
    rows = [(f"`{reading.document}`", plain_text(reading.paragraph), reading.verdict) for reading in readings]
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
