"""WordPiece in the open against the library `tokenizers`: training a vocabulary, and
encoding with it.

Both sides read the same paragraphs of `pydocs`. Training is to the same size by the
same rule (the most frequent pair), from text to vocabulary. Encoding is of all
paragraphs, each time from cold: the teaching code remembers words that it has cut, and
starts without memory. On one thread the clock is processor time; on several it is the
wall clock, and the teaching code still uses one.

    python benchmarks/tokenizer.py [--rounds 30] [--paragraphs 300] [--vocab 1000]
    [--threads 2] [--record]
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from side_by_side import race, read_settings, save, setting, show

from course_lib.data import load
from course_lib.wordpiece import normalize as text_normalization
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece
from course_lib.wordpiece.training import count_words, train_wordpiece

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Settings:
    """What is timed."""

    rounds: int = setting(30, "rounds that count")
    paragraphs: int = setting(300, "paragraphs of the corpus, from its start")
    vocab: int = setting(1000, "size of the vocabulary")
    threads: int = setting(2, "threads of the library, beside one")


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let `tokenizers` use one thread or all that it has; torch is told too, as
    `seconds` picks its clock by that."""
    before = os.environ.get("TOKENIZERS_PARALLELISM"), torch.get_num_threads()
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if number > 1 else "false"
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before[1])
        del os.environ["TOKENIZERS_PARALLELISM"]
        if before[0] is not None:
            os.environ["TOKENIZERS_PARALLELISM"] = before[0]


def paragraphs(number: int) -> list[str]:
    """The first paragraphs of the embedded corpus."""
    documents = load("pydocs", source="embedded")["train"]["paragraphs"]
    return list(islice((text for document in documents for text in document), number))


def contests(
    texts: list[str], vocab_size: int
) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """What is raced: ours and theirs, under a name."""
    pieces = train_wordpiece(count_words(texts), vocab_size, "frequency").vocab
    fast = FastWordPiece(pieces)

    def train() -> None:
        text_normalization.clear_cache()
        train_wordpiece(count_words(texts), vocab_size, "frequency")

    def encode() -> list[list[int]]:
        text_normalization.clear_cache()
        tokenizer = WordPiece(pieces)
        return [tokenizer.encode(text).ids for text in texts]

    def encode_fast() -> list[list[int]]:
        return [encoding.ids for encoding in fast.encode_in_rust(texts)]

    if encode() != encode_fast():
        raise RuntimeError(
            "the two tokenizers give different ids; a ratio would mean nothing"
        )
    return {
        "train": (train, lambda: FastWordPiece.train(texts, vocab_size)),
        "encode": (encode, encode_fast),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Race, print the table, and record it if asked to."""
    settings, record = read_settings(Settings, words, __doc__)
    os.environ["RAYON_NUM_THREADS"] = str(
        settings.threads
    )  # read by the library at its first parallel call
    texts = paragraphs(settings.paragraphs)
    running = sum(count_words(texts).values())
    rows = []
    for what, (ours, theirs) in contests(texts, settings.vocab).items():
        for number in (1, settings.threads):
            with threads(number):
                row = race(ours, theirs, CPU, settings.rounds)
            rows.append({"what": what, "threads": number, "words": running, **row})
    show(
        f"{len(texts):,} paragraphs, {running:,} words and marks, {settings.vocab:,}"
        " pieces",
        rows,
        {
            "what": lambda row: row["what"],
            "threads": lambda row: str(row["threads"]),
            "ours, ms": lambda row: f"{row['milliseconds']:.1f}",
            "tokenizers, ms": lambda row: f"{row['peer_milliseconds']:.1f}",
            "words a second, ours": lambda row: (
                f"{1000 * row['words'] / row['milliseconds']:,.0f}"
            ),
            "tokenizers": lambda row: (
                f"{1000 * row['words'] / row['peer_milliseconds']:,.0f}"
            ),
            "ours / tokenizers": lambda row: (
                f"{1 / row['ratio']:.1f} ({1 / row['high']:.1f} to"
                f" {1 / row['low']:.1f})"
            ),
        },
    )
    if record:
        torch.set_num_threads(settings.threads)  # what the record says of the machine
        save("benchmark-tokenizer", settings, rows)


if __name__ == "__main__":
    main()
