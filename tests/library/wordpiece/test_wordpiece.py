"""The encoder: greedy pieces, offsets, pairs, truncation, padding, decoding; both
tokenizers behind one interface."""

import pytest
from cases import for_each
from expect import refusal
from hypothesis import given
from hypothesis import strategies as st

from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import (
    SPECIAL_TOKENS,
    WordPiece,
    detokenize,
    longest_match,
    truncate,
)

VOCAB = [
    *SPECIAL_TOKENS,
    "un",
    "una",
    "##aff",
    "##ble",
    "##ffable",
    "able",
    "##a",
    "a",
    "b",
    "c",
    "!",
    "中",
]
BOTH = pytest.mark.parametrize("kind", [WordPiece, FastWordPiece])


class TestGreedyPieces:
    """``WordpieceTokenizer`` in the code of Devlin et al. 2019, whose example is
    "unaffable"."""

    def test_the_longest_piece_is_taken_first(self):
        assert longest_match("unaffable", {"un", "##aff", "##able"}) == [
            "un",
            "##aff",
            "##able",
        ]
        assert longest_match("unaffable", {*VOCAB}) == ["una", "##ffable"]

    def test_greed_may_end_in_a_dead_end_and_does_not_look_back(self):
        """un + ##aff would go on; una leaves "ff", which no piece begins."""
        assert longest_match("unaff", {"un", "una", "##aff"}) == ["[UNK]"]

    def test_a_word_with_one_unknown_character_is_unknown_as_a_whole(self):
        assert longest_match("aaz", {"a", "##a"}) == ["[UNK]"]

    def test_a_piece_that_begins_a_word_does_not_continue_one(self):
        assert longest_match("ab", {"a", "b"}) == ["[UNK]"]
        assert longest_match("ab", {"##a", "##b"}) == ["[UNK]"]

    @for_each(
        ("length", "known"), [(99, True), (100, True), (101, False), (10_000, False)]
    )
    @BOTH
    def test_a_word_of_more_than_a_hundred_characters_is_unknown(
        self, kind, length, known
    ):
        encoding = kind(VOCAB).encode("a" * length, add_special_tokens=False)
        assert (encoding.tokens == ["[UNK]"]) != known
        assert encoding.offsets[-1][1] == length

    @BOTH
    def test_the_bound_is_on_characters_after_normalisation(self, kind):
        assert kind(VOCAB).encode("a\u0301" * 100, add_special_tokens=False).tokens == [
            "a",
            *["##a"] * 99,
        ]


