"""WordPiece, the tokenizer: a vocabulary of pieces cuts each word greedily, longest
piece first.

This is the teaching code: short, pure Python, no faster than that.
`course_lib.wordpiece.fast.FastWordPiece` has the same interface on the library
`tokenizers`, and gives the same ids and offsets for every text.

Not here: normalising and splitting into words (`normalize`), learning a vocabulary
(`training`), a tokenizer on disk (`files`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, NamedTuple, Self

from course_lib.wordpiece.files import Settings, check_vocab, load, save
from course_lib.wordpiece.normalize import Word, check_text, split_words
from course_lib.wordpiece.training import PREFIX, SPECIAL_TOKENS

NOWHERE = (0, 0)  # the offsets of a token that is not in the text


class Token(NamedTuple):
    """A piece of the text: its id, its string, and where it comes from."""

    id: int
    text: str
    offsets: tuple[int, int]


@dataclass
class Encoding:
    """One text or pair of texts as a sequence of tokens; all lists have one entry for
    each token."""

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


PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS
Padding = Literal["longest"] | int | None
Text = str | tuple[str, str]


def longest_match(
    word: str, vocab: Iterable[str], max_word_length: int = 100
) -> list[str]:
    """Cut a word into pieces: the longest piece that fits, then the longest that
    continues, to the end of the word.

    Parameters
    ----------
    word
        A normalised word.
    vocab
        The pieces; a set or a dict, in which looking one up takes no longer for a large
        vocabulary.
    max_word_length
        A longer word is not looked at.

    Returns
    -------
    list of str
        The pieces, or [UNK] alone if at some place no piece fits, or the word is too
        long.

    Notes
    -----
    ``WordpieceTokenizer`` in the code of Devlin et al. 2019.

    Examples
    --------
    >>> longest_match("unaffable", {"un", "una", "##aff", "##able", "##ffable"})
    ['una', '##ffable']
    >>> longest_match("unaffably", {"un", "una", "##aff", "##able", "##ffable"})
    ['[UNK]']
    """
    if len(word) > max_word_length:
        return [UNK]
    pieces: list[str] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else PREFIX + word[start:end]
            if piece in vocab:
                pieces.append(piece)
                start = end
                break
        else:  # not even one character fits
            return [UNK]
    return pieces


def detokenize(tokens: Sequence[str]) -> str:
    """Write pieces as text: no space before a piece that continues a word, or a mark
    that closes."""
    text = ""
    for index, token in enumerate(tokens):
        if index > 0 and token.startswith(PREFIX):
            text += token.removeprefix(PREFIX)
        elif index > 0 and not token.startswith((".", "?", "!", ",")):
            text += " " + token
        else:
            text += token
    return text


class Vocabulary:
    """What both tokenizers share: the pieces in the order of their ids, how text is
    treated, and both on disk."""

    def __init__(
        self,
        vocab: Sequence[str],
        lowercase: bool = True,
        strip: bool | None = None,
        max_word_length: int = 100,
    ) -> None:
        self.settings = Settings(lowercase, strip, max_word_length)
        self.vocab = check_vocab(vocab)
        self.pieces = list(self.vocab)

    def __len__(self) -> int:
        return len(self.pieces)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a folder, a ``tokenizer.json`` or a ``vocab.txt``; see
        `course_lib.wordpiece.files.load`."""
        pieces, settings = load(Path(path))
        return cls(pieces, settings.lowercase, settings.strip, settings.max_word_length)

    def save(self, folder: Path | str) -> None:
        """Write ``vocab.txt`` and ``tokenizer.json`` into a folder; `load` and
        `tokenizers` read them."""
        save(Path(folder), self.pieces, self.settings)

    def special(self, token: str) -> Token:
        """Return a special token, which must be in the vocabulary."""
        if token not in self.vocab:
            raise ValueError(
                f"the vocabulary lacks {token}; train it with the special tokens, or"
                f" add {token} to it"
            )
        return Token(self.vocab[token], token, NOWHERE)

    def pieces_of(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces with these ids, which must be of the vocabulary."""
        ids = list(ids)
        for index in ids:
            if not 0 <= index < len(self.pieces):
                raise ValueError(
                    f"id {index} is not of the vocabulary; ids run from 0 to"
                    f" {len(self.pieces) - 1}"
                )
        return [self.pieces[index] for index in ids]


class WordPiece(Vocabulary):
    """A tokenizer in the open: normalise, split, cut greedily, add special tokens.

    Parameters
    ----------
    vocab
        The pieces in the order of their ids. [UNK] must be among them; another special
        token when it is used.
    lowercase
        Whether capitals become small letters.
    strip
        Whether accents go; if not given, they go with the capitals.
    max_word_length
        A word of more characters is [UNK].

    Raises
    ------
    ValueError
        If the vocabulary has a piece twice, an empty one, or no [UNK].

    Notes
    -----
    Wu et al. 2016, section 4.1; Devlin et al. 2019, section 3.

    Examples
    --------
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "we", "em", "##bed", "##s", "."])
    >>> encoding = tokenizer.encode("We embeds.")
    >>> encoding.tokens, encoding.offsets[2:5]
    (['[CLS]', 'we', 'em', '##bed', '##s', '.', '[SEP]'], [(3, 5), (5, 8), (8, 9)])
    >>> tokenizer.decode(encoding.ids)
    'we embeds.'
    """

    def __init__(
        self,
        vocab: Sequence[str],
        lowercase: bool = True,
        strip: bool | None = None,
        max_word_length: int = 100,
    ) -> None:
        super().__init__(vocab, lowercase, strip, max_word_length)
        # words that were cut before; most of a text is words seen before
        self._cut: dict[str, list[str]] = {}
        present = [re.escape(token) for token in SPECIAL_TOKENS if token in self.vocab]
        self._specials = re.compile(f"({'|'.join(present)})")

    def encode_word(self, word: str) -> list[str]:
        """Cut one normalised word into pieces; see `longest_match`."""
        if word not in self._cut:
            if len(self._cut) >= 2**20:  # a bound on memory for texts without end
                self._cut.clear()
            self._cut[word] = longest_match(
                word, self.vocab, self.settings.max_word_length
            )
        return self._cut[word]

    def encode(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """Encode a text, or two as a pair.

        Parameters
        ----------
        text, pair
            The texts. Special tokens that stand in them are taken as such.
        max_length
            At most so many tokens, special ones included; the longer text is cut first.
        add_special_tokens
            Whether to add [CLS] and [SEP].

        Returns
        -------
        Encoding
            Ids, strings, offsets into `text` or `pair`, segments and masks.

        Raises
        ------
        ValueError
            If a text holds half of a surrogate pair, `max_length` has no room for the
            special tokens, or the vocabulary lacks one.
        """
        first = self._tokens(text)
        second = None if pair is None else self._tokens(pair)
        added = (1 if second is None else 2) + 1 if add_special_tokens else 0
        check_room(max_length, added)
        if max_length is not None:
            keep = truncate(len(first), len(second or ()), max_length - added)
            first, second = first[: keep[0]], second and second[: keep[1]]
        marks = map(self.special, (CLS, SEP) if add_special_tokens else ())
        return assemble(first, second, *marks)

    def encode_batch(
        self,
        texts: Iterable[Text],
        padding: Padding = "longest",
        max_length: int | None = None,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """Encode texts, or pairs of texts, and make them equally long.

        Parameters
        ----------
        texts
            Strings, or tuples of two.
        padding
            "longest" for the length of the longest, a number for that length, None for
            no padding.
        max_length, add_special_tokens
            As in `encode`.

        Returns
        -------
        list of Encoding
            One for each text.
        """
        pairs = [(text, None) if isinstance(text, str) else text for text in texts]
        encodings = [
            self.encode(text, pair, max_length, add_special_tokens)
            for text, pair in pairs
        ]
        if padding is not None:
            length = None if padding == "longest" else padding
            pad(encodings, self.special(PAD), length)
        return encodings

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Write ids as text; see `detokenize`.

        Raises
        ------
        ValueError
            If an id is not of the vocabulary.
        """
        hidden = SPECIAL_TOKENS if skip_special_tokens else ()
        return detokenize([x for x in self.pieces_of(ids) if x not in hidden])

    def _tokens(self, text: str) -> list[Token]:
        """The pieces of a text, special tokens in it included."""
        check_text(text)
        tokens: list[Token] = []
        start = 0
        for index, part in enumerate(self._specials.split(text)):
            # split gives the text between two special tokens, the special token, the
            # text after it, ...
            if index % 2:
                tokens.append(Token(self.vocab[part], part, (start, start + len(part))))
            else:
                settings = self.settings
                for word in split_words(part, settings.lowercase, settings.strip):
                    tokens += self._word_tokens(word, start)
            start += len(part)
        return tokens

    def _word_tokens(self, word: Word, shift: int) -> list[Token]:
        tokens, begin = [], 0
        pieces = self.encode_word(word.text)
        for position, piece in enumerate(pieces):
            length = len(piece) - len(PREFIX) * (position > 0)
            length = len(word.text) if pieces == [UNK] else length
            first, last = word.spans[begin], word.spans[begin + length - 1]
            offsets = (shift + first[0], shift + last[1])
            tokens.append(Token(self.vocab[piece], piece, offsets))
            begin += length
        return tokens
