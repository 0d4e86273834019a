"""The assignment's WordPiece and the library's are one algorithm: same merges, same
pieces, same offsets."""

import random
from pathlib import Path

import pytest
import reference
from cases import for_each

from course_lib.wordpiece.tokenizer import WordPiece
from course_lib.wordpiece.training import train_wordpiece

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    "The cat sat on the mat, and the dog didn't.",
    "Crème brûlée: naïve café-goers prefer Å, Ź and ß!",
    "東京 is not 京都; 한국어 is neither.",
    "tab\tnew\nline\u3000wide\u200bzero \U0001f917 e\u0301e\u0301 $9.50 #tag ...",
    "",
]


@pytest.fixture(scope="module")
def answers():
    return reference.answers("wordpiece")


def corpus(seed: int, letters: str) -> dict[str, int]:
    """Words without meaning and with small counts: every step of training is a tie."""
    chance = random.Random(seed)
    return {
        "".join(chance.choices(letters, k=chance.randint(1, 9))): chance.randint(1, 4)
        for _ in range(40)
    }


@for_each("seed", range(8))
@for_each(
    ("letters", "size", "least"), [("ab", 60, 1), ("abcdé", 90, 2), ("東京kq#", 70, 3)]
)
def test_training_makes_the_library_s_merges(answers, seed, letters, size, least):
    counts = corpus(seed, letters)
    expected = train_wordpiece(counts, size, min_frequency=least)
    vocab, merges = answers["train"](counts, size, min_frequency=least)
    assert merges == [(merge.left, merge.right) for merge in expected.merges]
    assert vocab == expected.vocab
    by_frequency = answers["train"](
        counts, size, score=lambda piece_counts, pair_counts: pair_counts
    )
    assert by_frequency[0] == train_wordpiece(counts, size, score="frequency").vocab


def test_encoding_gives_the_library_s_pieces_and_offsets(answers):
    words = {word: 2 for text in TEXTS[:3] for word, _ in answers["split_words"](text)}
    vocab = [
        piece for piece in train_wordpiece(words, 95).vocab if piece not in ("g", "##g")
    ]
    library = WordPiece(vocab)
    unknown = 0
    for text in TEXTS:
        encoding = library.encode(text, add_special_tokens=False)
        expected = [
            (token, *span)
            for token, span in zip(encoding.tokens, encoding.offsets, strict=True)
        ]
        assert answers["encode"](text, set(vocab)) == expected
        unknown += encoding.tokens.count("[UNK]")
    assert unknown > 3
