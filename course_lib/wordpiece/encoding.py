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
    """A piece of the text: its id, its string, and where it comes from."""

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
    longer text loses first."""
    if first + second <= room:
        return first, second
    short = min(first, second, room // 2)
    return (room - short, short) if first > second else (short, room - short)


def check_room(max_length: int | None, added: int) -> None:
    """Refuse a maximal length below that of the special tokens alone."""
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
    [SEP] second [SEP]."""
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
    attends to."""
    if length is None:
        length = max(map(len, encodings), default=0)
    for encoding in encodings:
        while len(encoding) < length:
            encoding.add(padding, 0, 0, 1)