@BOTH
class TestEncoding:
    def test_offsets_are_of_the_original_text(self, kind):
        text = "  Unáffable\u200b\u200b, 中b"
        encoding = kind(VOCAB).encode(text)
        assert encoding.tokens == [
            "[CLS]",
            "una",
            "##ffable",
            "[UNK]",
            "中",
            "b",
            "[SEP]",
        ]
        assert [text[start:end] for start, end in encoding.offsets[1:-1]] == [
            "Uná",
            "ffable",
            ",",
            "中",
            "b",
        ]
        assert encoding.offsets[0] == encoding.offsets[-1] == (0, 0)

    def test_an_unknown_word_spans_all_of_itself(self, kind):
        assert kind(VOCAB).encode("a xyzzy b").offsets[2] == (2, 7)

    def test_a_pair_has_two_segments_and_offsets_of_its_own(self, kind):
        encoding = kind(VOCAB).encode("a b", "unable!")
        assert encoding.tokens == [
            "[CLS]",
            "a",
            "b",
            "[SEP]",
            "una",
            "##ble",
            "!",
            "[SEP]",
        ]
        assert encoding.type_ids == [0, 0, 0, 0, 1, 1, 1, 1]
        assert encoding.offsets == [
            (0, 0),
            (0, 1),
            (2, 3),
            (0, 0),
            (0, 3),
            (3, 6),
            (6, 7),
            (0, 0),
        ]
        assert encoding.special_tokens_mask == [1, 0, 0, 1, 0, 0, 0, 1]
        assert encoding.ids[:4] == [2, 12, 13, 3]

    def test_without_special_tokens_only_the_text_is_left(self, kind):
        encoding = kind(VOCAB).encode("a", "b c", add_special_tokens=False)
        assert (encoding.tokens, encoding.type_ids) == (["a", "b", "c"], [0, 1, 1])

    def test_a_special_token_in_the_text_is_one_and_counts_as_text(self, kind):
        encoding = kind(VOCAB).encode("a[MASK]b [mask]")
        assert encoding.tokens[1:4] == ["a", "[MASK]", "b"]
        assert encoding.offsets[1:4] == [(0, 1), (1, 7), (7, 8)]
        assert encoding.special_tokens_mask[2] == 0
        assert encoding.tokens.count("[MASK]") == 1

    @for_each(
        ("max_length", "tokens"),
        [
            (9, "[CLS] a a a b [SEP] c c [SEP]"),
            (8, "[CLS] a a a [SEP] c c [SEP]"),
            (7, "[CLS] a a [SEP] c c [SEP]"),
            (6, "[CLS] a a [SEP] c [SEP]"),
            (5, "[CLS] a [SEP] c [SEP]"),
            (3, "[CLS] [SEP] [SEP]"),
        ],
    )
    def test_the_longer_text_is_cut_first(self, kind, max_length, tokens):
        assert (
            kind(VOCAB).encode("a a a b", "c c", max_length=max_length).tokens
            == tokens.split()
        )

    def test_a_batch_is_padded_to_its_longest_and_padding_gets_no_attention(self, kind):
        long, short = kind(VOCAB).encode_batch([("a", "b c"), "unable"])
        assert len(long) == len(short) == 6
        assert short.tokens == ["[CLS]", "una", "##ble", "[SEP]", "[PAD]", "[PAD]"]
        assert short.attention_mask == [1, 1, 1, 1, 0, 0]
        assert short.special_tokens_mask == [1, 0, 0, 1, 1, 1]
        assert short.type_ids == [0] * 6

    def test_a_batch_is_padded_to_a_length_or_not_at_all(self, kind):
        texts = ["a", "a b c b a"]
        assert [len(row) for row in kind(VOCAB).encode_batch(texts, padding=5)] == [
            5,
            7,
        ]
        assert [
            len(row) for row in kind(VOCAB).encode_batch(texts, padding=5, max_length=5)
        ] == [5, 5]
        assert [len(row) for row in kind(VOCAB).encode_batch(texts, padding=None)] == [
            3,
            7,
        ]
        assert kind(VOCAB).encode_batch([]) == []

    @for_each(
        ("call", "words"),
        [
            (
                lambda made: made.encode("a", max_length=1),
                "max_length=1 has no room for the 2 special tokens",
            ),
            (
                lambda made: made.encode("a", "b", max_length=2),
                "max_length=2 has no room for the 3 special tokens",
            ),
            (
                lambda made: made.encode("a\udc80"),
                r"character 1 of the text is U\+DC80, half of a surrogate pair",
            ),
            (
                lambda made: made.encode_batch([("a", "\ud800")]),
                "character 0 of the text is U.D800",
            ),
            (
                lambda made: made.decode([5, 17]),
                "id 17 is not of the vocabulary; ids run from 0 to 16",
            ),
            (lambda made: made.decode([-1]), "id -1 is not of the vocabulary"),
        ],
    )
    def test_what_cannot_be_encoded_or_decoded_is_refused_in_the_same_words(
        self, kind, call, words
    ):
        with refusal(words):
            call(kind(VOCAB))

    @for_each(
        ("vocab", "words"),
        [
            (["a"], r"the vocabulary lacks \[UNK\]"),
            (["[UNK]", "a", "b", "a"], "the vocabulary has 'a' twice, as 1 and as 3"),
            (["[UNK]", ""], "piece 1 of the vocabulary is ''"),
            (
                ["[UNK]", "a b"],
                (
                    "piece 1 of the vocabulary is 'a b'; a piece has a character or"
                    " more, no space"
                ),
            ),
            (["[UNK]", "a\n"], "piece 1 of the vocabulary"),
            (["[UNK]", "\ud800"], "half of a surrogate pair"),
        ],
    )
    def test_what_is_no_vocabulary_is_refused(self, kind, vocab, words):
        with refusal(words):
            kind(vocab)

    def test_a_special_token_is_needed_when_it_is_used_and_not_before(self, kind):
        bare = kind(["[UNK]", "a"])
        assert bare.encode("a b", add_special_tokens=False).ids == [1, 0]
        with refusal(r"the vocabulary lacks \[CLS\]; train it with the special tokens"):
            bare.encode("a")
        with refusal(r"the vocabulary lacks \[PAD\]"):
            bare.encode_batch(["a"], add_special_tokens=False)

    def test_decoding_joins_pieces_and_closes_up_marks(self, kind):
        made = kind([*VOCAB, ",", "?", "."])
        ids = made.encode("Unable, a !  b? [MASK].").ids
        assert made.decode(ids) == "unable, a! b?."
        assert (
            made.decode(ids, skip_special_tokens=False)
            == "[CLS] unable, a! b? [MASK]. [SEP]"
        )

    def test_a_piece_that_continues_stays_as_it_is_at_the_start(self, kind):
        made = kind(VOCAB)
        assert made.decode([made.vocab["##ble"], made.vocab["##a"]]) == "##blea"


def test_no_piece_is_no_text():
    assert detokenize([]) == ""


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
def test_truncation_ends_where_taking_one_token_after_the_other_from_the_longer_ends(
    first, second, room
):
    """``truncate_seq_pair`` of Devlin et al. 2019, but for who has one more of an odd
    room."""
    one, other = first, second
    while one + other > room:
        if one > other:
            one -= 1
        else:
            other -= 1
    kept = truncate(first, second, room)
    assert sum(kept) == one + other
    assert sorted(kept) == sorted((one, other))
    assert all(stay <= had for stay, had in zip(kept, (first, second), strict=True))
