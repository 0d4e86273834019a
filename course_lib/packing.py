"""From a tokenised corpus to rows of a batch: runs of whole sentences, put between [CLS] and [SEP].

A corpus is three arrays, as `course_lib.token_store.TokenStore` keeps them: the ids of all tokens, where each sentence
begins, and in which sentence each document begins. A sequence is made of *pieces*, intervals of the ids; nothing is
copied before a batch is asked for. All is arithmetic on whole arrays: no loop over tokens or sentences.

Letters of this module::

    N  tokens of the corpus     S  its sentences     D  its documents
    P  pieces of all sequences     R  sequences     B  sequences of a batch     T  positions

Chapter: pretraining
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Integer

from course_lib.wordpiece_training import SPECIAL_TOKENS

__all__ = [
    "Corpus",
    "Rows",
    "Sequences",
    "Specials",
    "batch_plan",
    "cut_into_runs",
    "cut_long_sentences",
    "lay_out",
    "pack",
]


@runtime_checkable
class Corpus(Protocol):
    """What is needed of a tokenised corpus.

    Notes
    -----
    Chapter: pretraining
    """

    @property
    def ids(self) -> np.ndarray:
        """The ids of all tokens, ``(N,)``."""

    @property
    def sentence_starts(self) -> np.ndarray:
        """Where each sentence begins in the ids, and at last where the ids end, ``(S + 1,)``."""

    @property
    def document_starts(self) -> np.ndarray:
        """Where each document begins in the sentences, and at last where the sentences end, ``(D + 1,)``."""


@dataclass(frozen=True)
class Specials:
    """The ids of the tokens that stand between the pieces of a sequence, and behind it.

    Parameters
    ----------
    pad_id, cls_id, sep_id
        Of [PAD], [CLS] and [SEP].

    Notes
    -----
    Chapter: pretraining

    Examples
    --------
    >>> Specials.of({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3})
    Specials(pad_id=0, cls_id=2, sep_id=3)
    """

    pad_id: int
    cls_id: int
    sep_id: int

    @classmethod
    def of(cls, vocab: Mapping[str, int]) -> "Specials":
        """Read them off a tokenizer's vocabulary, token -> id."""
        pad, _, first, separator, _ = SPECIAL_TOKENS
        for token in (pad, first, separator):
            if token not in vocab:
                raise ValueError(f"the vocabulary lacks {token}; train it with the special tokens, or add {token}")
        return cls(vocab[pad], vocab[first], vocab[separator])


@dataclass(frozen=True)
class Sequences:
    """Sequences as lists of pieces: sequence r has the pieces ``first_piece[r]`` to ``first_piece[r + 1] - 1``.

    Parameters
    ----------
    starts, ends
        Each piece's interval of the ids, ``(P,)``.
    segments
        Each piece's segment, 0 or 1, ``(P,)``.
    first_piece
        ``(R + 1,)``, from 0 to P.
    labels
        Each sequence's label, ``(R,)``; see `course_lib.next_sentence`.

    Notes
    -----
    Chapter: pretraining

    Examples
    --------
    >>> two = Sequences(*map(np.array, ([0, 5, 9], [5, 9, 12], [0, 1, 0], [0, 2, 3], [0, -100])))
    >>> len(two), two.lengths.tolist()
    (2, [12, 5])
    """

    starts: Integer[np.ndarray, "P"]
    ends: Integer[np.ndarray, "P"]
    segments: Integer[np.ndarray, "P"]
    first_piece: Integer[np.ndarray, "R1"]
    labels: Integer[np.ndarray, "R"]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Integer[np.ndarray, "R"]:
        """Tokens of each sequence with its special ones: [CLS], and a [SEP] behind each piece."""
        with_separators = np.concatenate([[0], np.cumsum(self.ends - self.starts + 1)])
        return 1 + np.diff(with_separators[self.first_piece])


@dataclass(frozen=True)
class Rows:
    """Sequences laid out as a matrix.

    Parameters
    ----------
    input_ids, token_type_ids
        ``(B, T)``, int64.
    special_tokens_mask
        ``(B, T)``: True at [CLS], [SEP] and padding.
    lengths
        ``(B,)``: tokens of each row before its padding.

    Notes
    -----
    Chapter: pretraining
    """

    input_ids: Integer[np.ndarray, "B T"]
    token_type_ids: Integer[np.ndarray, "B T"]
    special_tokens_mask: Bool[np.ndarray, "B T"]
    lengths: Integer[np.ndarray, "B"]


