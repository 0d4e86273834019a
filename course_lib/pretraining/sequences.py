"""Sequences of a batch: pieces of a tokenised corpus between [CLS] and [SEP], laid out
as a matrix.

A piece is an interval of the corpus's ids, so nothing is copied before a batch is asked
for. All is arithmetic on whole arrays: no loop over tokens.

Other letters: N, tokens of the corpus; P, pieces of all sequences; R,
sequences.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Integer

from course_lib.wordpiece.training import SPECIAL_TOKENS


@dataclass(frozen=True)
class Specials:
    """The ids of the tokens that stand between the parts of a sequence, or behind."""

    pad_id: int
    cls_id: int
    sep_id: int

    @classmethod
    def of(cls, vocab: Mapping[str, int]) -> "Specials":
        """Read them off a tokenizer's vocabulary, token -> id."""
        pad, _, first, separator, _ = SPECIAL_TOKENS
        for token in (pad, first, separator):
            if token not in vocab:
                raise ValueError(
                    f"the vocabulary lacks {token}; train it with the special tokens,"
                    f" or add {token}"
                )
        return cls(vocab[pad], vocab[first], vocab[separator])


@dataclass(frozen=True)
class Sequences:
    """Sequences as lists of pieces: sequence r has the pieces ``first_piece[r]`` to
    ``first_piece[r + 1] - 1``."""

    starts: Integer[np.ndarray, "P"]
    ends: Integer[np.ndarray, "P"]
    segments: Integer[np.ndarray, "P"]
    first_piece: Integer[np.ndarray, "R1"]
    labels: Integer[np.ndarray, "R"]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Integer[np.ndarray, "R"]:
        """Tokens of each sequence with its special ones: [CLS], and a [SEP] behind each
        piece."""
        with_separators = np.concatenate([[0], np.cumsum(self.ends - self.starts + 1)])
        return 1 + np.diff(with_separators[self.first_piece])


@dataclass(frozen=True)
class Rows:
    """Sequences laid out as a matrix."""

    input_ids: Integer[np.ndarray, "B T"]
    token_type_ids: Integer[np.ndarray, "B T"]
    special_tokens_mask: Bool[np.ndarray, "B T"]
    lengths: Integer[np.ndarray, "B"]


def lay_out(
    ids: Integer[np.ndarray, "N"],
    sequences: Sequences,
    rows: Integer[np.ndarray, "B"],
    width: int,
    specials: Specials,
) -> Rows:
    """Write sequences into a matrix: [CLS], then each piece and a [SEP], then
    padding."""
    counts = sequences.first_piece[rows + 1] - sequences.first_piece[rows]
    row = np.repeat(np.arange(len(rows)), counts)
    piece = _ranges(sequences.first_piece[rows], counts)
    sizes = sequences.ends[piece] - sequences.starts[piece]
    lengths = 1 + np.bincount(row, sizes + 1, len(rows)).astype(np.int64)
    # Where each piece begins in the flattened matrix: behind [CLS], and behind the
    # pieces before it in its row.
    before = np.cumsum(sizes + 1) - (sizes + 1)
    row_before = np.cumsum(lengths - 1) - (lengths - 1)
    place = row * width + 1 + before - row_before[row]

    input_ids = np.full(len(rows) * width, specials.pad_id, dtype=np.int64)
    special = np.ones(len(rows) * width, dtype=bool)
    segments = np.zeros(len(rows) * width, dtype=np.int64)
    input_ids[np.arange(len(rows)) * width] = specials.cls_id
    tokens = _ranges(place, sizes)
    input_ids[tokens] = ids[_ranges(sequences.starts[piece], sizes)]
    special[tokens] = False
    input_ids[place + sizes] = specials.sep_id
    segments[_ranges(place, sizes + 1)] = np.repeat(
        sequences.segments[piece], sizes + 1
    )
    shape = (len(rows), width)
    return Rows(
        input_ids.reshape(shape),
        segments.reshape(shape),
        special.reshape(shape),
        lengths,
    )


def batch_plan(
    lengths: Integer[np.ndarray, "R"],
    tokens: int,
    multiple: int,
    random: np.random.Generator,
    drop_last: bool = False,
) -> list[tuple[int, Integer[np.ndarray, "_"]]]:
    """Put sequences of similar length together, so that few positions are padding and
    few widths occur."""
    order = random.permutation(len(lengths))
    width_of = -(-lengths[order] // multiple) * multiple
    widest = int(width_of.max())
    if widest > tokens:
        raise ValueError(
            f"a batch has {tokens} positions, but a sequence needs {widest}; take"
            " larger batches"
        )
    plan, left = [], order[:0]
    for width in range(multiple, widest + 1, multiple):
        left = np.concatenate([left, order[width_of == width]])
        size = tokens // width
        whole = len(left) // size * size
        plan += [(width, rows) for rows in left[:whole].reshape(-1, size)]
        left = left[whole:]
    return plan if drop_last or not len(left) else [*plan, (widest, left)]


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Concatenate ``arange(start, start + size)`` of all."""
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts - before, sizes)
