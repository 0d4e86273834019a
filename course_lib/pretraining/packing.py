"""What goes into a sequence: runs of whole sentences that fit together.

A corpus is three arrays, as a `TokenStore` keeps them: the ids of all tokens, where
each sentence begins, and in which sentence each document begins. All is arithmetic on
whole arrays: no loop over tokens or sentences.

Other letters: S, sentences; D, documents; R, sequences or runs; S1, D1, one more, since
the end is written too.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Integer

from course_lib.pretraining.sequences import Sequences


@runtime_checkable
class Corpus(Protocol):
    """What is needed of a tokenised corpus."""

    @property
    def ids(self) -> np.ndarray:
        """The ids of all tokens, ``(N,)``."""

    @property
    def sentence_starts(self) -> np.ndarray:
        """Where each sentence begins in the ids, and at last where the ids end, ``(S +
        1,)``."""

    @property
    def document_starts(self) -> np.ndarray:
        """Where each document begins in the sentences, and at last where the sentences
        end, ``(D + 1,)``."""


def cut_long_sentences(
    sentence_starts: Integer[np.ndarray, "S1"],
    document_starts: Integer[np.ndarray, "D1"],
    longest: int,
) -> tuple[Integer[np.ndarray, "S2"], Integer[np.ndarray, "D1"]]:
    """Cut each sentence that is too long into the fewest parts that are not, as equal
    as can be; a part is a sentence."""
    sizes = np.diff(sentence_starts)
    parts = -(-sizes // longest)
    before = np.concatenate([[0], np.cumsum(parts)])
    # 0, 1, ... within each sentence
    part = np.arange(before[-1]) - np.repeat(before[:-1], parts)
    starts = np.repeat(sentence_starts[:-1], parts) + part * np.repeat(
        sizes, parts
    ) // np.repeat(parts, parts)
    return np.append(starts, sentence_starts[-1]), before[document_starts]


def cut_into_runs(
    sentence_starts: Integer[np.ndarray, "S1"],
    document_starts: Integer[np.ndarray, "D1"],
    room: int,
    random: np.random.Generator,
    short_share: float = 0.1,
) -> tuple[
    Integer[np.ndarray, "R"], Integer[np.ndarray, "R"], Integer[np.ndarray, "R"]
]:
    """Cut each document into runs of at least two whole sentences that fit together."""
    first = document_starts[:-1]
    last = document_starts[1:]
    document = np.arange(len(document_starts) - 1)
    runs = []
    # once for each run of the longest document, on all documents at the same time
    while len(first):
        short = random.random(len(first)) < short_share
        fits = np.where(short, random.integers(2, room + 1, len(first)), room)
        end = (
            np.searchsorted(
                sentence_starts, sentence_starts[first] + fits, side="right"
            )
            - 1
        )
        end = np.minimum(np.maximum(end, first + 2), last)
        end -= (last - end == 1) & (end - first >= 3)
        runs.append((first, end, document))
        more = end < last
        first, last, document = end[more], last[more], document[more]
    first, end, document = (
        np.concatenate(column) for column in zip(*runs, strict=True)
    )
    return first, end, document


def pack(
    sentence_starts: Integer[np.ndarray, "S1"],
    document_starts: Integer[np.ndarray, "D1"],
    max_length: int,
    random: np.random.Generator,
    label: int,
    across_documents: bool = True,
) -> Sequences:
    """Fill sequences with whole sentences, one after the other, the documents in random
    order.

    Parameters
    ----------
    sentence_starts, document_starts
        The boundaries of a corpus; each sentence must fit into ``max_length - 2``.
    max_length
        Tokens of a sequence with [CLS] and each [SEP].
    random
        For the order of the documents.
    label
        The label that all sequences get.
    across_documents
        Whether a sequence goes on with the next document where one ends, behind a
        [SEP]; else it ends there.

    Returns
    -------
    Sequences
        All pieces are of segment 0.

    Notes
    -----
    Liu et al. 2019, section 4.2: FULL-SENTENCES, and DOC-SENTENCES where documents are
    kept apart.

    Examples
    --------
    >>> bounds = np.array([0, 4, 8, 10]), np.array([0, 2, 3])
    >>> packed = pack(
    ...     *bounds, max_length=10, random=np.random.default_rng(3), label=-100
    ... )
    >>> packed.starts.tolist(), packed.ends.tolist(), packed.lengths.tolist()
    ([8, 0, 4], [10, 4, 8], [9, 6])
    """
    sizes = np.diff(document_starts)
    order = random.permutation(len(sizes))
    document = np.repeat(order, sizes[order])
    before = np.concatenate([[0], np.cumsum(sizes[order])])[:-1]
    sentence = np.arange(len(document)) + np.repeat(
        document_starts[order] - before, sizes[order]
    )
    # where a document begins; a [SEP] stands before it, or [CLS]
    begins = np.ones(len(sentence), dtype=bool)
    begins[1:] = document[1:] != document[:-1]
    lengths = np.diff(sentence_starts)[sentence]
    cost = np.concatenate([[0], np.cumsum(lengths + begins)])
    ends = np.searchsorted(cost, cost[:-1] + begins + max_length - 2, side="right") - 1
    if not across_documents:
        ends = np.minimum(ends, (before + sizes[order])[np.cumsum(begins) - 1])
    jump, at, row_starts = ends.tolist(), 0, []
    # once for each sequence: where the next begins is known only when this one is full
    while at < len(jump):
        row_starts.append(at)
        at = jump[at]
    new_row = np.zeros(len(sentence), dtype=bool)
    new_row[row_starts] = True
    new_piece = np.flatnonzero(new_row | begins)
    piece_ends = np.append(new_piece[1:], len(sentence)) - 1
    rows_of_pieces = np.flatnonzero(new_row[new_piece])
    return Sequences(
        starts=sentence_starts[sentence[new_piece]],
        ends=sentence_starts[sentence[piece_ends] + 1],
        segments=np.zeros(len(new_piece), dtype=np.int64),
        first_piece=np.append(rows_of_pieces, len(new_piece)),
        labels=np.full(len(row_starts), label),
    )