def cut_long_sentences(
    sentence_starts: Integer[np.ndarray, "S1"], document_starts: Integer[np.ndarray, "D1"], longest: int
) -> tuple[Integer[np.ndarray, "S2"], Integer[np.ndarray, "D1"]]:
    """Cut each sentence that is too long into the fewest parts that are not, as equal as can be; a part is a sentence.

    Parameters
    ----------
    sentence_starts, document_starts
        The boundaries of a corpus.
    longest
        Tokens that a sentence may have.

    Returns
    -------
    sentence_starts, document_starts : np.ndarray
        The boundaries with the parts as sentences. No token is lost.

    Notes
    -----
    Chapter: pretraining

    Examples
    --------
    >>> [starts.tolist() for starts in cut_long_sentences(np.array([0, 4, 15, 18]), np.array([0, 2, 3]), longest=5)]
    [[0, 4, 7, 11, 15, 18], [0, 4, 5]]
    """
    sizes = np.diff(sentence_starts)
    parts = -(-sizes // longest)
    before = np.concatenate([[0], np.cumsum(parts)])
    part = np.arange(before[-1]) - np.repeat(before[:-1], parts)  # 0, 1, ... within each sentence
    starts = np.repeat(sentence_starts[:-1], parts) + part * np.repeat(sizes, parts) // np.repeat(parts, parts)
    return np.append(starts, sentence_starts[-1]), before[document_starts]


def cut_into_runs(
    sentence_starts: Integer[np.ndarray, "S1"],
    document_starts: Integer[np.ndarray, "D1"],
    room: int,
    random: np.random.Generator,
    short_share: float = 0.1,
) -> tuple[Integer[np.ndarray, "R"], Integer[np.ndarray, "R"], Integer[np.ndarray, "R"]]:
    """Cut each document into runs of at least two whole sentences that fit together.

    A run takes the sentences that fit into the room, or for a share of the runs into a shorter one that is drawn. It
    leaves its last sentence to the next run where that would have a single one. What has a single sentence all
    the same (a document of one, or the last of a document between runs that are full) is a run of one.

    Parameters
    ----------
    sentence_starts, document_starts
        The boundaries of a corpus; any two neighbouring sentences must fit into the room.
    room
        Tokens of a run.
    random
        For the draws.
    short_share
        Share of the runs with a shorter room.

    Returns
    -------
    first, end, document : np.ndarray
        Each run's first sentence, the one behind its last, and its document. Every sentence is in one run.

    Notes
    -----
    As the code of Devlin et al. 2019 fills its sequences, short ones one in ten.

    Chapter: pretraining

    Examples
    --------
    >>> sentences, documents = np.array([0, 4, 8, 12, 16, 20, 22]), np.array([0, 5, 6])
    >>> runs = cut_into_runs(sentences, documents, room=16, random=np.random.default_rng(0), short_share=0.0)
    >>> [column.tolist() for column in runs]
    [[0, 5, 3], [3, 6, 5], [0, 1, 0]]
    """
    first, last, document = document_starts[:-1], document_starts[1:], np.arange(len(document_starts) - 1)
    runs = []
    while len(first):  # once for each run of the longest document, on all documents at the same time
        short = random.random(len(first)) < short_share
        fits = np.where(short, random.integers(2, room + 1, len(first)), room)
        end = np.searchsorted(sentence_starts, sentence_starts[first] + fits, side="right") - 1
        end = np.minimum(np.maximum(end, first + 2), last)
        end -= (last - end == 1) & (end - first >= 3)
        runs.append((first, end, document))
        more = end < last
        first, last, document = end[more], last[more], document[more]
    first, end, document = (np.concatenate(column) for column in zip(*runs, strict=True))
    return first, end, document


def pack(
    sentence_starts: Integer[np.ndarray, "S1"],
    document_starts: Integer[np.ndarray, "D1"],
    max_length: int,
    random: np.random.Generator,
    label: int,
    across_documents: bool = True,
) -> Sequences:
    """Fill sequences with whole sentences, one after the other, the documents in random order.

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
        Whether a sequence goes on with the next document where one ends, behind a [SEP]; else it ends there.

    Returns
    -------
    Sequences
        All pieces are of segment 0.

    Notes
    -----
    Liu et al. 2019, section 4.2: FULL-SENTENCES, and DOC-SENTENCES where documents are kept apart.

    Chapter: pretraining

    Examples
    --------
    >>> bounds = np.array([0, 4, 8, 10]), np.array([0, 2, 3])
    >>> packed = pack(*bounds, max_length=10, random=np.random.default_rng(3), label=-100)
    >>> packed.starts.tolist(), packed.ends.tolist(), packed.lengths.tolist()
    ([8, 0, 4], [10, 4, 8], [9, 6])
    """
    sizes = np.diff(document_starts)
    order = random.permutation(len(sizes))
    document = np.repeat(order, sizes[order])
    before = np.concatenate([[0], np.cumsum(sizes[order])])[:-1]
    sentence = np.arange(len(document)) + np.repeat(document_starts[order] - before, sizes[order])
    begins = np.ones(len(sentence), dtype=bool)  # where a document begins; a [SEP] stands before it, or [CLS]
    begins[1:] = document[1:] != document[:-1]
    lengths = np.diff(sentence_starts)[sentence]
    cost = np.concatenate([[0], np.cumsum(lengths + begins)])
    ends = np.searchsorted(cost, cost[:-1] + begins + max_length - 2, side="right") - 1
    if not across_documents:
        ends = np.minimum(ends, (before + sizes[order])[np.cumsum(begins) - 1])
    jump, at, row_starts = ends.tolist(), 0, []
    while at < len(jump):  # once for each sequence: where the next begins is known only when this one is full
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


def lay_out(
    ids: Integer[np.ndarray, "N"],
    sequences: Sequences,
    rows: Integer[np.ndarray, "B"],
    width: int,
    specials: Specials,
) -> Rows:
    """Write sequences into a matrix: [CLS], then each piece and a [SEP], then padding.

    Parameters
    ----------
    ids
        The ids of the corpus.
    sequences
        All sequences.
    rows
        Which of them.
    width
        Positions T of the matrix; none of the sequences may be longer.
    specials
        The ids between the pieces.

    Returns
    -------
    Rows
        The matrix; [CLS] and the first [SEP] are of segment 0, a [SEP] always of the segment that it ends.

    Notes
    -----
    Devlin et al. 2019, figure 2.

    Chapter: pretraining

    Examples
    --------
    >>> pair = Sequences(*map(np.array, ([2, 0], [5, 2], [0, 1], [0, 2], [0])))
    >>> made = lay_out(np.array([7, 8, 11, 12, 13]), pair, np.array([0]), width=10, specials=Specials(0, 101, 102))
    >>> made.input_ids.tolist(), made.token_type_ids.tolist()
    ([[101, 11, 12, 13, 102, 7, 8, 102, 0, 0]], [[0, 0, 0, 0, 0, 1, 1, 1, 0, 0]])
    """
    counts = sequences.first_piece[rows + 1] - sequences.first_piece[rows]
    row = np.repeat(np.arange(len(rows)), counts)
    piece = _ranges(sequences.first_piece[rows], counts)
    sizes = sequences.ends[piece] - sequences.starts[piece]
    lengths = 1 + np.bincount(row, sizes + 1, len(rows)).astype(np.int64)
    # Where each piece begins in the flattened matrix: behind [CLS], and behind the pieces before it in its row.
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
    segments[_ranges(place, sizes + 1)] = np.repeat(sequences.segments[piece], sizes + 1)
    shape = (len(rows), width)
    return Rows(input_ids.reshape(shape), segments.reshape(shape), special.reshape(shape), lengths)


def batch_plan(
    lengths: Integer[np.ndarray, "R"],
    tokens: int,
    multiple: int,
    random: np.random.Generator,
    drop_last: bool = False,
) -> list[tuple[int, Integer[np.ndarray, "_"]]]:
    """Put sequences of similar length together, so that few positions are padding and few widths occur.

    Each length is rounded up to a multiple; sequences of one width share batches of ``tokens // width``. What does not
    fill a batch goes on to the next width; what is left at the widest makes a smaller batch, or is dropped.

    Parameters
    ----------
    lengths
        Of all sequences.
    tokens
        Positions of a batch, padding included: at most so many.
    multiple
        Widths are multiples of it: matrix kernels like 8.
    random
        For who meets whom.
    drop_last
        Whether to drop what is left at the widest.

    Returns
    -------
    list of (int, np.ndarray)
        The width and the sequences of each batch, narrow ones first. No sequence is in two.

    Raises
    ------
    ValueError
        If not even one sequence of the greatest length fits into a batch.

    Notes
    -----
    Chapter: pretraining

    Examples
    --------
    >>> plan = batch_plan(np.array([3, 8, 15, 16, 5, 9]), tokens=32, multiple=8, random=np.random.default_rng(0))
    >>> [(width, sorted(rows.tolist())) for width, rows in plan]
    [(16, [0, 4]), (16, [1, 3]), (16, [2, 5])]
    """
    order = random.permutation(len(lengths))
    width_of = -(-lengths[order] // multiple) * multiple
    widest = int(width_of.max())
    if widest > tokens:
        raise ValueError(f"a batch has {tokens} positions, but a sequence needs {widest}; take larger batches")
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
