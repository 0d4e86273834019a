"""What a pre-training reads: documents cut into sentences, a vocabulary learnt from
them, and their ids on disk.

Everything is made once and kept beside the cache of `datasets`, under a name that says
what it was made from: the text, the size of the vocabulary, the versions of the code.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from datasets import Dataset
from filelock import FileLock

from course_lib.data import load, sentences
from course_lib.data.arrow_cache import folder_for
from course_lib.data.sentences import split_sentences
from course_lib.files import digest_of_code
from course_lib.pretraining import token_store
from course_lib.pretraining.token_store import (
    TokenStore,
    cached_token_store,
    fingerprint,
)
from course_lib.wordpiece import fast as fast_wordpiece
from course_lib.wordpiece import normalize as text_normalization
from course_lib.wordpiece import training as wordpiece_training
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.training import count_words, train_wordpiece

SPLITS = ("train", "validation", "test")
# Corpora whose rows are too short to be documents: neighbours that agree in these
# columns are one.
DOCUMENT_KEYS = {"pydocs": ("package", "module")}


@dataclass(frozen=True)
class Corpus:
    """A tokenised corpus."""

    name: str  # of the data set
    tokenizer: FastWordPiece  # learnt from the train split
    stores: Mapping[str, TokenStore]  # the ids of each split
    fingerprints: Mapping[str, str]  # of the text of each split

    def identity(self) -> dict[str, str]:
        """Return what must not change while a model is trained: fingerprints of the
        texts and of the vocabulary."""
        return {**self.fingerprints, "vocabulary": fingerprint([self.tokenizer.pieces])}


def prepare(data: str, vocab_size: int, source: str | None = None) -> Corpus:
    """Load a corpus, learn a vocabulary from its train split and tokenise all splits,
    or open what was made before."""
    splits = load(data, source)
    if lacking := [
        split
        for split in SPLITS
        if split not in splits or "paragraphs" not in splits[split].features
    ]:
        raise ValueError(
            f"{data} has no {lacking[0]} split with paragraphs; choose a corpus, e.g."
            " pydocs or stories"
        )
    keys = DOCUMENT_KEYS.get(data, ())
    texts = {
        split: fingerprint(documents(_rows(splits[split]), keys)) for split in SPLITS
    }
    tokenizer, vocabulary = _vocabulary(
        data, splits["train"], texts["train"], vocab_size
    )
    stores = {
        split: cached_token_store(
            vocabulary.parent,
            f"tokens-{data}-{split}",
            {
                "text": texts[split],
                "vocabulary": hashlib.sha256(
                    (vocabulary / "vocab.txt").read_bytes()
                ).hexdigest()[:16],
                "code": _code(),
            },
            partial(documents, _rows(splits[split]), keys),
            partial(_encode, tokenizer),
            len(tokenizer),
        )
        for split in SPLITS
    }
    return Corpus(data, tokenizer, stores, texts)


def documents(
    rows: Iterable[Mapping[str, Any]], keys: tuple[str, ...] = ()
) -> Iterator[list[str]]:
    """Yield documents as lists of sentences."""
    if not keys:
        for row in rows:
            yield [
                sentence
                for paragraph in row["paragraphs"]
                for sentence in split_sentences(paragraph)
            ]
        return
    for _, group in groupby(rows, key=lambda row: tuple(row[key] for key in keys)):
        yield [
            sentence
            for row in group
            for paragraph in row["paragraphs"]
            for sentence in split_sentences(paragraph)
        ]


def _encode(tokenizer: FastWordPiece, sentences: list[str]) -> list[list[int]]:
    return [
        one.ids
        for one in tokenizer.encode_in_rust(list(sentences), add_special_tokens=False)
    ]


def _rows(rows: Dataset) -> Iterable[dict[str, Any]]:
    # datasets declares its rows as dict or list, since a slice is a dict of lists
    return rows


def _vocabulary(
    data: str, train: Dataset, text: str, vocab_size: int
) -> tuple[FastWordPiece, Path]:
    """Learn a vocabulary, or read the one that was learnt from this text by
    this code."""
    ingredients = {"text": text, "size": str(vocab_size), "code": _code()}
    folder = folder_for(f"vocabulary-{data}-{vocab_size}", ingredients)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "tokenizer.json").is_file():  # written last
            paragraphs = (paragraph for row in train for paragraph in row["paragraphs"])
            # Not FastWordPiece.train: the library's trainer breaks ties differently in
            # each process.
            FastWordPiece(
                train_wordpiece(
                    count_words(paragraphs), vocab_size, score="frequency"
                ).vocab
            ).save(folder)
    return FastWordPiece.load(folder), folder


def _code() -> str:
    """A digest of the modules that decide how text becomes ids."""
    modules = (
        sentences,
        fast_wordpiece,
        text_normalization,
        token_store,
        wordpiece_training,
    )
    files = [__file__, *(str(module.__file__) for module in modules)]
    return digest_of_code(files, imports=False)[:16]
