"""Texts that tokenizers get wrong: Unicode from all corners, mixed with what has a
meaning of its own.

For tests and for the recorded agreement with the library `tokenizers`.
"""

import random
import unicodedata
from collections.abc import Sequence
from functools import cache

from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
from course_lib.wordpiece.unicode_classes import (
    NEWER_CLASS,
    NEWER_DECOMPOSITION,
    NEWER_ORDER,
    SMALL_LETTERS,
)

__all__ = ["every_character", "hostile_texts", "hostile_vocab", "pools"]


@cache
def every_character() -> str:
    """All of Unicode: 1,114,112 code points without the 2,048 halves of surrogate
    pairs."""
    return "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)


@cache
def pools() -> dict[str, Sequence[str]]:
    """What texts are mixed from: each entry of a pool a character, or a string that
    stays together."""
    characters = every_character()
    return {
        "ASCII": "abcABC xyz.,!?'#[]$^`-0129",
        "marks": "".join(filter(unicodedata.combining, characters)),
        "composed": "".join(
            char
            for char in characters
            if unicodedata.decomposition(char)[:1] not in ("", "<")
        ),
        "hangul": "각한글ㄱ힣\u1100\u1161\u11a8",
        "newer than the tables": "".join(
            sorted(NEWER_CLASS | NEWER_ORDER | NEWER_DECOMPOSITION | set(SMALL_LETTERS))
        ),
        "another class in Unicode 8.0": "\u166d\u1734\U0001171e\U000111c9",
        "marks that stay": "\u302e\u302f\U0001d165\U0001d16d\u08d5\u1dfb",
        "control": (
            "\x00\x01\x1c\x1f\x7f\x85\u00ad\u200b\u200d\u2060\ufeff\ufffd\u180e\ue000\U000e0041"
        ),
        "space": " \t\n\r\x0b\x0c\u00a0\u1680\u2000\u2028\u2029\u202f\u3000",
        "case": "İıſKÅΣςßẞŉǰΐǅᾼΆ",
        "CJK": (
            "中国日本語一鿿㐀䶿豈\U00020000\U0002a6df\U0002b820\U0002ceaf\U0002f800ーカｶ"
        ),
        "right to left": "אבךעֿסَّﷺ\u200f\u202e",
        "emoji": "😀👩\u200d👧🇫🇷\ufe0f🏽",
        "special tokens": (*SPECIAL_TOKENS, "[mask]", "[[MASK]", "[MAS\u0301K]"),
        "long": (
            "x" * 99,
            "x" * 100,
            "x" * 101,
            "é" * 100,
            "e\u0301" * 100,
            "x" * 10_000,
        ),
        "anything": characters,
    }


def hostile_texts(number: int, seed: int) -> list[str]:
    """Generate texts, each mixed from one to four of the pools."""
    choose = random.Random(seed)
    names = [name for name in pools() if name != "long"]
    texts = []
    for _ in range(number):
        chosen = choose.sample(names, choose.randint(1, 4))
        parts = [
            choose.choice(pools()[choose.choice(chosen)])
            for _ in range(choose.choice((0, 1, 2, 3, 5, 8, 13, 30, 120)))
        ]
        if (
            choose.random() < 0.02
        ):  # rarely: such a text costs as much as hundreds of the others
            parts.insert(choose.randint(0, len(parts)), choose.choice(pools()["long"]))
        texts.append("".join(parts))
    return texts


def hostile_vocab() -> list[str]:
    """A vocabulary that writes nearly all of the pools: few words end as [UNK], which
    would hide their offsets."""
    letters = {
        char
        for name, pool in pools().items()
        if name != "anything"
        for part in pool
        for char in part
    }
    letters |= {
        part for char in letters for part in unicodedata.normalize("NFD", char).lower()
    }
    whole = sorted(char for char in letters if char.split() == [char])
    pieces = [
        *SPECIAL_TOKENS,
        *whole,
        *(f"##{char}" for char in whole),
        "##ab",
        "abc",
        "##xx",
        "##\u302e\u302f",
    ]
    return list(dict.fromkeys(pieces))
