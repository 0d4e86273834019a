"""What chapter 9 compares: averaged static vectors, raw states of a BERT, siamese
encoders; and how alike vectors are.

All are called in one way: sentences in, one vector for each out.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lab.probing import start
from course_lib.bert.files import load_bert
from course_lib.bert.model import BertModel
from course_lib.sentence_bert.files import Pooling
from course_lib.sentence_bert.model import SentenceBert, token_ids
from course_lib.training.loop import device, set_seed
from course_lib.wordpiece.fast import FastWordPiece

Encode: TypeAlias = Callable[[Sequence[str]], Tensor]
STATIC = "static"


class StaticSentences:
    """Average the static vectors of a sentence's pieces: no order, no context."""

    def __init__(
        self, matrix: Tensor, tokenizer: FastWordPiece, max_length: int | None = None
    ):
        self.matrix, self.tokenizer, self.max_length = matrix, tokenizer, max_length

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """Return one vector for each sentence; zeros for one without a piece."""
        return self.means(self.pieces(sentences))

    def pieces(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence, as often as they occur."""
        return [
            ids[1:-1] for ids in token_ids(self.tokenizer, sentences, self.max_length)
        ]

    def means(self, pieces: Sequence[Sequence[int]]) -> Tensor:
        """Return the mean vector of each list of pieces; zeros for an empty one."""
        starts = torch.tensor([0, *map(len, pieces)]).cumsum(0)[:-1]
        flat = torch.tensor(
            [index for ids in pieces for index in ids], dtype=torch.long
        )
        return F.embedding_bag(flat, self.matrix, starts, mode="mean")


def static_from(
    bert: BertModel, tokenizer: FastWordPiece, max_length: int | None = None
) -> StaticSentences:
    """Take the vectors by which a BERT's tokens enter it, before any context is mixed
    in."""
    return StaticSentences(
        bert.embeddings.token.weight.detach().cpu().float(), tokenizer, max_length
    )


def read_encoder(
    folder: Path,
    pooling: Pooling = "mean",
    max_length: int | None = None,
    untrained: int | None = None,
) -> SentenceBert:
    """Make a sentence encoder of a checkpoint that was never trained for sentences."""
    with warnings.catch_warnings():
        # the heads of pre-training have no part in this
        warnings.filterwarnings("ignore", message=".*left aside")
        bert = load_bert(folder, dtype=torch.float32)
    if untrained is not None:
        set_seed(untrained)
        bert = start(BertModel(bert.config))
    return (
        SentenceBert(bert, FastWordPiece.load(folder), pooling, max_length=max_length)
        .eval()
        .to(device())
    )


def encoders_of(folder: Path, max_length: int, seed: int = 0) -> dict[str, Encode]:
    """Return the encoders that need no further training: of a checkpoint, and of the
    same sizes untrained."""
    mean, cls = (
        read_encoder(folder, pooling, max_length) for pooling in ("mean", "cls")
    )
    control = read_encoder(folder, "mean", max_length, untrained=seed)
    static = static_from(mean.bert, FastWordPiece.load(folder), max_length)
    return {
        STATIC: static.encode,
        "raw mean": lambda x: mean.encode(x, progress=False),
        "raw [CLS]": lambda x: cls.encode(x, progress=False),
        "untrained": lambda x: control.encode(x, progress=False),
    }


def mean_cosine(vectors: Tensor) -> float:
    """Return the mean cosine of all pairs of different vectors: 0 if they point into
    all directions alike."""
    if len(vectors) < 2:
        raise ValueError(f"{len(vectors)} vector makes no pair; give at least two")
    unit = F.normalize(vectors.double(), dim=1)
    # a vector of zeros is like none, and counts so
    present = int((unit.norm(dim=1) > 0).sum())
    return (float(unit.sum(dim=0).square().sum()) - present) / (
        len(unit) * (len(unit) - 1)
    )


def remembered(encode: Encode) -> Encode:
    """Return an encoder that reads no sentence twice: for texts that are in several
    collections."""
    known: dict[str, Tensor] = {}

    def look(sentences: Sequence[str]) -> Tensor:
        if new := [
            sentence for sentence in dict.fromkeys(sentences) if sentence not in known
        ]:
            known.update(zip(new, encode(new), strict=True))
        return torch.stack([known[sentence] for sentence in sentences])

    return look
