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

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby

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
# Marks, punctuation, control and format characters of Unicode 8.1 to 17.0: for tables
# of Unicode 8.0, unassigned.
NEWER_CLASS = _expand("""
    5C8-5C9 61D 7FD 890-891 897-89F 8CA-8E2 9FD-9FE A76 AFA-AFF B53-B55 C04 C3C C77 C84 D00 D3B-D3C D81 EBA ECE 180F
    1885-1886 1ABF-1AF0 1B4E-1B4F 1B7D-1B7F 1DF6-1DFB 2E43-2E4F 2E52-2E5D 2E60-2E63 A82C A8C5 A8FF A9BD 10D24-10D27
    10D69-10D6E 10EAB-10EAD 10ECB-10ED0 10EF0-10EFF 10F46-10F50 10F55-10F59 10F82-10F89 11070 11073-11074 110C2
    110CD 111CF 1123E 11241 1133B 113BB-113C0 113CE 113D0 113D2 113D4-113D5 113D7-113D8 113E1-113E2 11438-1143F
    11442-11444 11446 1144B-1144F 1145A-1145B 1145D-1145E 11660-1166C 116B9 1182F-11837 11839-1183B 1193B-1193C
    1193E 11943-11946 119D4-119D7 119DA-119DB 119E0 119E2 11A01-11A0A 11A33-11A38 11A3B-11A47 11A51-11A56
    11A59-11A5B 11A8A-11A96 11A98-11A9C 11A9E-11AA2 11B00-11B09 11B60 11B62-11B64 11B66 11BE1 11C30-11C36
    11C38-11C3D 11C3F 11C41-11C45 11C70-11C71 11C92-11CA7 11CAA-11CB0 11CB2-11CB3 11CB5-11CB6 11D31-11D36 11D3A
    11D3C-11D3D 11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11DF0 11EF3-11EF4 11EF7-11EF8 11F00-11F01 11F36-11F3A
    11F40 11F42-11F4F 11F5A 11FFF 12FF1-12FF2 13430-13440 13447-13455 1611E-16129 1612D-1612F 16D6D-16D6F
    16E97-16E9A 16F4F 16FE2 16FE4 1CF00-1CF2D 1CF30-1CF46 1D127-1D128 1D25B-1D25C 1E000-1E006 1E008-1E018
    1E01B-1E021 1E023-1E024 1E026-1E02A 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E5FF 1E6E3
    1E6E6 1E6EE-1E6EF 1E6F5 1E944-1E94A 1E95E-1E95F
    """)  # noqa: E501
# Characters that had another class in Unicode 8.0 than they have today.
CLASS_OF_8_0 = {"\u166d": "Po", "\u1734": "Mn", "\U0001171e": "Mn", "\U000111c9": "Po"}
# Marks of Unicode 9.1 to 17.0 that change places with their neighbours; by tables of
# Unicode 9.0 they stay.
NEWER_ORDER = _expand("""
    5C8-5C9 7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1AF0 1DF6-1DFA A82C 10D24-10D27 10D69-10D6D
    10EAB-10EAC 10ECB-10ECF 10EF0-10EFB 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 1133B 113CE-113D0 1145E
    11839-1183A 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42 1612F 16FF0-16FF1
    1D127-1D128 1D250-1D252 1D25B-1D25C 1D25F 1D280-1D281 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF
    1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5
    """)  # noqa: E501
# Characters of Unicode 9.1 to 17.0 with a decomposition.
NEWER_DECOMPOSITION = _expand(
    "105C9 105E4 11383 11385 1138E 11391 113C5 113C7 113C8 11938 16121-16128"
    " 16D68-16D6A"
)
# Capitals of Unicode 14.1 to 17.0, in ranges: first, last, and the small letter of the
# first.
NEWER_CAPITALS = (
    (0x1C89, 0x1C89, 0x1C8A),
    (0xA7CB, 0xA7CB, 0x0264),
    (0xA7CC, 0xA7CC, 0xA7CD),
    (0xA7CE, 0xA7CE, 0xA7CF),
    (0xA7D2, 0xA7D2, 0xA7D3),
    (0xA7D4, 0xA7D4, 0xA7D5),
    (0xA7DA, 0xA7DA, 0xA7DB),
    (0xA7DC, 0xA7DC, 0x019B),
    (0x10D50, 0x10D65, 0x10D70),
    (0x16EA0, 0x16EB8, 0x16EBB),
)
SMALL_LETTERS = {
    chr(code): chr(code - first + small)
    for first, last, small in NEWER_CAPITALS
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
