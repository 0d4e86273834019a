"""What a model must beat: guesses of hidden tokens from counts, with no, one, two or
four neighbours.

Each control reads the same corrupted input as the model, and counts in the same
training text. Rare contexts are smoothed by Witten and Bell's rule (1991, method C;
Chen and Goodman 1999, section 2.4): after a context that was seen c times with t
different tokens, a share c / (c + t) goes by what was seen, the rest by the shorter
context.

Letters: V tokens of the vocabulary, N hidden positions of a batch.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from course_lab.ch06_pretraining.pretrain_scores import Guess
from course_lib.pretraining.batches import PreTrainingBatch
from course_lib.pretraining.token_store import TokenStore

AT_ONCE = 256  # positions: each has a distribution over the vocabulary


class NGrams:
    """Counts of tokens with their neighbours in the training text, within documents."""

    def __init__(self, store: TokenStore):
        self.size = store.vocab_size
        self.ids = np.asarray(store.ids).astype(np.int64)
        starts = store.sentence_starts[store.document_starts]
        self.document = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        # One count for what was never seen, so that no guess is impossible.
        counts = np.bincount(self.ids, minlength=self.size)
        self.share = _smoothed(
            counts[None].astype(float), np.full((1, self.size), 1 / self.size)
        )[0]

    @cached_property
    def _after_one(self) -> "_Table":
        return self._table((-1,))

    @cached_property
    def _before_one(self) -> "_Table":
        return self._table((1,))

    @cached_property
    def _after_two(self) -> "_Table":
        return self._table((-1, -2))

    @cached_property
    def _before_two(self) -> "_Table":
        return self._table((1, 2))

    @cached_property
    def _between(self) -> "_Table":
        return self._table((-1, 1))

    def after(self, left: np.ndarray) -> np.ndarray:
        """P(token | tokens to the left, nearest first), ``(N, 1 or 2)`` ->
        ``(N, V)``."""
        shorter = self._after_one.smooth(
            left[:, :1], np.broadcast_to(self.share, (len(left), self.size))
        )
        return shorter if left.shape[1] == 1 else self._after_two.smooth(left, shorter)

    def before(self, right: np.ndarray) -> np.ndarray:
        """P(token | tokens to the right, nearest first), ``(N, 1 or 2)`` ->
        ``(N, V)``."""
        shorter = self._before_one.smooth(
            right[:, :1], np.broadcast_to(self.share, (len(right), self.size))
        )
        return (
            shorter if right.shape[1] == 1 else self._before_two.smooth(right, shorter)
        )

    def both_sides(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """P(token | both sides), as if they were independent given the token; with one
        token each, then corrected."""
        joint = self.after(left) * self.before(right) / self.share
        joint /= joint.sum(axis=1, keepdims=True)
        if left.shape[1] == 1:
            return joint
        return self._between.smooth(np.stack([left[:, 0], right[:, 0]], axis=1), joint)

    def _table(self, offsets: tuple[int, ...]) -> "_Table":
        places = np.arange(max(0, -min(offsets)), len(self.ids) - max(0, *offsets))
        inside = np.all(
            [
                self.document[places + offset] == self.document[places]
                for offset in offsets
            ],
            axis=0,
        )
        places = places[inside]
        return _Table(
            np.stack([self.ids[places + offset] for offset in offsets], axis=1),
            self.ids[places],
            self.size,
        )


class _Table:
    """How often each token came in each context."""

    def __init__(self, contexts: np.ndarray, tokens: np.ndarray, size: int):
        self.size = size
        self.keys, row = np.unique(self._key(contexts), return_inverse=True)
        # the last row, of no counts, is that of contexts that were never seen
        shape = (len(self.keys) + 1, size)
        self.counts = csr_array((np.ones(len(row)), (row, tokens)), shape)

    def _key(self, contexts: np.ndarray) -> np.ndarray:
        return contexts @ (self.size ** np.arange(contexts.shape[1]))

    def smooth(self, contexts: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        key = self._key(contexts)
        row = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        row = np.where(
            (self.keys[row] == key) & (contexts >= 0).all(axis=1), row, len(self.keys)
        )
        return _smoothed(self.counts[row].toarray(), shorter)


def _smoothed(counts: np.ndarray, shorter: np.ndarray) -> np.ndarray:
    """Witten and Bell's mixture; without any count it is the shorter context's
    alone."""
    seen = counts.sum(axis=1, keepdims=True)
    different = (counts > 0).sum(axis=1, keepdims=True)
    different = np.maximum(different, 1)
    return (counts + different * shorter) / (seen + different)


CONTROLS = ("unigram", "bigram", "two-sided bigram", "two-sided trigram")


def guess_from_counts(ngrams: NGrams, name: str) -> Guess:
    """Return a control for `course_lab.ch06_pretraining.pretrain_scores.score`; it
    guesses no next sentences."""
    if name not in CONTROLS:
        raise ValueError(
            f"there is no control {name!r}; choose one of {', '.join(CONTROLS)}"
        )
    reach = 2 if name == "two-sided trigram" else 1

    def guess(batch: PreTrainingBatch) -> tuple[Tensor, None]:
        ids, places = batch.input_ids.numpy(), batch.masked_positions.numpy()
        padded = np.pad(ids, ((0, 0), (reach, reach)), constant_values=-1)
        row, column = places // ids.shape[1], places % ids.shape[1] + reach
        left = np.stack([padded[row, column - 1 - far] for far in range(reach)], axis=1)
        right = np.stack(
            [padded[row, column + 1 + far] for far in range(reach)], axis=1
        )
        parts = []
        for begin in range(0, len(places), AT_ONCE):
            one, other = left[begin : begin + AT_ONCE], right[begin : begin + AT_ONCE]
            if name == "unigram":
                shares = np.broadcast_to(ngrams.share, (len(one), ngrams.size))
            else:
                shares = (
                    ngrams.after(one)
                    if name == "bigram"
                    else ngrams.both_sides(one, other)
                )
            parts.append(torch.from_numpy(np.log(shares).astype(np.float32)))
        return torch.cat(parts) if parts else torch.zeros(0, ngrams.size), None

    return guess


def controls(ngrams: NGrams) -> Mapping[str, Guess]:
    """Return all controls that are made of counts, by name."""
    return {name: guess_from_counts(ngrams, name) for name in CONTROLS}
