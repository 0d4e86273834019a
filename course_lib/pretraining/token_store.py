"""A corpus, tokenised once and kept on disk: ids in one long array, and where its
sentences and documents begin.

Pre-training reads the same text for many epochs, and a corpus may be larger than
memory. So its ids are written once, as they come, and mapped into memory: the system
loads the pages that are read, and drops them when it needs the room.

A store is a folder: `store.json` says how many of each there are, how long each file
is and what it was made from; `ids.bin` has the ids of all tokens one after the other
(uint16, or uint32 where the vocabulary needs it); `sentences.bin`, where each sentence
begins in the ids, and at last where the ids end (int64); `documents.bin`, where each
document begins in the sentences, and at last where the sentences end.

It is written under another name and renamed when it is complete: a run that is killed
leaves no half of a store. It has no [CLS] and no [SEP]: these belong to the sequences
that are made of it.

What this module does not do: cut text into sentences, choose a tokenizer, or make
sequences.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from filelock import FileLock

FORMAT = "token-store-1"
RECORD = "store.json"
FILES = ("ids.bin", "sentences.bin", "documents.bin")
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
            stack.enter_context(open(folder / name, "wb")) for name in FILES
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
            ids_file.write(
                _checked(ids, vocab_size).astype(id_type(vocab_size)).tobytes()
            )
            sentences_file.write(
                (sentence_ends - lengths[kept]).astype("<i8").tobytes()
            )
            document_starts = sentences + through[:-1][np.diff(through) > 0]
            documents_file.write(document_starts.astype("<i8").tobytes())
            tokens += len(ids)
            sentences += int(kept.sum())
            count += len(document_starts)
        if tokens == 0:
            raise ValueError(
                "the corpus has no token; check the documents and the tokenizer"
            )
        sentences_file.write(np.array([tokens], "<i8").tobytes())
        documents_file.write(np.array([sentences], "<i8").tobytes())
    files = {name: {"bytes": (folder / name).stat().st_size} for name in FILES}
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


def _checked(ids: np.ndarray, vocab_size: int) -> np.ndarray:
    wrong = ids[(ids < 0) | (ids >= vocab_size)]
    if len(wrong):
        raise ValueError(
            f"encode returned id {wrong[0]}; the vocabulary has ids 0 to"
            f" {vocab_size - 1}"
        )
    return ids


class TokenStoreError(RuntimeError):
    """A store that cannot be written or read; the message says which, why and what to
    do."""


@dataclass(frozen=True)
class TokenStore:
    """A tokenised corpus, mapped into memory."""

    path: Path
    ids: np.ndarray
    sentence_starts: np.ndarray
    document_starts: np.ndarray
    vocab_size: int
    made_from: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.document_starts) - 1

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return len(self.sentence_starts) - 1

    def document(self, index: int) -> list[np.ndarray]:
        """Return the sentences of one document."""
        if not 0 <= index < len(self):
            raise IndexError(
                f"document {index} was asked for; {self.path.name} has documents 0 to"
                f" {len(self) - 1}"
            )
        first, end = self.document_starts[index : index + 2].tolist()
        bounds = self.sentence_starts[first : end + 1].tolist()
        return [self.ids[start:stop] for start, stop in pairwise(bounds)]


def build_token_store(
    documents: Iterable[Sequence[str]],
    encode: Encode,
    path: Path | str,
    vocab_size: int,
    made_from: Mapping[str, Any] | None = None,
    at_once: int = 4096,
) -> TokenStore:
    """Tokenise a corpus as it streams by and write it to disk."""
    path = Path(path)
    if path.exists():
        raise TokenStoreError(f"{path} exists already; open it, or choose another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            write_files(
                making, documents, encode, vocab_size, dict(made_from or {}), at_once
            )
            os.replace(making, path)
        finally:
            # after a rename there is nothing left to remove
            shutil.rmtree(making, ignore_errors=True)
    except OSError as error:
        raise TokenStoreError(
            f"could not write {path}: {error.strerror or error}; choose a folder that"
            " is writable and has room"
        ) from error
    return open_token_store(path)


def open_token_store(path: Path | str) -> TokenStore:
    """Map a store into memory, and check that it is one."""
    path = Path(path)
    if not (path / RECORD).is_file():
        raise TokenStoreError(
            f"there is no token store {path} (no {path / RECORD}); build it first"
        )
    try:
        record = json.loads((path / RECORD).read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise ValueError(
                f"its format is {record['format']!r}, this course writes {FORMAT!r}"
            )
        vocab_size, made_from = int(record["vocab_size"]), dict(record["made_from"])
        ids, sentences, documents = (
            _mapped(path / name, dtype, record["files"][name]["bytes"])
            for name, dtype in zip(
                FILES, (id_type(vocab_size), "<i8", "<i8"), strict=True
            )
        )
        _check_boundaries("sentences.bin", sentences, len(ids))
        _check_boundaries("documents.bin", documents, len(sentences) - 1)
        if int(ids.max()) >= vocab_size:
            raise ValueError(
                f"ids.bin has id {ids.max()}, but the vocabulary ends at"
                f" {vocab_size - 1}"
            )
    except (OSError, KeyError, TypeError, ValueError) as error:
        told = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise TokenStoreError(
            f"{path} is damaged or no token store: {told}. Remove it and build it again"
        ) from error
    return TokenStore(path, ids, sentences, documents, vocab_size, made_from)


def cached_token_store(
    folder: Path | str,
    name: str,
    made_from: Mapping[str, Any],
    documents: Callable[[], Iterable[Sequence[str]]],
    encode: Encode,
    vocab_size: int,
) -> TokenStore:
    """Open the store that was made from these ingredients, or make it."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{fingerprint(made_from)}"
    with FileLock(f"{path}.lock"):
        if path.exists():
            return open_token_store(path)
        return build_token_store(documents(), encode, path, vocab_size, made_from)


def fingerprint(content: Mapping[str, Any] | Iterable[Sequence[str]]) -> str:
    """Return 16 hexadecimal digits that tell this content from other content."""
    digest = hashlib.sha256()
    if isinstance(content, Mapping):
        digest.update(json.dumps(content, sort_keys=True).encode())
    else:
        for (
            sentences
        ) in content:  # JSON puts each sentence in quotes, so that boundaries count
            digest.update(json.dumps(list(sentences)).encode())
    return digest.hexdigest()[:16]


def _mapped(file: Path, dtype: str, written: int) -> np.ndarray:
    size = file.stat().st_size
    if size != written:
        raise ValueError(
            f"{file.name} has {size:,} bytes, but {written:,} were written"
        )
    return np.memmap(file, dtype=dtype, mode="r")


def _check_boundaries(name: str, starts: np.ndarray, end: int) -> None:
    if (
        len(starts) < 2
        or starts[0] != 0
        or starts[-1] != end
        or (np.diff(starts) <= 0).any()
    ):
        raise ValueError(f"the boundaries in {name} do not rise from 0 to {end:,}")
