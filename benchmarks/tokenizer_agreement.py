"""Whether the teaching code and the library `tokenizers` give the same tokens, ids,
offsets and masks, for every text.

Compared are generated texts of the hostile kind (with the published vocabulary, and
with one that writes nearly all of their characters) and real lines: WikiText-2, SST-2,
every other short text of the public data sets, in English, French and German, and the
paragraphs of `pydocs`. One disagreement makes the program fail and is shown.

    python benchmarks/tokenizer_agreement.py [--generated 10000] [--limit 0] [--record]

The folder of public data sets is COURSE_DATA; it holds ``bert_base_uncased/vocab.txt``.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from side_by_side import read_settings, save, setting, show
from tqdm import tqdm

from course_lab.texts import hostile_texts, hostile_vocab
from course_lib.data import load
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece

# Texts of one line or so; long ones (contexts of questions) would only repeat what
# shorter ones show.
COLUMNS = {
    "sst2": ("sentence",),
    "multi30k": ("en", "fr", "de"),
    "snli": ("premise", "hypothesis"),
    "mnli": ("premise", "hypothesis"),
    "stsb": ("sentence1", "sentence2"),
    "mrpc": ("sentence1", "sentence2"),
    "rte": ("sentence1", "sentence2"),
    "cola": ("sentence",),
    "trec": ("text",),
    "subj": ("text",),
    "squad": ("question",),
    "wnut17": ("tokens",),
    "winogrande": ("sentence",),
}
BATCH = 2000  # lines compared at a time


@dataclass(frozen=True)
class Settings:
    """What to compare."""

    generated: int = setting(
        10_000, "generated texts, half of them with each vocabulary"
    )
    limit: int = setting(0, "lines of each source at most; 0 for all")
    seed: int = setting(0, "of the generated texts")
    threads: int = setting(1, "threads")


def public_lines(folder: Path) -> Iterator[tuple[str, Iterator[str]]]:
    """Every public data set with its lines."""
    yield "wikitext2_raw", lines_of(sorted((folder / "wikitext2_raw").glob("*.txt")))
    for name, columns in COLUMNS.items():
        yield name, cells_of(sorted((folder / name).glob("*.parquet")), columns)


def lines_of(paths: Sequence[Path]) -> Iterator[str]:
    """The lines of text files."""
    for path in paths:
        yield from path.read_text(encoding="utf-8").split("\n")


def cells_of(paths: Sequence[Path], columns: Sequence[str]) -> Iterator[str]:
    """The texts of tables, one after the other."""
    for path in paths:
        yield from texts_of(path, columns)


def pydocs() -> Iterator[str]:
    """The paragraphs of the embedded corpus."""
    documents = (
        document
        for split in load("pydocs", source="embedded").values()
        for document in split["paragraphs"]
    )
    return (paragraph for document in documents for paragraph in document)


def texts_of(path: Path, columns: Sequence[str]) -> Iterator[str]:
    """The texts in some columns of a table; a list of words is one text."""
    table = pq.read_table(path)
    for column in table.column_names:
        if column in columns:
            for text in table[column].to_pylist():
                if text is not None:
                    yield (
                        " ".join(text) if pa.types.is_list(table[column].type) else text
                    )


def compare(
    name: str, texts: Iterable[str], ours: WordPiece, theirs: FastWordPiece
) -> dict[str, Any]:
    """Encode texts with both.

    Returns
    -------
    dict
        Name of the source, number of texts, of tokens, of [UNK] among them and of texts
        on which the two differ, and the first three of these.

    Raises
    ------
    ValueError
        If there is no text.
    """
    lines = tokens = unknown = 0
    different = []
    waiting = iter(texts)
    while batch := list(islice(waiting, BATCH)):
        for text, expected in zip(
            batch, theirs.encode_batch(batch, padding=None), strict=True
        ):
            found = ours.encode(text)
            lines += 1
            tokens += len(found)
            unknown += found.tokens.count("[UNK]")
            if found != expected:
                different.append(text)
    if lines == 0:
        raise ValueError(
            f"{name} has no text: that nothing differs would mean nothing; look at its"
            " files and columns"
        )
    return {
        "source": name,
        "texts": lines,
        "tokens": tokens,
        "unknown": unknown,
        "disagreements": len(different),
        "examples": different[:3],
    }


def main(words: Sequence[str] | None = None) -> int:
    """Compare, print a table, and return 1 if there is a disagreement."""
    settings, record = read_settings(Settings, words, __doc__)
    torch.set_num_threads(settings.threads)  # for the record's words on the machine
    folder = Path(os.environ.get("COURSE_DATA", ""))
    vocab = folder / "bert_base_uncased" / "vocab.txt"
    if not vocab.is_file():
        print(
            f"no {vocab}: set COURSE_DATA to the folder of public data sets",
            file=sys.stderr,
        )
        return 2
    published = WordPiece.load(vocab), FastWordPiece.load(vocab)
    wide = WordPiece(hostile_vocab()), FastWordPiece(hostile_vocab())
    half = settings.generated // 2
    sources = [*public_lines(folder), ("pydocs", pydocs())]
    rows = [
        compare(
            "generated, published vocabulary",
            hostile_texts(settings.generated - half, settings.seed),
            *published,
        ),
        compare(
            "generated, their own vocabulary",
            hostile_texts(half, settings.seed + 1),
            *wide,
        ),
    ]
    for name, texts in tqdm(sources, disable=None, leave=False):
        rows.append(compare(name, islice(texts, settings.limit or None), *published))
    numbers = ("texts", "tokens", "unknown", "disagreements")
    total = {
        "source": "all",
        "examples": [],
        **{key: sum(row[key] for row in rows) for key in numbers},
    }
    show(
        "ids, tokens, offsets, segments and masks of the teaching code and of"
        " tokenizers",
        [*rows, total],
        {
            "source": lambda row: row["source"],
            **{key: lambda row, key=key: f"{row[key]:,}" for key in numbers},
        },
    )
    for row in rows:
        for text in row["examples"]:
            print(f"differs, {row['source']}: {text!a}")
    if total["disagreements"]:
        return 1
    if record:
        save("benchmark-tokenizer_agreement", settings, rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
