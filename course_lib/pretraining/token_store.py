"""A corpus, tokenised once and kept on disk: ids in one long array, and where its
sentences and documents begin.

Pre-training reads the same text for many epochs, and a corpus may be larger than
memory. So its ids are written once, as they come, and mapped into memory: the system
loads the pages that are read, and drops them when it needs the room.

A store is a folder:

    store.json       how many of each there are, the type of the ids, a digest of each file, what it was made from
    ids.bin          the ids of all tokens one after the other: uint16, or uint32 where the vocabulary needs it
    sentences.bin    int64: where each sentence begins in the ids, and at last where the ids end
    documents.bin    int64: where each document begins in the sentences, and at last where the sentences end

It is written under another name and renamed when it is complete: a run that is killed
leaves no half of a store. It has no [CLS] and no [SEP]: these belong to the sequences
that are made of it.

What this module does not do: cut text into sentences, choose a tokenizer, or make
sequences.
"""  # noqa: E501

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from course_lib.pretraining.token_store_writing import (
    FORMAT,
    RECORD,
    Encode,
    id_type,
    write_files,
)

__all__ = [
    "TokenStore",
    "TokenStoreError",
    "build_token_store",
    "cached_token_store",
    "fingerprint",
    "open_token_store",
]


class TokenStoreError(RuntimeError):
    """A store that cannot be written or read; the message says which, why and what to
    do."""


@dataclass(frozen=True)
class TokenStore:
    """A tokenised corpus, mapped into memory.

    Parameters
    ----------
    path
        Its folder.
    ids
        The ids of all tokens, (tokens,), uint16 or uint32, read only.
    sentence_starts
        (sentences + 1,): sentence `s` is ``ids[sentence_starts[s] : sentence_starts[s +
        1]]``.
    document_starts
        (documents + 1,): document `d` has the sentences ``document_starts[d]`` to
        ``document_starts[d + 1] - 1``.
    vocab_size
        All ids are below it.
    made_from
        What it was made from, as `build_token_store` was told.

    Examples
    --------
    >>> lengths = lambda texts: [[len(word) for word in text.split()] for text in texts]
    >>> path = Path(tempfile.mkdtemp()) / "lengths"
    >>> store = build_token_store(
    ...     [["a first sentence", "and more"], ["the end"]],
    ...     lengths,
    ...     path,
    ...     vocab_size=10,
    ... )
    >>> (
    ...     len(store),
    ...     store.ids.tolist(),
    ...     store.sentence_starts.tolist(),
    ...     store.document_starts.tolist(),
    ... )
    (2, [1, 5, 8, 3, 4, 3, 3], [0, 3, 5, 7], [0, 2, 3])
    >>> [sentence.tolist() for sentence in store.document(0)]
    [[1, 5, 8], [3, 4]]
    """

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
        """Return the sentences of one document.

        Parameters
        ----------
        index
            From 0 to the number of documents - 1.

        Returns
        -------
        list of np.ndarray
            The ids of each sentence, read only and not copied.

        Raises
        ------
        IndexError
            If there is no such document.
        """
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
    """Tokenise a corpus as it streams by and write it to disk.

    Parameters
    ----------
    documents
        The sentences of each document, in order. Taken one by one and not kept.
    encode
        Texts -> the ids of each, without special tokens.
    path
        The folder to make.
    vocab_size
        Ids run from 0 to `vocab_size` - 1; up to 65,536 they take two bytes each, else
        four.
    made_from
        What tells this corpus from others, e.g. fingerprints of data and tokenizer:
        JSON, kept in the store.
    at_once
        How many sentences are tokenised together: all that is in memory at one time.

    Returns
    -------
    TokenStore
        Opened. Sentences without a token, and documents without a sentence, are left
        out.

    Raises
    ------
    TokenStoreError
        If the folder is there already, or cannot be written.
    ValueError
        If the corpus has no token, an id is not in the vocabulary, or `encode` returns
        too few texts or too many.

    Examples
    --------
    >>> build_token_store(
    ...     [["a"]], lambda texts: [[7]], tempfile.mkdtemp(), vocab_size=10
    ... )
    Traceback (most recent call last):
        ...
    course_lib.pretraining.token_store.TokenStoreError: ... exists already; open it, or
    choose
    another name
    """
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
            shutil.rmtree(
                making, ignore_errors=True
            )  # after a rename there is nothing left to remove
    except OSError as error:
        raise TokenStoreError(
            f"could not write {path}: {error.strerror or error}; choose a folder that"
            " is writable and has room"
        ) from error
    return open_token_store(path)


def open_token_store(path: Path | str, verify: bool = True) -> TokenStore:
    """Map a store into memory, and check that it is one.

    Parameters
    ----------
    path
        Its folder.
    verify
        Whether to read all of it once and compare digests; sizes and boundaries are
        checked in any case.

    Returns
    -------
    TokenStore
        The store.

    Raises
    ------
    TokenStoreError
        If it is missing, cut short, altered, or no store.

    Examples
    --------
    >>> open_token_store("nowhere")
    Traceback (most recent call last):
        ...
    course_lib.pretraining.token_store.TokenStoreError: there is no token store nowhere
    (no
    nowhere/store.json); build it first
    """
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
            _mapped(path / name, dtype, record["files"][name], verify)
            for name, dtype in (
                ("ids.bin", id_type(vocab_size)),
                ("sentences.bin", "<i8"),
                ("documents.bin", "<i8"),
            )
        )
        _check_boundaries("sentences.bin", sentences, len(ids))
        _check_boundaries("documents.bin", documents, len(sentences) - 1)
        if verify and int(ids.max()) >= vocab_size:
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


def _mapped(
    file: Path, dtype: str, told: Mapping[str, Any], verify: bool
) -> np.ndarray:
    size = file.stat().st_size
    if size != told["bytes"]:
        raise ValueError(
            f"{file.name} has {size:,} bytes, but {told['bytes']:,} were written"
        )
    if verify:
        with open(file, "rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != told["sha256"]:
                raise ValueError(
                    f"{file.name} does not have the content that was written"
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
