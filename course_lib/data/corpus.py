"""The form of a corpus with document boundaries: one row a document, the same columns
for every corpus.

Chapter: wordpiece
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TypedDict

from datasets import DatasetDict, Features, List, Value

FEATURES = Features(
    {
        "document": Value("string"),
        "package": Value("string"),
        "module": Value("string"),
        "title": Value("string"),
        "paragraphs": List(Value("string")),
    }
)


class Row(TypedDict):
    """A document: see FEATURES."""

    document: str
    package: str
    module: str
    title: str
    paragraphs: list[str]


def column_notes(
    package: str, module: str, title: str, paragraphs: str
) -> Mapping[str, str]:
    """Return what the columns hold in one corpus, for its data card.

    Parameters
    ----------
    package, module, title, paragraphs
        What a data card says about these columns.

    Returns
    -------
    Mapping
        A note for each column of FEATURES.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> list(column_notes("a", "b", "c", "d")) == list(FEATURES)
    True
    """
    return {
        "document": "name of the document, different for each row of the data set",
        "package": package,
        "module": module,
        "title": title,
        "paragraphs": paragraphs,
    }


def corpus_figures(data: DatasetDict) -> str:
    """Return the figures of a corpus for its data card: documents, paragraphs and words
    of each split and package.

    Parameters
    ----------
    data
        The splits, with the columns of FEATURES.

    Returns
    -------
    str
        Tables in Markdown.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> from datasets import Dataset
    >>> row = {
    ...     "document": "d",
    ...     "package": "p",
    ...     "module": "m",
    ...     "title": "t",
    ...     "paragraphs": ["Two words.", "One."],
    ... }
    >>> print(
    ...     corpus_figures(
    ...         DatasetDict(test=Dataset.from_list([row], FEATURES))
    ...     ).splitlines()[2]
    ... )
    | test | 1 | 1 | 2 | 3 | 1.5 | 3 |
    """
    splits = []
    packages: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for split, rows in data.items():
        lengths: list[int] = []
        vocabulary: set[str] = set()
        for package, paragraphs in zip(
            rows["package"], rows["paragraphs"], strict=True
        ):
            words = [text.split() for text in paragraphs]
            vocabulary.update(word for text in words for word in text)
            lengths += [len(text) for text in words]
            for i, more in enumerate((1, len(words), sum(map(len, words)))):
                packages[package][i] += more
        counts = (len(rows), len(set(rows["module"])), len(lengths), sum(lengths))
        splits.append(
            (
                split,
                *(f"{n:,}" for n in counts),
                f"{median(lengths):g}",
                f"{len(vocabulary):,}",
            )
        )
    header = (
        "split",
        "documents",
        "modules",
        "paragraphs",
        "words",
        "median words a paragraph",
        "different words",
    )
    totals = [
        (package, *(f"{n:,}" for n in counts)) for package, counts in packages.items()
    ]
    by_package = markdown_table(("package", "documents", "paragraphs", "words"), totals)
    return f"{markdown_table(header, splits)}\n\n### By package\n\n{by_package}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown.

    Parameters
    ----------
    header
        Names of the columns.
    rows
        Cells; a bar in one is escaped.

    Returns
    -------
    str
        Its lines.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> print(markdown_table(("a", "b"), [(1, "x|y")]))
    | a | b |
    | --- | --- |
    | 1 | x\\|y |
    """
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += [
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"
        for row in rows
    ]
    return "\n".join(lines)


def plain_text(text: str) -> str:
    r"""Return a text so that Markdown prints it as it is: no emphasis, link, formula or
    tag.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    str
        The text with a backslash before each sign that Markdown reads.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> print(plain_text("a *b* <c>"))
    a \*b\* \<c\>
    """
    return re.sub(r"([\\`*_\[\]<>{}$~^#])", r"\\\1", text)
