"""The form of a corpus with document boundaries: one row a document, the same columns
for every corpus."""

import re
from collections import defaultdict
from collections.abc import Sequence
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


def corpus_figures(data: DatasetDict) -> str:
    """Return the figures of a corpus for its data card: documents, paragraphs and words
    of each split and package."""
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
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += [
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"
        for row in rows
    ]
    return "\n".join(lines)


def plain_text(text: str) -> str:
    r"""Return a text so that Markdown prints it as it is: no emphasis, link, formula or
    tag."""
    return re.sub(r"([\\`*_\[\]<>{}$~^#])", r"\\\1", text)
