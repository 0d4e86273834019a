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


_HEADING = re.compile(r"((?:= )+)([^=].*?)((?: =)+)")


def articles(lines: Sequence[str], split: str) -> list[Row]:
    """Return the articles in the raw lines of a split of WikiText-2 (Merity et al.
    2017): one row each, its paragraphs without headings."""
    texts = [line.strip() for line in lines]
    blank = [not text for text in texts]
    rows: list[Row] = []
    for i, text in enumerate(texts):
        alone = (i == 0 or blank[i - 1]) and (i + 1 == len(texts) or blank[i + 1])
        heading = _HEADING.fullmatch(text) if alone else None
        if heading and len(heading[1].split()) == len(heading[3].split()):
            if len(heading[1].split()) == 1:
                name = f"wikitext2_raw/{split}/{len(rows):04d}"
                rows.append(
                    Row(
                        document=name,
                        package="wikitext2_raw",
                        module=name,
                        title=heading[2],
                        paragraphs=[],
                    )
                )
        elif text:
            if not rows:
                raise ValueError(
                    f"line {i + 1} of {split} has text before the first title:"
                    f" {text[:60]!r}"
                )
            rows[-1]["paragraphs"].append(text)
    return [row for row in rows if row["paragraphs"]]


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
