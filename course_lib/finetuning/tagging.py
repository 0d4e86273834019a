"""Tags on words, tokens in the model: which token speaks for a word, and back (Devlin
et al. 2019, section 5.3).

A tag belongs to a word, but the model guesses at tokens. The first piece of a word
carries its tag, and its guess is the word's. The other pieces, [CLS] and [SEP] carry
`IGNORE`: they are read, and neither trained on nor scored.

Letters of this module: W words, T tokens, L labels.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.pretraining.masking import IGNORE
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import CLS, SEP, UNK, WordPiece


class AlignedWords(NamedTuple):
    """Words as the tokens of one sequence."""

    input_ids: list[int]
    first: list[int]


def align_words(
    words: Sequence[str],
    tokenizer: WordPiece | FastWordPiece,
    max_length: int | None = None,
) -> AlignedWords:
    """Cut words into pieces and remember where each begins."""
    _check(words, max_length)
    pieces = _pieces(words, tokenizer)
    first, ids = [], [tokenizer.vocab[CLS]]
    for of_word in pieces:
        first.append(len(ids))
        ids += of_word
    end = len(ids) if max_length is None else min(len(ids), max_length - 1)
    return AlignedWords(
        [*ids[:end], tokenizer.vocab[SEP]],
        [position for position in first if position < end],
    )


def align_labels(
    words: Sequence[str],
    labels: Sequence[int],
    tokenizer: WordPiece | FastWordPiece,
    max_length: int | None = None,
) -> tuple[list[int], list[int]]:
    """Give each word's label to its first piece, and `IGNORE` to all other tokens.

    Parameters
    ----------
    words
        As in `align_words`.
    labels
        One for each word.
    tokenizer, max_length
        As in `align_words`.

    Returns
    -------
    input_ids, labels : list of int
        T of each.

    Raises
    ------
    ValueError
        If there are more or fewer labels than words; and as `align_words`.

    Notes
    -----
    Devlin et al. 2019, section 5.3: "we use the representation of the first sub-token
    as the input to the token-level classifier".

    Examples
    --------
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "jim", "hen", "##son", "was"])
    >>> align_labels(["Jim", "Henson", "was"], [1, 2, 0], tokenizer)
    ([2, 5, 6, 7, 8, 3], [-100, 1, 2, -100, 0, -100])
    """
    if len(labels) != len(words):
        raise ValueError(
            f"there are {len(words)} words but {len(labels)} labels; give each word one"
        )
    aligned = align_words(words, tokenizer, max_length)
    of_tokens = [IGNORE] * len(aligned.input_ids)
    # what was cut off has a label, and no token
    for position, label in zip(aligned.first, labels, strict=False):
        of_tokens[position] = int(label)
    return aligned.input_ids, of_tokens


def word_logits(
    logits: Float[Tensor, "T L"], first: Sequence[int]
) -> Float[Tensor, "W L"]:
    """Take the logits of the words out of those of the tokens: each word's first piece
    speaks for it."""
    return logits[torch.as_tensor(first, dtype=torch.long, device=logits.device)]


def chunks(
    words: Sequence[str], tokenizer: WordPiece | FastWordPiece, max_length: int
) -> list[tuple[int, int]]:
    """Cut a list of words that may be too long for the model into parts that each fit,
    at words."""
    _check(words, max_length)
    parts, begin, used = [], 0, 0
    for index, of_word in enumerate(_pieces(words, tokenizer)):
        if index > begin and used + len(of_word) > max_length - 2:
            parts.append((begin, index))
            begin, used = index, 0
        used += len(of_word)
    return [*parts, (begin, len(words))]


def _check(words: Sequence[str], max_length: int | None) -> None:
    if isinstance(words, str):
        raise ValueError(f"words is the text {words[:30]!r}; pass a list of words")
    if not words:
        raise ValueError("there is no word to tag; leave empty sentences out")
    if max_length is not None and max_length < 3:
        raise ValueError(
            f"max_length is {max_length}; with [CLS] and [SEP], a word needs at least 3"
        )


def _pieces(
    words: Sequence[str], tokenizer: WordPiece | FastWordPiece
) -> list[list[int]]:
    encodings = tokenizer.encode_batch(words, padding=None, add_special_tokens=False)
    return [encoding.ids or [tokenizer.vocab[UNK]] for encoding in encodings]
