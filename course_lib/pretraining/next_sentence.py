"""Next sentence prediction: does the second segment follow the first in the text?

Segments are runs of whole sentences. Each run of a document is cut in two at a random
sentence: two segments that are adjacent, with the label `IS_NEXT`. Then pairs of
different documents exchange their second segments, two by two, until half of all have
the label `NOT_NEXT`. Two things follow that drawing a second segment from anywhere
would not give:

- Neither segment alone tells the label. A segment drawn at random is often the first
  sentence of its document, or shorter than what follows a first segment of that length;
  here both labels have the same second segments.
- Each sentence is read once an epoch, by whatever pair has it.

A document of one sentence has no next one: it becomes a sequence of one segment, whose
label is `IGNORE`.

Letters of this module: S sentences, D documents of a corpus, R its pairs (as in
`packing`).
"""

import numpy as np
from jaxtyping import Integer

from course_lib.pretraining.masking import IGNORE
from course_lib.pretraining.packing import cut_into_runs
from course_lib.pretraining.sequences import Sequences

IS_NEXT, NOT_NEXT = 0, 1
BEGINNING = 8  # tokens that are compared to say whether two segments begin alike


def sentence_pairs(
    ids: Integer[np.ndarray, "N"],
    sentence_starts: Integer[np.ndarray, "S1"],
    document_starts: Integer[np.ndarray, "D1"],
    max_length: int,
    random: np.random.Generator,
    short_share: float = 0.1,
) -> Sequences:
    """Make pairs of segments of a corpus, half of them adjacent in it, half from two
    documents.

    Parameters
    ----------
    ids
        The ids of all tokens, to tell whether two segments begin alike.
    sentence_starts, document_starts
        The boundaries of the corpus; a sentence may have at most ``(max_length - 3) //
        2`` tokens (`course_lib.pretraining.packing.cut_long_sentences`).
    max_length
        Tokens of a pair with [CLS] and both [SEP].
    random
        For all draws.
    short_share
        Share of the runs that are shorter than would fit.

    Returns
    -------
    Sequences
        In the order of the corpus; labels `IS_NEXT`, `NOT_NEXT`, and `IGNORE` for a
        single sentence. Of both labels there are equally many, one or two pairs more or
        less where their number is not a multiple of four.

    Raises
    ------
    ValueError
        If a sentence is too long, or too few pairs are of different documents.

    Notes
    -----
    Devlin et al. 2019, task 2 in section 3.1 and appendix A.2.

    Examples
    --------
    Two documents of two sentences: the pairs (0:3, 3:7) and (7:9, 9:11).

    >>> bounds = np.array([0, 3, 7, 9, 11]), np.array([0, 2, 4])
    >>> pairs = sentence_pairs(
    ...     np.arange(11), *bounds, max_length=11, random=np.random.default_rng(2)
    ... )
    >>> pairs.starts.reshape(-1, 2).tolist(), pairs.labels.tolist()
    ([[0, 9], [7, 3]], [1, 1])
    """
    room = max_length - 3
    _check_room(sentence_starts, room)
    first, end, document = cut_into_runs(
        sentence_starts, document_starts, room, random, short_share
    )
    paired = end - first > 1
    middle = np.where(
        paired, first + random.integers(1, np.maximum(end - first, 2)), end
    )
    labels = np.where(paired, IS_NEXT, IGNORE)
    second = np.stack([sentence_starts[middle], sentence_starts[end]], axis=1)
    second[paired], labels[paired] = exchange_second_segments(
        ids,
        sentence_starts[np.stack([first, middle], axis=1)][paired],
        second[paired],
        document[paired],
        room,
        random,
    )
    return _as_sequences(
        np.stack([sentence_starts[first], sentence_starts[middle]], axis=1),
        second,
        labels,
    )


def _check_room(sentence_starts: np.ndarray, room: int) -> None:
    longest = int(np.diff(sentence_starts).max())
    if longest > room // 2:
        raise ValueError(
            f"a sentence has {longest} tokens; in pairs of max_length={room + 3}"
            f" there is room for {room // 2}: cut long ones with cut_long_sentences"
            " first"
        )


def exchange_second_segments(
    ids: Integer[np.ndarray, "N"],
    first: Integer[np.ndarray, "R 2"],
    second: Integer[np.ndarray, "R 2"],
    document: Integer[np.ndarray, "R"],
    room: int,
    random: np.random.Generator,
) -> tuple[Integer[np.ndarray, "R 2"], Integer[np.ndarray, "R"]]:
    """Let half of the pairs exchange their second segments, two by two."""
    count, length = len(first), second[:, 1] - second[:, 0]
    free = room - (first[:, 1] - first[:, 0])  # what each first segment leaves
    beginnings = _beginnings(ids, second)

    def may_exchange(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return (
            (document[one] != document[other])
            & ~_alike(beginnings[one], beginnings[other])
            & (length[other] <= free[one])
            & (length[one] <= free[other])
        )

    # by length, in random order where it is the same
    order = np.argsort(length + random.random(count))
    couples = order[: count // 2 * 2].reshape(-1, 2).T
    good = may_exchange(*couples)
    # Those that may not are most often of one document. Sorted by document, one half
    # meets the other: as long as no document has more than half of them, all meet
    # another one.
    bad = couples[:, ~good].ravel()
    rest = bad[np.argsort(document[bad], kind="stable")].reshape(2, -1)
    couples = np.concatenate([couples[:, good], rest[:, may_exchange(*rest)]], axis=1)
    # Two labels a couple, so a quarter as many couples as pairs; the rest of the
    # division is left to chance.
    wanted = int(count / 4 + random.random())
    if couples.shape[1] < count // 4:
        raise ValueError(
            f"of {count} pairs only {2 * couples.shape[1]} find a partner from another"
            f" document, but {count // 2} are to get a random second segment; take a"
            " corpus of more documents, none of which is most of it"
        )
    one, other = couples[:, random.permutation(couples.shape[1])[:wanted]]
    second, labels = second.copy(), np.full(count, IS_NEXT)
    second[one], second[other] = second[other], second[one]
    labels[one] = labels[other] = NOT_NEXT
    return second, labels


def _beginnings(ids: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """The first tokens of each segment, and -1 behind its end."""
    places = segments[:, :1] + np.arange(BEGINNING)
    within = places < segments[:, 1:]
    return np.where(within, ids[np.where(within, places, 0)].astype(np.int64), -1)


def _alike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether two beginnings have the same tokens, up to the end of the shorter one."""
    return ((one == other) | (one < 0) | (other < 0)).all(axis=1)


def _as_sequences(
    first: np.ndarray, second: np.ndarray, labels: np.ndarray
) -> Sequences:
    """One piece for a sequence whose second segment is empty, two for the others."""
    # (R, 2, 2): sequence, segment, start and end
    pieces = np.stack([first, second], axis=1)
    there = pieces[:, :, 1] > pieces[:, :, 0]
    return Sequences(
        starts=pieces[there][:, 0],
        ends=pieces[there][:, 1],
        segments=np.broadcast_to([0, 1], there.shape)[there],
        first_piece=np.concatenate([[0], np.cumsum(there.sum(axis=1))]),
        labels=labels,
    )
