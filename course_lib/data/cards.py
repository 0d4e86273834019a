"""Data cards: one page for each data set, facts from the catalogue and figures measured
from the rows that load.

A data set that is not at hand gets a card without figures, which says how to get it:
nothing is typed from memory.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, List

from course_lib.data.catalogue import DATASETS
from course_lib.data.corpus import corpus_figures, markdown_table, plain_text
from course_lib.data.data_set import DataSet
from course_lib.data.loading import load

# words: the width of a group in the table of lengths, and above how many rows it is
# wider
GROUP, ROWS = 10, 12
# columns that name a row: nobody asks how many words they have
NAMES = ("id", "title", "word", "sense")


def available_source(entry: DataSet) -> str | None:
    """Say where a data set can be loaded from on this machine without a network."""
    if entry.embedded is not None:
        return "embedded"
    folder = os.environ.get("COURSE_DATA", "")
    if (
        folder not in ("", "embedded", "hub")
        and (Path(folder).expanduser() / entry.name).is_dir()
    ):
        return folder
    return None


def write_cards(folder: Path, names: Sequence[str] = tuple(DATASETS)) -> list[Path]:
    """Write a page of the book for each data set."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    pages = []
    for entry in (DATASETS[name] for name in names):
        source = available_source(entry)
        page = Path(folder) / f"{entry.name}.md"
        page.write_text(
            card(entry, None if source is None else load(entry.name, source)),
            encoding="utf-8",
        )
        pages.append(page)
    return pages


def card(entry: DataSet, data: DatasetDict | None) -> str:
    """Return a data card in MyST Markdown."""
    columns = {**entry.features, **(entry.optional_features or {})}
    facts = [
        ("Sources", ", ".join(entry.sources)),
        ("Splits", ", ".join(entry.splits)),
        ("Licence", entry.licence),
        ("Cite", entry.citation),
        ("How to get it", entry.get_it),
    ]
    parts = [
        (
            f"(data-{entry.name})=\n# `{entry.name}`\n\n**{entry.title}.**"
            f" {entry.description}"
        ),
        (
            "```python\nfrom course_lib.data import load\n\ndata ="
            f' load("{entry.name}", source="{entry.sources[0]}")\n```'
        ),
        markdown_table(("fact", ""), facts),
        "## Columns\n\n"
        + markdown_table(
            ("column", "type", "what it holds"),
            [
                (f"`{name}`", _type_name(columns[name]), entry.column_notes[name])
                for name in columns
            ],
        ),
        "## Worth knowing\n\n" + "\n".join(f"- {quirk}" for quirk in entry.quirks),
    ]
    if data is None:
        parts.append(
            "## Figures\n\nThis data set was not on the machine that built this page,"
            " so there are none: figures here are measured, never typed. Get the data"
            f" as said above, then run `course data show {entry.name} --source FOLDER`."
        )
    else:
        parts += [
            "## Figures\n\nMeasured from the rows that loaded when this was written.",
            *_figures(entry, data),
        ]
    return "\n\n".join(parts) + "\n"


def _figures(entry: DataSet, data: DatasetDict) -> list[str]:
    if "paragraphs" in entry.features:
        more = [entry.more(data)] if entry.more else []
        return [corpus_figures(data), *more, *_first_document(entry, data)]
    return _sentence_figures(entry, data)


def _first_document(entry: DataSet, data: DatasetDict) -> list[str]:
    if not entry.show_rows:
        return ["Rows are not printed here: the licence does not say that a page may."]
    first = next(iter(data.values()))[0]
    quoted = "\n\n".join(f"> {plain_text(text)}" for text in first["paragraphs"][:3])
    return [f"### The first document: {plain_text(first['title'])}\n\n{quoted}"]


