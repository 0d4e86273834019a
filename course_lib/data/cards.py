"""Data cards: one page for each data set, facts from the catalogue and figures measured from the rows that load.

A data set that is not at hand gets a card without figures, which says how to get it: nothing is typed from memory.
"""

import os
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from datasets import Dataset, DatasetDict

from course_lib.data.catalogue import DATASETS, DataSet
from course_lib.data.corpus import corpus_figures, markdown_table, plain_text
from course_lib.data.loading import load

GROUP = 10  # words: the width of a group in the table of lengths


def available_source(entry: DataSet) -> str | None:
    """Say where a data set can be loaded from on this machine without a network.

    Parameters
    ----------
    entry
        A row of the catalogue.

    Returns
    -------
    str or None
        "embedded", the folder in COURSE_DATA if it holds this data set, or None.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> available_source(DATASETS["translation"])
    'embedded'
    """
    if entry.embedded is not None:
        return "embedded"
    folder = os.environ.get("COURSE_DATA", "")
    if folder not in ("", "embedded", "hub") and (Path(folder).expanduser() / entry.name).is_dir():
        return folder
    return None


def write_cards(folder: Path) -> list[Path]:
    """Write a page of the book for each data set.

    Parameters
    ----------
    folder
        Where to write <name>.md; made if it does not exist.

    Returns
    -------
    list
        The pages written, in the order of the catalogue.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     pages = write_cards(Path(folder))
    translation: embedded, ...
    >>> [page.name for page in pages]
    ['translation.md', 'pronouns.md', 'pydocs.md', 'stories.md', 'wikitext2_raw.md', 'multi30k.md']
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    pages = []
    for entry in DATASETS.values():
        source = available_source(entry)
        page = Path(folder) / f"{entry.name}.md"
        page.write_text(card(entry, None if source is None else load(entry.name, source)), encoding="utf-8")
        pages.append(page)
    return pages


def card(entry: DataSet, data: DatasetDict | None) -> str:
    """Return a data card in MyST Markdown.

    Parameters
    ----------
    entry
        The row of the catalogue, for the facts.
    data
        The rows, for the figures and the examples; None leaves them out and says so.

    Returns
    -------
    str
        The page.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> print(card(DATASETS["multi30k"], None).splitlines()[1])
    # `multi30k`
    """
    columns = {**entry.features, **(entry.optional_features or {})}
    facts = [
        ("Sources", ", ".join(entry.sources)),
        ("Splits", ", ".join(entry.splits)),
        ("Licence", entry.licence),
        ("Cite", entry.citation),
        ("How to get it", entry.get_it),
    ]
    parts = [
        f"(data-{entry.name})=\n# `{entry.name}`\n\n**{entry.title}.** {entry.description}",
        f'```python\nfrom course_lib.data import load\n\ndata = load("{entry.name}", source="{entry.sources[0]}")\n```',
        markdown_table(("fact", ""), facts),
        "## Columns\n\n"
        + markdown_table(
            ("column", "type", "what it holds"),
            [(f"`{name}`", _type_name(columns[name]), entry.column_notes[name]) for name in columns],
        ),
        "## Worth knowing\n\n" + "\n".join(f"- {quirk}" for quirk in entry.quirks),
    ]
    if data is None:
        parts.append(
            "## Figures\n\nThis data set was not on the machine that built this page, so there are none: figures here "
            "are measured, never typed. Get the data as said above, then run "
            f"`course data show {entry.name} --source FOLDER`."
        )
    else:
        parts += ["## Figures\n\nMeasured from the rows that loaded when this was written.", *_figures(entry, data)]
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
    texts = [name for name, feature in next(iter(data.values())).features.items() if _type_name(feature) == "text"]
    sizes, groups = [], []
    for split, rows in data.items():
        for column in texts:
            words = [text.split() for text in rows[column]]
            lengths = [len(sentence) for sentence in words]
            vocabulary = len({word for sentence in words for word in sentence})
            sizes.append(
                (
                    split,
                    f"{len(rows):,}",
                    f"`{column}`",
                    min(lengths),
                    f"{median(lengths):g}",
                    max(lengths),
                    f"{vocabulary:,}",
                )
            )
    train = next(iter(data.values()))
    counts = {column: Counter((len(text.split()) - 1) // GROUP for text in train[column]) for column in texts}
    for group in range(max(max(counter) for counter in counts.values()) + 1):
        shares = [f"{100 * counts[column][group] / len(train):.1f}%" for column in texts]
        groups.append((f"{group * GROUP + 1} to {(group + 1) * GROUP}", *shares))
    parts = [
        markdown_table(("split", "rows", "column", "shortest (words)", "median", "longest", "different words"), sizes),
        "### Lengths of training sentences, in words\n\n"
        + markdown_table(("words", *(f"`{column}`" for column in texts)), groups),
    ]
    if "alignment" in train.features:
        parts.append("### Alignments\n\n" + _alignments(train))
    if entry.show_rows:
        parts.append("### Examples\n\n" + _examples(train, texts))
    else:
        parts.append("Rows are not printed here: the licence does not say that a page may.")
    return parts


def _alignments(rows: Dataset) -> str:
    """Describe gold links: how many words go together, and how often two links cross."""
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
        ("sentences in which at least two links cross", f"{100 * crossing / len(rows):.1f}%"),
    ]
    return markdown_table(("training split", ""), figures)


def _examples(rows: Dataset, texts: Sequence[str], count: int = 3, longest: int = 14) -> str:
    """Show the first rows short enough to read, with their links."""
    short = [i for i, text in enumerate(rows[texts[0]]) if 6 <= len(text.split()) <= longest][:count]
    lines = []
    for i in short:
        row = rows[i]
        lines += [f"- `{column}`: {row[column]}" for column in texts]
        if "alignment" in row:
            pairs = [f"{row['en'].split()[s]}–{row['fr'].split()[t]}" for s, t in row["alignment"]]
            lines.append(f"- `alignment`: {', '.join(pairs)}")
        lines.append("")
    return "\n".join(lines).rstrip()


def _type_name(feature: object) -> str:
    text = str(feature)
    if "List(List" in text:
        return "list of pairs of integers"
    if "List(Value('string'" in text:
        return "list of texts"
    return "text" if "string" in text else "integer" if "int64" in text else text
