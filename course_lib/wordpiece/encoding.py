"""What a tokenizer gives back: ids, and beside each its string and its place; cut,
joined in pairs, and padded.

The names are those of the library `tokenizers`. Both tokenizers of the course,
`wordpiece.WordPiece` and `fast_wordpiece.FastWordPiece`, return this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

__all__ = ["Encoding", "Token", "assemble", "check_room", "pad", "truncate"]

NOWHERE = (0, 0)  # the offsets of a token that is not in the text


class Token(NamedTuple):
    """A piece of the text: its id, its string, and where it comes from.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> Token(7592, "hello", (0, 5)).offsets
    (0, 5)
    """

    id: int
    text: str
    offsets: tuple[int, int]


@dataclass
class Encoding:
    """One text or pair of texts as a sequence of tokens; all lists have one entry for
    each token.

    Parameters
    ----------
    ids
        Rows of the embedding table.
    tokens
        The strings.
    offsets
        Start and end in the original text (of the first or second, see `type_ids`); (0,
        0) for what is not in the text.
    type_ids
        0 for the first text with its special tokens, 1 for the second.
    attention_mask
        1 for tokens, 0 for padding.
    special_tokens_mask
        1 for what the tokenizer added: [CLS], [SEP], [PAD]; 0 for what the text holds.

    Notes
    -----
    Devlin et al. 2019, section 3 and figure 2.

    Chapter: wordpiece

    Examples
    --------
    >>> Encoding([7592], ["hello"], [(0, 5)], [0], [1], [0]).tokens
    ['hello']
    """

    ids: list[int] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    offsets: list[tuple[int, int]] = field(default_factory=list)
    type_ids: list[int] = field(default_factory=list)
    attention_mask: list[int] = field(default_factory=list)
    special_tokens_mask: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, token: Token, type_id: int, attend: int, special: int) -> None:
        """Append one token to all lists."""
        row = (token.id, token.text, token.offsets, type_id, attend, special)
        for column, value in zip(fields(self), row, strict=True):
            getattr(self, column.name).append(value)


def truncate(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of two texts stay when there is room for so many together: the
    longer text loses first.

    Parameters
    ----------
    first, second
        Tokens of each.
    room
        Tokens that may stay.

    Returns
    -------
    (int, int)
        Tokens of each that stay, from its start.

    Notes
    -----
    ``truncate_seq_pair`` in the code of Devlin et al. 2019 takes one token after the
    other from the longer text; here is where that ends. Of an odd room the longer text
    has one more, the second if they were equal, as in `tokenizers`.

    Chapter: wordpiece

    Examples
    --------
    >>> truncate(9, 2, room=7), truncate(9, 8, room=7), truncate(8, 8, room=7)
    ((5, 2), (4, 3), (3, 4))
    """
    if first + second <= room:
        return first, second
    short = min(first, second, room // 2)
    return (room - short, short) if first > second else (short, room - short)


def check_room(max_length: int | None, added: int) -> None:
    """Refuse a maximal length below that of the special tokens alone.

    Parameters
    ----------
    max_length
        Tokens that an encoding may have; None for any number.
    added
        Special tokens among them.

    Raises
    ------
    ValueError
        If there is no room.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> check_room(2, added=3)
    Traceback (most recent call last):
    ValueError: max_length=2 has no room for the 3 special tokens; ...
    """
    if max_length is not None and max_length < added:
        raise ValueError(
            f"max_length={max_length} has no room for the {added} special tokens; "
            f"pass at least {added}, and more for the text"
        )


def assemble(
    first: Sequence[Token],
    second: Sequence[Token] | None,
    start: Token | None = None,
    separator: Token | None = None,
) -> Encoding:
    """Put texts and special tokens into one sequence: [CLS] first [SEP], or [CLS] first
    [SEP] second [SEP].

    Parameters
    ----------
    first, second
        The tokens of the texts; None if there is no second.
    start, separator
        [CLS] and [SEP]; None for a sequence without them.

    Returns
    -------
    Encoding
        All of them, with segment 0 up to the first separator and 1 after it.

    Notes
    -----
    Devlin et al. 2019, section 3.

    Chapter: wordpiece

    Examples
    --------
    >>> marks = Token(2, "[CLS]", (0, 0)), Token(3, "[SEP]", (0, 0))
    >>> encoding = assemble([Token(8, "is", (0, 2))], [Token(9, "it", (0, 2))], *marks)
    >>> encoding.tokens, encoding.type_ids
    (['[CLS]', 'is', '[SEP]', 'it', '[SEP]'], [0, 0, 0, 1, 1])
    """
    encoding = Encoding()
    if start:
        encoding.add(start, 0, 1, 1)
    for type_id, tokens in enumerate([first] if second is None else [first, second]):
        for token in tokens:
            encoding.add(token, type_id, 1, 0)
        if separator:
            encoding.add(separator, type_id, 1, 1)
    return encoding


def pad(
    encodings: Sequence[Encoding], padding: Token, length: int | None = None
) -> None:
    """Make all encodings of a batch equally long, by padding on the right that nothing
    attends to.

    Parameters
    ----------
    encodings
        The batch; changed in place.
    padding
        [PAD].
    length
        Tokens of each; that of the longest if not given. A longer encoding stays as it
        is.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> batch = [assemble([Token(8, "is", (0, 2))], None), assemble([], None)]
    >>> pad(batch, Token(0, "[PAD]", (0, 0)))
    >>> batch[1].ids, batch[1].attention_mask
    ([0], [0])
    """
    if length is None:
        length = max(map(len, encodings), default=0)
    for encoding in encodings:
        while len(encoding) < length:
            encoding.add(padding, 0, 0, 1)
