"""What it costs to find the most similar pair of N sentences: with a cross-encoder, and with vectors (chapter 9).

Both have the same encoder. One reads every pair, the other every sentence; then vectors are compared. Times are taken
turn by turn in one process on one thread, by the clock of the process, which stands still while others compute.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from course_lib.experiments.sentence_encoders import read_encoder
from course_lib.finetuning import SequenceClassifier, predict
from course_lib.sentence_search import closest_pairs

NUMBER = 10_000  # sentences, as in Reimers and Gurevych 2019, section 1


class Cost(NamedTuple):
    """Seconds of processor time, one value for each round.

    Parameters
    ----------
    pair
        To read a pair with the cross-encoder.
    sentence
        To read a sentence with the bi-encoder.
    search
        To find the closest of all pairs of `NUMBER` vectors.
    """

    pair: list[float]
    sentence: list[float]
    search: list[float]

    @property
    def cross(self) -> np.ndarray:
        """Seconds for all pairs of `NUMBER` sentences, by round."""
        return number_of_pairs(NUMBER) * np.array(self.pair)

    @property
    def bi(self) -> np.ndarray:
        """Seconds to encode as many sentences and to find the closest pair, by round."""
        return NUMBER * np.array(self.sentence) + np.array(self.search)

    @property
    def ratio(self) -> tuple[float, float, float]:
        """The median over the rounds of the one over the other, with the least and the greatest."""
        ratios = self.cross / self.bi
        return float(np.median(ratios)), float(ratios.min()), float(ratios.max())


def number_of_pairs(sentences: int) -> int:
    """Return how many pairs so many sentences make.

    Examples
    --------
    >>> number_of_pairs(10_000)
    49995000
    """
    return sentences * (sentences - 1) // 2


def measure_cost(
    folder: Path, texts: Sequence[str], sentences: int = 800, pairs: int = 400, rounds: int = 3, max_length: int = 128
) -> Cost:
    """Time both ways with equal weights.

    Parameters
    ----------
    folder
        A checkpoint.
    texts
        Sentences of the kind that is looked through; each round draws from them.
    sentences, pairs
        How many of each are timed in a round, once all are warm.
    rounds
        How often; who goes first changes.
    max_length
        Tokens of a sentence, and half of those of a pair.

    Returns
    -------
    Cost
        By round.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(left aside|new, to be trained|new weights)")
        cross = SequenceClassifier.from_pretrained(folder, labels=1, dtype=torch.float32)
    bi, random = read_encoder(folder, "mean", max_length), np.random.default_rng(0)
    vectors = torch.from_numpy(random.normal(size=(NUMBER, bi.hidden_size)).astype(np.float32))
    found = Cost([], [], [])
    with one_thread():
        for turn in range(-1, rounds):
            alone = [texts[index] for index in random.integers(0, len(texts), sentences)]
            drawn = random.integers(0, len(texts), (pairs, 2)).tolist()
            together = [(texts[a], texts[b]) for a, b in drawn]
            steps: list[tuple[list[float], int, Callable[[], object]]] = [
                (found.pair, pairs, partial(predict, cross, bi.tokenizer, together, max_length=2 * max_length)),
                (found.sentence, sentences, partial(bi.encode, alone, progress=False)),
                (found.search, 1, partial(closest_pairs, vectors, k=1)),
            ]
            for spent, number, step in steps if turn % 2 else steps[::-1]:
                started = time.process_time()
                step()
                if turn >= 0:
                    spent.append((time.process_time() - started) / number)
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread meanwhile: then the clock of the process is a fair one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
