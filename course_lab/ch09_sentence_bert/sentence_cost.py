"""What it costs to find the most similar pair of N sentences: with a cross-encoder, and
with vectors (chapter 9).

Both have the same encoder. One reads every pair, the other every sentence; then vectors
are compared. Times are taken turn by turn in one process on one thread, by the clock of
the process, which stands still while others compute.
"""

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from course_lab.ch09_sentence_bert.sentence_encoders import read_encoder
from course_lib.finetuning.finetune import SequenceClassifier, predict
from course_lib.sentence_bert.model import SentenceBert
from course_lib.sentence_bert.search import closest_pairs

NUMBER = 10_000  # sentences, as in Reimers and Gurevych 2019, section 1
WARM = 1  # rounds that do not count

Kind: TypeAlias = Literal["first state", "every state", "sentence-transformers"]
#: What the last layer computes: [CLS] alone, which is all that our classifier reads;
#: every position, as the encoder of sentences does; and the library's own pair of
#: models, which computes every position on both sides.
KINDS: tuple[Kind, ...] = ("first state", "every state", "sentence-transformers")


class Cost(NamedTuple):
    """Seconds (of the processor, or of a GPU), one value for each round."""

    pair: list[float]  # to read a pair with the cross-encoder
    sentence: list[float]  # to read a sentence with the bi-encoder
    search: list[float]  # to find the closest of all pairs of `NUMBER` vectors

    @property
    def cross(self) -> np.ndarray:
        """Seconds for all pairs of `NUMBER` sentences, by round."""
        return number_of_pairs(NUMBER) * np.array(self.pair)

    @property
    def bi(self) -> np.ndarray:
        """Seconds to encode as many sentences and to find the closest pair, by
        round."""
        return NUMBER * np.array(self.sentence) + np.array(self.search)

    @property
    def ratio(self) -> tuple[float, float, float]:
        """The median over the rounds of the one over the other, with the least and the
        greatest."""
        ratios = self.cross / self.bi
        return float(np.median(ratios)), float(ratios.min()), float(ratios.max())


def number_of_pairs(sentences: int) -> int:
    """Return how many pairs so many sentences make."""
    return sentences * (sentences - 1) // 2


class _EveryState(SequenceClassifier):
    """A classifier whose last layer computes every position, though it reads [CLS]
    alone."""

    def forward(self, *inputs: Any) -> Tensor:
        return self.classifier(self.dropout(self.bert(*inputs).pooler_output))


class Sides(NamedTuple):
    """Both ways to compare sentences, with equal weights."""

    read_pairs: Callable[[Sequence[tuple[str, str]]], Any]  # scores pairs of texts
    read_alone: Callable[[Sequence[str]], Any]  # makes a vector of each text
    features: int  # of a vector


def both_sides(folder: Path, kind: Kind, max_length: int, device: str = "cpu") -> Sides:
    """Make a cross-encoder and a bi-encoder of one checkpoint."""
    bi = read_encoder(folder, "mean", max_length).to(device)
    if kind == "sentence-transformers":
        return _library_sides(bi, max_length, device)
    head = SequenceClassifier if kind == "first state" else _EveryState
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*(left aside|new, to be trained|new weights)"
        )
        cross = head.from_pretrained(folder, labels=1, dtype=torch.float32)
        cross = cross.to(device).eval()
    return Sides(
        lambda pairs: predict(
            cross, bi.tokenizer, pairs, max_length=2 * max_length - 1
        ),
        lambda texts: bi.encode(texts, progress=False),
        bi.hidden_size,
    )


def _library_sides(bi: SentenceBert, max_length: int, device: str) -> Sides:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    with tempfile.TemporaryDirectory() as copy, _quiet():
        bi.save_pretrained(copy)
        theirs = SentenceTransformer(copy, device=device)
        theirs.max_seq_length = max_length
        cross = CrossEncoder(
            copy, num_labels=1, max_length=2 * max_length - 1, device=device
        )
    return Sides(
        partial(cross.predict, show_progress_bar=False),
        partial(theirs.encode, show_progress_bar=False),
        bi.hidden_size,
    )


def texts_of_length(texts: Sequence[str], words: int) -> list[str]:
    """Join texts one after the other until each has at least so many words, and so at
    least as many tokens."""
    found, parts = [], []
    for text in texts:
        parts.append(text)
        if sum(len(part.split()) for part in parts) >= words:
            found.append(" ".join(parts))
            parts = []
    return found


def measure_cost(
    folder: Path,
    texts: Sequence[str],
    sentences: int = 800,
    pairs: int = 400,
    rounds: int = 3,
    max_length: int = 128,
    kind: Kind = "first state",
    device: str = "cpu",
) -> Cost:
    """Time both ways with equal weights."""
    sides = both_sides(folder, kind, max_length, device)
    random = np.random.default_rng(0)
    vectors = torch.from_numpy(
        random.normal(size=(NUMBER, sides.features)).astype(np.float32)
    ).to(device)
    found = Cost([], [], [])
    with one_thread():
        for turn in range(-WARM, rounds):
            alone = [
                texts[index] for index in random.integers(0, len(texts), sentences)
            ]
            drawn = random.integers(0, len(texts), (pairs, 2)).tolist()
            together = [(texts[a], texts[b]) for a, b in drawn]
            steps: list[tuple[list[float], int, Callable[[], object]]] = [
                (found.pair, pairs, partial(sides.read_pairs, together)),
                (found.sentence, sentences, partial(sides.read_alone, alone)),
                (found.search, 1, partial(closest_pairs, vectors, k=1)),
            ]
            for spent, number, step in steps if turn % 2 else steps[::-1]:
                started = _clock(device)
                step()
                if turn >= 0:
                    spent.append((_clock(device) - started) / number)
    return found


def _clock(device: str) -> float:
    """Read the clock of this process; for a GPU that of the wall, once all is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back what transformers says of a head that is new: it is meant to be."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread meanwhile: then the clock of the process is a
    fair one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
