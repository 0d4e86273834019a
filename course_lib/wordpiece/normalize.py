"""Text to words, as BERT does it before WordPiece: clean, separate Chinese, strip
accents, lower case, split.

Each character carries where it comes from in the original text, through all steps, so
that every word and later every piece can point back to what was typed. One function is
one step; `split_words` is all of them.

Not here: WordPiece itself (`wordpiece`), and special tokens such as ``[MASK]``, which
are taken out of the text before.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from course_lib.wordpiece.unicode_classes import (
    canonical_order,
    category,
    decompose,
    is_chinese,
    is_control,
    is_punctuation,
    is_space,
    lower_case,
)

# what lies between plain spaces; the rarer kinds of space are left to `clean`
SPACED = re.compile(r"[^ \t\n\r]+")


class Character(NamedTuple):
    """A character after some step, and the stretch of the original text that it stands
    for."""

    text: str
    start: int
    end: int


class Word(NamedTuple):
    """A word or a mark of punctuation, normalised, and where each of its characters
    comes from."""

    text: str
    spans: tuple[tuple[int, int], ...]

    @property
    def start(self) -> int:
        """Where the word begins in the original text."""
        return self.spans[0][0]

    @property
    def end(self) -> int:
        """Where the word ends in the original text; an accent that was typed as a
        character of its own lies beyond."""
        return self.spans[-1][1]


def clean(characters: Iterable[Character]) -> list[Character]:
    """Drop what cannot be seen (and U+FFFD, the sign of damaged text), and make every
    kind of space a plain one."""
    return [
        character._replace(text=" ") if is_space(character.text) else character
        for character in characters
        if not (character.text == "\ufffd" or is_control(character.text))
    ]


def separate_chinese(characters: Iterable[Character]) -> list[Character]:
    """Put a space on both sides of each Chinese character: Chinese is written without
    spaces between words."""
    separated = []
    for character in characters:
        spaces = [character._replace(text=" ")] if is_chinese(character.text) else []
        separated += [*spaces, character, *spaces]
    return separated


def strip_accents(characters: Iterable[Character]) -> list[Character]:
    """Take letters and accents apart (Unicode's form NFD) and drop the accents (class
    Mn, "mark, nonspacing")."""
    sources = list(characters)
    parts = [part for source in sources for part in decompose(source.text)]
    spans = iter(sources)
    stripped = []
    for part, first in canonical_order(parts):
        # stretches are handed out in the order of the text, as `tokenizers` does it,
        # marks in their own
        if first:
            span = next(spans)
        if category(part) != "Mn":
            stripped.append(span if span.text == part else span._replace(text=part))
    return stripped


def lower(characters: Iterable[Character]) -> list[Character]:
    """Write each character in lower case, by itself: a sigma at the end of a word is
    one like all others."""
    return [
        old if old.text == part else old._replace(text=part)
        for old in characters
        for part in lower_case(old.text)
    ]


def normalize(
    text: str, lowercase: bool = True, strip: bool | None = None
) -> list[Character]:
    """Normalise a text as BERT does.

    Parameters
    ----------
    text
        Any text.
    lowercase
        Whether capitals become small letters, as in the uncased models.
    strip
        Whether accents go; if not given, they go with the capitals.

    Returns
    -------
    list of Character
        The characters that are left, each with the stretch of the text that it comes
        from.

    Raises
    ------
    ValueError
        If the text holds half of a surrogate pair, which is no character.

    Notes
    -----
    Devlin et al. 2019, and ``BasicTokenizer`` in the code that they published.

    Examples
    --------
    >>> "".join(character.text for character in normalize("Ça\\u200b coûte\\t5€"))
    'ca coute 5€'
    >>> normalize("ﬁ Å")[-1]
    Character(text='a', start=2, end=3)
    """
    check_text(text)
    characters = [
        Character(character, index, index + 1) for index, character in enumerate(text)
    ]
    characters = separate_chinese(clean(characters))
    if lowercase if strip is None else strip:
        characters = strip_accents(characters)
    return lower(characters) if lowercase else characters


def normalize_text(text: str, lowercase: bool = True, strip: bool | None = None) -> str:
    """Normalise a text and forget where its characters came from.

    Parameters
    ----------
    text
        Any text.
    lowercase, strip
        As in `normalize`.

    Returns
    -------
    str
        The characters that are left.

    Examples
    --------
    >>> normalize_text("Naïve 東京")
    'naive  東  京 '
    """
    return "".join(character.text for character in normalize(text, lowercase, strip))


def split_words(
    text: str, lowercase: bool = True, strip: bool | None = None
) -> list[Word]:
    """Normalise a text and cut it into words: at spaces, and before and after each mark
    of punctuation.

    Parameters
    ----------
    text
        Any text.
    lowercase, strip
        As in `normalize`.

    Returns
    -------
    list of Word
        In the order of the text.

    Raises
    ------
    ValueError
        If the text holds half of a surrogate pair, which is no character.

    Notes
    -----
    Devlin et al. 2019, and ``BasicTokenizer`` in the code that they published.

    Examples
    --------
    >>> [(word.text, word.start, word.end) for word in split_words("Don't  PANIC!")]
    [('don', 0, 3), ("'", 3, 4), ('t', 4, 5), ('panic', 7, 12), ('!', 12, 13)]
    """
    check_text(text)
    words = []
    for chunk in SPACED.finditer(text):
        shift = chunk.start()
        for word in _split_chunk(chunk.group(), lowercase, strip):
            words.append(
                Word(
                    word.text,
                    tuple([(start + shift, end + shift) for start, end in word.spans]),
                )
            )
    return words


def clear_cache() -> None:
    """Forget the words that were split before, for who measures time."""
    _split_chunk.cache_clear()


def check_text(text: str) -> None:
    """Refuse what is no text: something else than a string, or a string with half of a
    surrogate pair."""
    if not isinstance(text, str):
        raise TypeError(
            f"the text is of type {type(text).__name__}; pass a string, e.g."
            " bytes.decode('utf-8')"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} of the text is U+{ord(text[error.start]):04X},"
            " half of a surrogate pair and no character; the text was decoded wrongly:"
            " decode its bytes with errors='replace'"
        ) from None


# the same words come again and again; no step looks across a plain space
@lru_cache(maxsize=2**16)
def _split_chunk(chunk: str, lowercase: bool, strip: bool | None) -> tuple[Word, ...]:
    return tuple(
        Word(
            "".join(character.text for character in word),
            tuple((start, end) for _, start, end in word),
        )
        for word in _cut(normalize(chunk, lowercase, strip))
    )


def _cut(characters: Iterable[Character]) -> Iterator[list[Character]]:
    word: list[Character] = []
    for character in characters:
        if is_space(character.text) or is_punctuation(character.text):
            if word:
                yield word
            word = []
            if not is_space(character.text):
                yield [character]
        else:
            word.append(character)
    if word:
        yield word
