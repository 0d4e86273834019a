"""Unicode as BERT's working tokenizer sees it: classes, decompositions and lower case
of single characters.

Unicode grows every year, and each program carries the tables of some year. Python's
``unicodedata`` has those of its release (14.0 in Python 3.11, 16.0 in Python 3.14). The
library `tokenizers` has those of three years at once: classes as of Unicode 8.0,
decompositions as of 9.0, lower case as of its compiler (17.0). A character that is
newer than a table has no class, no decomposition and no capital there. Here stands what
differs: characters that are newer and matter. A test compares every one of Unicode's
1,112,064 characters with the library.

Not here: what is done with the classes, see `text_normalization`.
"""

import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path

# characters that are kept looked up: those of any language, and a bound for hostile
# text
MEMORY = 2**14


def _expand(ranges: str) -> frozenset[str]:
    """All characters of ranges written in hexadecimal, e.g. "61D 8CA-8E2"."""
    bounds = [part.partition("-") for part in ranges.split()]
    return frozenset(
        chr(code)
        for low, _, high in bounds
        for code in range(int(low, 16), int(high or low, 16) + 1)
    )


# The blocks of Chinese characters as of BERT's release; kana and hangul are none, they
# come in words between spaces.
CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    # BERT's own text says 2B820; `tokenizers` says 2B920, and it is what must agree
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
# Characters that had another class in Unicode 8.0 than they have today.
CLASS_OF_8_0 = {"\u166d": "Po", "\u1734": "Mn", "\U0001171e": "Mn", "\U000111c9": "Po"}
# The characters that are newer than a table of the library, in ranges.
_FILE = tomllib.loads(
    Path(__file__).with_name("unicode.toml").read_text(encoding="utf-8")
)
NEWER_CLASS, NEWER_ORDER = _expand(_FILE["newer_class"]), _expand(_FILE["newer_order"])
NEWER_DECOMPOSITION = _expand(_FILE["newer_decomposition"])
SMALL_LETTERS = {
    chr(code): chr(code - first + small)
    for first, last, small in _FILE["newer_capitals"]
    for code in range(first, last + 1)
}


@lru_cache(maxsize=MEMORY)
def category(character: str) -> str:
    """Unicode's general category of a character, as of version 8.0."""
    if character in NEWER_CLASS:
        return "Cn"
    return CLASS_OF_8_0.get(character) or unicodedata.category(character)


def is_control(character: str) -> bool:
    """Whether a character is invisible machinery and no space: control, format and
    private-use characters."""
    return character not in "\t\n\r" and category(character) in ("Cc", "Cf", "Co")


def is_space(character: str) -> bool:
    """Whether a character separates words: tab, line feed, carriage return and
    Unicode's separators."""
    return character in "\t\n\r" or category(character) in ("Zs", "Zl", "Zp")


def is_chinese(character: str) -> bool:
    """Whether a character lies in a block of Chinese characters, each of which is a
    word by itself."""
    code = ord(character)
    # most text is below all of them
    return code >= 0x3400 and any(first <= code <= last for first, last in CHINESE)


def is_punctuation(character: str) -> bool:
    """Whether a character is a word by itself: Unicode's punctuation, and all of
    ASCII's signs, such as $ and ^."""
    return ("!" <= character <= "~" and not character.isalnum()) or category(
        character
    ).startswith("P")


@lru_cache(maxsize=MEMORY)
def decompose(character: str) -> tuple[tuple[str, bool], ...]:
    """Take a character apart into letter and marks, as Unicode 9.0 does."""
    parts = (
        character
        if character in NEWER_DECOMPOSITION
        else unicodedata.normalize("NFD", character)
    )
    return tuple((part, index == 0) for index, part in enumerate(parts))


def canonical_order(parts: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Put marks that follow each other into Unicode's order: those below before those
    above, equal ones as typed."""
    for _, run in groupby(parts, key=lambda part: _order(part[0]) > 0):
        # letters have order 0: they stay as they are
        yield from sorted(run, key=lambda part: _order(part[0]))


@lru_cache(maxsize=MEMORY)
def _order(character: str) -> int:
    return 0 if character in NEWER_ORDER else unicodedata.combining(character)


@lru_cache(maxsize=MEMORY)
def lower_case(character: str) -> str:
    """Write one character in lower case, whatever stands around it."""
    return SMALL_LETTERS.get(character) or character.lower()
