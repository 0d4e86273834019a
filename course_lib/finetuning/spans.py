"""Answers as spans of a text: windows over a long one, the tokens of an answer, and the
best span (SQuAD).

A question and its context are one input: [CLS] question [SEP] context [SEP]. A context
that does not fit is read in overlapping windows. A token of the context knows its place
in the original text, so that a span of tokens is a stretch of characters, and the
answer is cut out of the text as it was typed.

Letters of this module: T tokens of a window, W windows of a question.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import CLS, SEP, WordPiece

NO_ANSWER = (0, 0)
"""Start and end of "there is no answer here": both at [CLS] (Devlin et al. 2019,
section 4.3)."""

Offsets = tuple[int, int] | None


class Window(NamedTuple):
    """A question and a part of its context as one input."""

    input_ids: list[int]
    token_type_ids: list[int]
    offsets: list[Offsets]
    best_context: list[bool]
    covers: tuple[int, int]


class Span(NamedTuple):
    """A possible answer."""

    start: int
    end: int
    score: float
    probability: float

    def text(self, context: str) -> str:
        """Cut the answer out of its context; empty for no answer."""
        return context[self.start : self.end]


def windows(
    question: str,
    context: str,
    tokenizer: WordPiece | FastWordPiece,
    max_length: int = 384,
    stride: int = 128,
    max_question_length: int = 64,
) -> list[Window]:
    """Lay a question and its context out as inputs, several where the context is long.

    Parameters
    ----------
    question, context
        The texts.
    tokenizer
        Of the model.
    max_length
        Tokens of a window with [CLS] and both [SEP].
    stride
        Tokens by which a window begins after the one before; the rest is seen twice.
    max_question_length
        Tokens of the question; what is beyond is cut off.

    Returns
    -------
    list of Window
        At least one. Every token of the context is in one of them, and in exactly one
        with `best_context`.

    Raises
    ------
    ValueError
        If there is no room for the context, or the stride would leave out tokens.

    Notes
    -----
    ``doc_stride`` and ``max_query_length`` in the code of Devlin et al. 2019.

    Examples
    --------
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "who", "jim", "was", "there"])
    >>> for window in windows(
    ...     "Who", "Jim was there", tokenizer, max_length=6, stride=1
    ... ):
    ...     print(
    ...         tokenizer.decode(window.input_ids, False),
    ...         window.offsets[3:-1],
    ...         window.best_context[3:-1],
    ...     )
    [CLS] who [SEP] jim was [SEP] [(0, 3), (4, 7)] [True, True]
    [CLS] who [SEP] was there [SEP] [(4, 7), (8, 13)] [False, True]
    """
    asked = tokenizer.encode(question, add_special_tokens=False).ids[
        :max_question_length
    ]
    read = tokenizer.encode(context, add_special_tokens=False)
    room = max_length - len(asked) - 3
    if room < 1:
        raise ValueError(
            f"max_length={max_length} leaves no room beside a question of {len(asked)}"
            f" tokens; pass at least {len(asked) + 4}, or a smaller max_question_length"
        )
    if stride < 1:
        raise ValueError(f"stride is {stride}; windows go forward by at least 1 token")
    if stride > room and len(read.ids) > room:
        raise ValueError(
            f"stride={stride} is more than the {room} tokens of context that a window"
            " holds, so some would be in none; choose a smaller stride"
        )
    begins = [0]
    while begins[-1] + room < len(read.ids):
        begins.append(begins[-1] + stride)
    parts = [(begin, min(begin + room, len(read.ids))) for begin in begins]
    best = _best_windows(parts, len(read.ids))
    first, last = tokenizer.vocab[CLS], tokenizer.vocab[SEP]
    before = len(asked) + 2
    # edges[i] is the token before token i
    edges = [(0, 0), *read.offsets, (len(context), len(context))]
    return [
        Window(
            [first, *asked, last, *read.ids[begin:end], last],
            [0] * before + [1] * (end - begin + 1),
            [*[None] * before, *read.offsets[begin:end], None],
            [
                *[False] * before,
                *(best[token] == number for token in range(begin, end)),
                False,
            ],
            (edges[begin][1], edges[end + 1][0]),
        )
        for number, (begin, end) in enumerate(parts)
    ]


def _best_windows(parts: Sequence[tuple[int, int]], tokens: int) -> list[int]:
    """For each token the window that shows most on its poorer side; of equals the
    longer, then the first."""
    best, most = [0] * tokens, [(-1, -1)] * tokens
    for number, (begin, end) in enumerate(parts):
        for token in range(begin, end):
            shown = (min(token - begin, end - 1 - token), end - begin)
            if shown > most[token]:
                best[token], most[token] = number, shown
    return best


def answer_positions(window: Window, start: int, end: int) -> tuple[int, int]:
    """Find the tokens of an answer that is given in characters.

    Parameters
    ----------
    window
        A window on its context.
    start, end
        The answer is ``context[start:end]``.

    Returns
    -------
    (int, int)
        Positions of its first and its last token in the window; `NO_ANSWER` if the
        window does not hold all of it. An answer that begins or ends within a token
        gets that token.

    Raises
    ------
    ValueError
        If the answer has no character.

    Examples
    --------
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "who", "jim", "was", "there"])
    >>> [window] = windows("Who", "Jim was there", tokenizer)
    >>> answer_positions(window, 4, 13)
    (4, 5)
    """
    if not 0 <= start < end:
        raise ValueError(
            f"an answer from character {start} to {end} has none; leave start and end"
            " out if there is none"
        )
    inside = window.covers[0] <= start and end <= window.covers[1]
    places = [
        (position, x) for position, x in enumerate(window.offsets) if x is not None
    ]
    touched = [
        position for position, (first, last) in places if first < end and last > start
    ]
    return (touched[0], touched[-1]) if inside and touched else NO_ANSWER


def null_score(
    start_logits: Sequence[Float[Tensor, "_"]], end_logits: Sequence[Float[Tensor, "_"]]
) -> float:
    """Score that there is no answer: S·C + E·C at [CLS], in the window that believes in
    it least."""
    return min(
        float(start[0] + end[0])
        for start, end in zip(start_logits, end_logits, strict=True)
    )


def best_spans(
    start_logits: Sequence[Float[Tensor, "_"]],
    end_logits: Sequence[Float[Tensor, "_"]],
    of_windows: Sequence[Window],
    n_best: int = 20,
    max_answer_length: int = 30,
    null_threshold: float | None = None,
) -> list[Span]:
    """Find the best answers to one question: the spans whose start and end score
    highest together.

    A span begins and ends in the context, does not end before it begins, and has at
    most `max_answer_length` tokens. Of a token that several windows hold, the one with
    most context around it decides where answers begin.

    Parameters
    ----------
    start_logits, end_logits
        Of each window, ``(T,)``; what is behind a window's own tokens is padding and
        not looked at.
    of_windows
        All windows of the question.
    n_best
        How many spans at most.
    max_answer_length
        In tokens.
    null_threshold
        τ of the paper: there is an answer if the best span scores above "no answer"
        plus τ. None: there always is.

    Returns
    -------
    list of Span
        The best first. With a threshold, "no answer" is among them: first if it wins,
        else where its score puts it behind the first. It is alone where the context has
        no token.

    Raises
    ------
    ValueError
        If there is no window, or not one row of logits for each, or a number is below
        1.

    Notes
    -----
    Devlin et al. 2019, sections 4.2 and 4.3. Their code joins the best 20 starts to the
    best 20 ends; here every pair is looked at, so that none is missed.

    Examples
    --------
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "who", "jim", "was", "there"])
    >>> context = "Jim was there"
    >>> of_windows = windows("Who", context, tokenizer)
    >>> # [CLS] who [SEP] jim was there [SEP]
    >>> start = torch.tensor([0.0, 9.0, 0.0, 2.0, 1.0, 0.0, 0.0])
    >>> end = torch.tensor([0.0, 9.0, 0.0, 3.0, 0.0, 2.5, 0.0])
    >>> [
    ...     (span.text(context), span.score)
    ...     for span in best_spans([start], [end], of_windows, n_best=2)
    ... ]
    [('Jim', 5.0), ('Jim was there', 4.5)]
    """
    _check(start_logits, end_logits, of_windows, n_best, max_answer_length)
    found: dict[tuple[int, int], float] = {}
    for starts, ends, window in zip(start_logits, end_logits, of_windows, strict=True):
        for place, score in _best_of_window(
            starts, ends, window, n_best, max_answer_length
        ):
            # overlapping windows find the same
            found[place] = max(score, found.get(place, -math.inf))
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:n_best]
    if null_threshold is not None or not ranked:
        nothing = null_score(start_logits, end_logits)
        wins = (
            not ranked
            or null_threshold is None
            or ranked[0][1] <= nothing + null_threshold
        )
        behind = sum(score >= nothing for _, score in ranked)
        ranked.insert(0 if wins else max(behind, 1), (NO_ANSWER, nothing))
    probabilities = (
        torch.tensor([score for _, score in ranked], dtype=torch.float64)
        .softmax(0)
        .tolist()
    )
    return [
        Span(*place, score, share)
        for (place, score), share in zip(ranked, probabilities, strict=True)
    ]


def _best_of_window(
    starts: Tensor, ends: Tensor, window: Window, n_best: int, max_answer_length: int
) -> list[tuple[tuple[int, int], float]]:
    """Places in the context, and scores, of the best spans of one window."""
    size = len(window.offsets)
    may_end = torch.tensor([place is not None for place in window.offsets])
    may_start = may_end & torch.tensor(window.best_context)
    pairs = may_start[:, None] & may_end  # (T, 1) & (T) -> (T, T)
    # the end not before the start, and not too far behind it
    pairs = pairs.triu().tril(max_answer_length - 1)
    scores = starts[:size, None].float().cpu() + ends[:size].float().cpu()
    best = (
        scores.masked_fill(~pairs, -math.inf)
        .flatten()
        .topk(min(n_best, int(pairs.sum())))
    )
    spans = []
    for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        first, last = window.offsets[index // size], window.offsets[index % size]
        assert first is not None
        assert last is not None
        spans.append(((first[0], last[1]), score))
    return spans


def _check(
    start_logits: Sequence[Tensor],
    end_logits: Sequence[Tensor],
    of_windows: Sequence[Window],
    n_best: int,
    max_answer_length: int,
) -> None:
    if not len(start_logits) == len(end_logits) == len(of_windows) >= 1:
        raise ValueError(
            f"{len(of_windows)} windows, but {len(start_logits)} rows of start logits"
            f" and {len(end_logits)} of end logits; give one of each for each window,"
            " and at least one window"
        )
    for name, value in (("n_best", n_best), ("max_answer_length", max_answer_length)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    for starts, ends, window in zip(start_logits, end_logits, of_windows, strict=True):
        if not len(starts) == len(ends) >= len(window.offsets):
            raise ValueError(
                f"a window of {len(window.offsets)} tokens has {len(starts)} start"
                f" logits and {len(ends)} end logits; give one of each for each token"
            )