def _sentence_figures(entry: DataSet, data: DatasetDict) -> list[str]:
    first = next(iter(data.values()))
    texts = [
        name
        for name, feature in first.features.items()
        if _is_text(feature) and name not in NAMES
    ]
    sizes: list[tuple[object, ...]] = []
    lengths_of_first: dict[str, list[int]] = {}
    for split, rows in data.items():
        for column in texts:
            words = [_words(text) for text in rows[column]]
            lengths = [len(row) for row in words]
            lengths_of_first.setdefault(column, lengths)
            sizes.append(
                (
                    *(split, f"{len(rows):,}", f"`{column}`"),
                    *(min(lengths), f"{median(lengths):g}", max(lengths)),
                    f"{len({word for row in words for word in row}):,}",
                )
            )
    most = max(map(max, lengths_of_first.values()))
    group = GROUP * max(1, -(-most // (GROUP * ROWS)))
    counts = [
        Counter(max(0, length - 1) // group for length in lengths)
        for lengths in lengths_of_first.values()
    ]
    groups = [
        (
            f"{at * group + 1} to {(at + 1) * group}",
            *(f"{100 * counter[at] / len(first):.1f}%" for counter in counts),
        )
        for at in range(max(map(max, counts)) + 1)
    ]
    header = ("split", "rows", "column", "shortest (words)", "median", "longest")
    parts = [
        markdown_table((*header, "different words"), sizes),
        f"### Lengths of {'training ' if 'train' in data else ''}sentences, in"
        " words\n\n"
        + markdown_table(("words", *(f"`{column}`" for column in texts)), groups),
        *_label_figures(data),
    ]
    if "alignment" in first.features:
        parts.append("### Alignments\n\n" + _alignments(first))
    if entry.more:
        parts.append(entry.more(data))
    if entry.show_rows:
        parts.append("### Examples\n\n" + _examples(first, texts))
    else:
        parts.append(
            "Rows are not printed here: the licence does not say that a page may."
        )
    return parts


def _label_figures(data: DatasetDict) -> list[str]:
    """Count the labels of each split, of rows or of their tokens."""
    parts = []
    for column, feature in next(iter(data.values())).features.items():
        kind = feature.feature if isinstance(feature, List) else feature
        if not isinstance(kind, ClassLabel):
            continue
        rows = []
        for split, own in data.items():
            labels = (
                own[column]
                if kind is feature
                else [label for tags in own[column] for label in tags]
            )
            counts = Counter(labels)
            rows.append(
                (
                    split,
                    *(
                        f"{counts[i]:,} ({100 * counts[i] / len(labels):.1f}%)"
                        for i in range(len(kind.names))
                    ),
                )
            )
        header = ("split", *(f"`{name}`" for name in kind.names))
        parts.append(f"### Labels: `{column}`\n\n" + markdown_table(header, rows))
    return parts


def _words(text: str | Sequence[str]) -> Sequence[str]:
    return text.split() if isinstance(text, str) else text


def _is_text(feature: object) -> bool:
    return _type_name(feature) in ("text", "list of texts")


def _alignments(rows: Dataset) -> str:
    """Describe gold links: how many words go together, and how often two links
    cross."""
    links = crossing = shared_source = words = 0
    for alignment in rows["alignment"]:
        links += len(alignment)
        words += len({t for _, t in alignment})
        shared_source += sum(n > 1 for n in Counter(s for s, _ in alignment).values())
        ordered = [s for s, _ in sorted(alignment, key=lambda link: (link[1], link[0]))]
        crossing += any(a > b for a, b in pairwise(ordered))
    figures = [
        ("gold links", f"{links:,}"),
        ("links per linked French word", f"{links / words:.2f}"),
        ("English words linked to two French words or more", f"{shared_source:,}"),
        (
            "sentences in which at least two links cross",
            f"{100 * crossing / len(rows):.1f}%",
        ),
    ]
    return markdown_table(("training split", ""), figures)


def _examples(
    rows: Dataset, texts: Sequence[str], count: int = 3, longest: int = 14
) -> str:
    """Show the first rows that are short enough to read and begin with different texts;
    where none is, the first."""
    own = [_words(text) for text in rows[texts[0]]]
    firsts = list(
        {" ".join(words): i for i, words in reversed(list(enumerate(own)))}.values()
    )[::-1]
    short = [i for i in firsts if 6 <= len(own[i]) <= longest][:count] or firsts[:count]
    lines = []
    for i in short:
        row = rows[i]
        lines += [
            f"- `{column}`: {_shown(row, column, rows.features)}" for column in texts
        ]
        for column, feature in rows.features.items():
            if column == "answers":
                answers = ", ".join(row[column]["text"])
                shown = answers or "none: the context does not say"
                lines.append(f"- `answers`: {shown}")
            elif isinstance(feature, ClassLabel):
                lines.append(f"- `{column}`: {feature.names[row[column]]}")
        if "alignment" in row:
            pairs = [
                f"{row['en'].split()[s]}–{row['fr'].split()[t]}"
                for s, t in row["alignment"]
            ]
            lines.append(f"- `alignment`: {', '.join(pairs)}")
        lines.append("")
    return "\n".join(lines).rstrip()


def _shown(row: Mapping[str, Any], column: str, features: Mapping[str, Any]) -> str:
    """A text as it is, or tokens with their tags: Ada/B-PER."""
    if isinstance(row[column], str):
        return plain_text(row[column])
    names = features["ner_tags"].feature.names
    pairs = zip(row[column], row["ner_tags"], strict=True)
    return plain_text(
        " ".join(f"{token}/{names[tag]}" if tag else token for token, tag in pairs)
    )


def _type_name(feature: object) -> str:
    if isinstance(feature, ClassLabel):
        return "label"
    if isinstance(feature, dict):
        return ", ".join(f"{_type_name(own)} `{name}`" for name, own in feature.items())
    if isinstance(feature, List):
        inner = _type_name(feature.feature)
        return (
            "list of pairs of integers"
            if inner == "list of integers"
            else f"list of {inner}s"
        )
    text = str(feature)
    return (
        "text"
        if "string" in text
        else "integer"
        if "int" in text
        else "number"
        if "float" in text
        else text
    )
