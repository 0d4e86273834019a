"""The rows of the syllabus: what the course teaches, by number, and in which
chapter."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """A row of the syllabus.

    Parameters
    ----------
    number
        1 to 50.
    chapter
        That teaches it.
    title
        What it is about.
    """

    number: int
    chapter: int
    title: str


#: In the order of the chapters.
TITLES: Mapping[int, tuple[str, ...]] = {
    1: (
        (
            "Encoder and decoder for translation, teacher forcing, the bottleneck,"
            " vanishing gradients"
        ),
        "Attention: score, softmax, weighted sum; dot, bilinear and additive scores",
        "Alignment maps, near-monotone and turned round, scored against gold",
        "Quality against sentence length, with and without attention",
        "Decoding: greedy, sampling, beam search with length normalisation",
    ),
    2: (
        "Attention as a weighted look-up: query, key, value, and the root of the width",
        "Loops, matrix products and the fused kernel agree",
        "Cross-attention and self-attention; padding masks and causal masks",
        "What length costs: time, memory, sequential steps, path length",
        "Several heads: what they look at, and one against many",
    ),
    3: (
        "Token embeddings: a one-hot row times a matrix is a look-up",
        (
            "Order: permutation, positions as sinusoids, the worked table, learned"
            " positions"
        ),
        "Residual connections and layer norm, against batch norm, with ablations",
        "The position-wise feed-forward layer",
        "The encoder block, step by step, and stacks of it",
        "The decoder: masks, cross-attention, six words by hand",
        "The Transformer against the recurrent model",
        "Heads on top: language modelling, classification; causal and bidirectional",
    ),
    4: (
        "Sub-word pieces, the size of a vocabulary, unknown words",
        "Training by merges: the score by hand, against byte-pair frequency",
        "Encoding: normalisation, longest match, special tokens, equal to the library",
    ),
    5: (
        (
            "BERT's input: piece, position and segment; special tokens; padding and its"
            " mask"
        ),
        "The forward pass, line by line",
        "Sizes from tiny to large, counted",
        "BERT, GPT and ELMo: what each position may see",
        "Published checkpoints load, and ours load elsewhere",
    ),
    6: (
        "The masked language model: 15%, of these 80, 10 and 10; the worked example",
        "Why 15%: a sweep of rates",
        "Next sentence prediction",
        "The training algorithm, its loss, and the loss before the first step",
        "Data and cost, a cost model held against the clock",
        "Dynamic and whole-word masking, ablations, probes by layer",
    ),
    7: (
        "Words with several senses: static vectors, and how far senses are told apart",
        "TagLM and ELMo: two recurrent readers, layers mixed with learned weights",
        "GPT, and why a bidirectional model has to hide words",
        "Which layer to use",
    ),
    8: (
        "Features: a frozen model and a logistic regression",
        "Fine-tuning for one sentence and for pairs",
        "Tagging: the first piece speaks for its word",
        "Questions with an answer in the text, and without one",
        "Choosing among four",
        "The published tables; frozen, fine-tuned and from scratch; few labels; size",
    ),
    9: (
        "What comparing ten thousand sentences costs",
        "Pooling, raw vectors, anisotropy",
        "Siamese training and its objectives",
        "Evaluation: similarity by rank, probes",
        "Search and clusters among ten thousand paragraphs",
    ),
    10: (
        "The family as small differences, with measured runs",
        "Prompting with no, one or few examples, against fine-tuning",
        "The same models through `transformers` pipelines",
    ),
}

ROWS: tuple[Row, ...] = tuple(
    Row(number, chapter, title)
    for number, (chapter, title) in enumerate(
        ((chapter, title) for chapter, titles in TITLES.items() for title in titles),
        start=1,
    )
)

LABEL = re.compile(r"^\((row-(\d+)(?:-[a-z-]+)?)\)=$", re.MULTILINE)


def chapter_pages(book: Path) -> dict[int, str]:
    """Return the names of the chapters' pages that the book has, by number."""
    return {
        int(page.stem[:2]): page.stem for page in sorted(book.glob("[0-9][0-9]-*.md"))
    }


def row_labels(book: Path) -> dict[int, list[str]]:
    """Return the labels of the sections that teach each row, as they stand in the
    chapters: ``row-12`` first."""
    found: dict[int, list[str]] = {}
    pages = chapter_pages(book)
    for stem in pages.values():
        for label, number in LABEL.findall(
            (book / f"{stem}.md").read_text(encoding="utf-8")
        ):
            found.setdefault(int(number), []).append(label)
    for row in ROWS:
        labels = found.get(row.number, [])
        if row.chapter in pages and f"row-{row.number}" not in labels:
            raise ValueError(
                f"{pages[row.chapter]}.md teaches row {row.number}: write"
                f" (row-{row.number})= before it"
            )
        if len(labels) != len(set(labels)):
            raise ValueError(
                f"two sections have the same label: {labels}; number them"
                f" row-{row.number}-<word>"
            )
        labels.sort(
            key=lambda label: label.count("-")
        )  # the main section first, the others as they come
    return found
