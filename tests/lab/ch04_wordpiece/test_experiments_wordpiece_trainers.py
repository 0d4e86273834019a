"""The library's trainer beside ours: what is measured is what the words say."""

import pytest

from course_lab.ch04_wordpiece.wordpiece_trainers import compare_trainers

COUNTS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
TEXT = [" ".join(word for word, count in COUNTS.items() for _ in range(count))]


def test_three_trainers_are_measured_on_the_five_words():
    """At 19 pieces ours have 7 characters and 7 merges, the library 4 idle characters
    and 3 merges: ##ug ##un hug."""
    likelihood, frequency, library = compare_trainers(
        TEXT, ["pun hug hugs"], vocab_size=19
    )
    assert [row.name for row in (likelihood, frequency, library)] == [
        "likelihood",
        "frequency",
        "tokenizers",
    ]
    assert [row.vocab_size for row in (likelihood, frequency, library)] == [19, 19, 19]
    assert (likelihood.idle, frequency.idle, library.idle) == (0, 0, 4)
    assert library.shared == 1
    # 5 special tokens, 7 characters, 3 merges
    assert frequency.shared == pytest.approx(15 / 19)
    assert likelihood.shared < frequency.shared
    # p ##un, hug, hug ##s
    assert library.pieces_per_word == pytest.approx((2 + 1 + 2) / 3)


def test_a_held_out_text_without_a_word_is_refused():
    with pytest.raises(ValueError, match="the held-out texts have no word"):
        compare_trainers(TEXT, [" "], vocab_size=19)
