"""How a token store is written: as the documents come, with no more of them in memory
than are tokenised together."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

FORMAT = "token-store-1"
RECORD = "store.json"
Encode: TypeAlias = Callable[[list[str]], list[list[int]]]
"""Texts -> the ids of each, without special tokens."""


def id_type(vocab_size: int) -> str:
    """Return the type that ids are kept in."""
    if not 1 <= vocab_size <= 2**32:
        raise ValueError(f"vocab_size is {vocab_size}; it must be from 1 to 4294967296")
    return "<u2" if vocab_size <= 2**16 else "<u4"


def write_files(
    folder: Path,
    documents: Iterable[Sequence[str]],
    encode: Encode,
    vocab_size: int,
    made_from: Mapping[str, Any],
    at_once: int,
) -> None:
    """Write the ids and the boundaries as the documents come, then the record that
    describes them."""
    tokens = sentences = count = 0
    with ExitStack() as stack:
        ids_file, sentences_file, documents_file = (
            stack.enter_context(_Digested(folder / name))
            for name in ("ids.bin", "sentences.bin", "documents.bin")
        )
        for texts, ends in _portions(documents, at_once):
            encoded = encode(texts)
            if len(encoded) != len(texts):
                raise ValueError(
                    f"encode was given {len(texts)} texts and returned {len(encoded)};"
                    " one each is needed"
                )
            lengths = np.array([len(ids) for ids in encoded])
            kept = lengths > 0
            # How many sentences with a token lie before the end of each document: where
            # that does not grow, all of a document's sentences are empty, and it has no
            # place in the store.
            through = np.concatenate([[0], np.cumsum(kept)])[[0, *ends]]
            sentence_ends = tokens + np.cumsum(lengths[kept])
            ids = np.array(
                [index for sentence in encoded for index in sentence], dtype=np.int64
            )
            ids_file.write(_checked(ids, vocab_size).astype(id_type(vocab_size)))
            sentences_file.write(sentence_ends - lengths[kept])
            document_starts = sentences + through[:-1][np.diff(through) > 0]
            documents_file.write(document_starts)
            tokens, sentences, count = (
                tokens + len(ids),
                sentences + int(kept.sum()),
                count + len(document_starts),
            )
        if tokens == 0:
            raise ValueError(
                "the corpus has no token; check the documents and the tokenizer"
            )
        sentences_file.write(np.array([tokens]))
        documents_file.write(np.array([sentences]))
    files = {
        file.path.name: {"bytes": file.written, "sha256": file.digest.hexdigest()}
        for file in (ids_file, sentences_file, documents_file)
    }
    counts = {"documents": count, "sentences": sentences, "tokens": tokens}
    record = {
        "format": FORMAT,
        "vocab_size": vocab_size,
        **counts,
        "files": files,
        "made_from": dict(made_from),
    }
    (folder / RECORD).write_text(
        json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


def _portions(
    documents: Iterable[Sequence[str]], at_once: int
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield some documents' sentences in one list, and where in it each
    document ends."""
    texts: list[str] = []
    ends: list[int] = []
    for sentences in documents:
        if isinstance(sentences, str):
            raise ValueError(
                "a document is a list of its sentences; it was one string. Pass [text]"
                " instead"
            )
        texts.extend(sentences)
        ends.append(len(texts))
        if len(texts) >= at_once:
            yield texts, ends
            texts, ends = [], []
    if texts:
        yield texts, ends


class _Digested:
    """A file that is written once, flushed to the disk at the end, and knows the digest
    of its content."""

    def __init__(self, path: Path) -> None:
        self.path, self.digest, self.written = path, hashlib.sha256(), 0

    def __enter__(self) -> _Digested:
        self.file = open(self.path, "wb")
        return self

    def write(self, array: np.ndarray) -> None:
        """Append an array; whole numbers other than ids are boundaries, in
        eight bytes."""
        content = (array if array.dtype.kind == "u" else array.astype("<i8")).tobytes()
        self.file.write(content)
        self.digest.update(content)
        self.written += len(content)

    def __exit__(self, *error: object) -> None:
        with self.file:
            self.file.flush()
            os.fsync(self.file.fileno())


def _checked(ids: np.ndarray, vocab_size: int) -> np.ndarray:
    wrong = ids[(ids < 0) | (ids >= vocab_size)]
    if len(wrong):
        raise ValueError(
            f"encode returned id {wrong[0]}; the vocabulary has ids 0 to"
            f" {vocab_size - 1}"
        )
    return ids
