"""The trainer against the definition written out, the worked example of the course, and
the library's trainer."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lab.texts import hostile_texts
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.normalize import split_words
from course_lib.wordpiece.training import (
    SPECIAL_TOKENS,
    Merge,
    count_words,
    first_pieces,
    join,
    merge_pieces,
    pair_scores,
    train_wordpiece,
)

COUNTS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
TEXT = [" ".join(word for word, count in COUNTS.items() for _ in range(count))]
SPLITS = {word: first_pieces(word) for word in COUNTS}
ALPHABET = ["##g", "##n", "##s", "##u", "b", "h", "p"]

# Few letters, so that pairs and ties abound; lengths to 8, so that pieces repeat within
# a word.
CORPORA = st.dictionaries(
    st.text("abc", min_size=1, max_size=8), st.integers(1, 9), min_size=1, max_size=9
)


def train_by_definition(counts, vocab_size, score, min_frequency):
    """Count everything anew before each merge: slow, and hardly more than the sentences
    that define the method."""
    splits = {word: first_pieces(word) for word in counts}
    vocab = [
        *SPECIAL_TOKENS,
        *sorted({piece for pieces in splits.values() for piece in pieces}),
    ]
    merges = []
    while len(vocab) < vocab_size:
        frequency = Counter()
        for word, pieces in splits.items():
            for pair in pairwise(pieces):
                frequency[pair] += counts[word]
        scores = pair_scores(splits, counts, score)
        choice = [pair for pair in scores if frequency[pair] >= min_frequency]
        if not choice:
            break
        best = min(choice, key=lambda pair: (-scores[pair], -frequency[pair], pair))
        merges.append(Merge(*best, join(*best), scores[best], frequency[best]))
        splits = {word: merge_pieces(pieces, *best) for word, pieces in splits.items()}
        if merges[-1].merged not in vocab:
            vocab.append(merges[-1].merged)
    return vocab, merges


class TestTheWorkedExample:
    """Syllabus, row 20: hug 10, pug 5, pun 12, bun 4, hugs 5."""

    def test_at_first_g_s_is_best_with_one_twentieth_and_all_others_are_equal(self):
        scores = pair_scores(SPLITS, COUNTS)
        assert scores.pop(("##g", "##s")) == Fraction(5, 20 * 5) == Fraction(1, 20)
        # u is in every word: 10 + 5 + 12 + 4 + 5
        assert set(scores.values()) == {Fraction(1, 36)}

    def test_once_hu_is_a_piece_hu_gs_scores_a_fifteenth_and_hu_g_two_forty_fifths(
        self,
    ):
        splits = SPLITS
        for pair in (("##g", "##s"), ("h", "##u")):
            splits = {
                word: merge_pieces(pieces, *pair) for word, pieces in splits.items()
            }
        scores = pair_scores(splits, COUNTS)
        assert scores["hu", "##gs"] == Fraction(5, 15 * 5) == Fraction(1, 15)
        assert scores["hu", "##g"] == Fraction(10, 15 * 15) == Fraction(2, 45)
        assert max(scores, key=scores.get) == ("hu", "##gs")

    def test_frequency_prefers_the_pair_that_is_in_most_words(self):
        scores = pair_scores(SPLITS, COUNTS, score="frequency")
        assert max(scores, key=scores.get) == ("##u", "##g")
        assert scores["##u", "##g"] == 20

    def test_the_trainer_makes_these_merges(self):
        """Of the equal pairs p + ##u is the most frequent (17 times); after it u is
        rarer and h + ##u scores 1/19."""
        training = train_wordpiece(COUNTS, vocab_size=17)
        assert training.vocab == [
            *SPECIAL_TOKENS,
            *ALPHABET,
            "##gs",
            "pu",
            "hu",
            "bu",
            "hugs",
        ]
        assert [merge.score for merge in training.merges] == [
            Fraction(1, 20),
            Fraction(1, 36),
            Fraction(1, 19),
            Fraction(1, 4),
            Fraction(1, 15),
        ]


class TestTheTrainer:
    @given(
        CORPORA,
        st.sampled_from(["likelihood", "frequency"]),
        st.integers(1, 12),
        st.integers(1, 40),
    )
    @settings(max_examples=150, deadline=None)
    def test_it_makes_the_merges_of_the_definition_in_their_order(
        self, counts, score, min_frequency, more
    ):
        """Also where ties, repeated pieces and scores that rise without the pair being
        touched are the rule."""
        size = (
            len(SPECIAL_TOKENS)
            + len({piece for word in counts for piece in first_pieces(word)})
            + more
        )
        expected = train_by_definition(counts, size, score, min_frequency)
        training = train_wordpiece(counts, size, score, min_frequency)
        assert (training.vocab, training.merges) == expected

    def test_a_score_that_rises_because_a_part_became_rare_is_seen(self):
        """After a + ##b is merged, c + ##b has ##b nearly to itself: 4/(4·4) and no
        longer 4/(4·24)."""
        counts = {"ab": 20, "cb": 4, "xyz": 2, "xz": 6}
        merges = train_wordpiece(counts, vocab_size=16).merges
        assert (merges[-1].merged, merges[-1].score) == ("cb", Fraction(1, 4))
        assert merges == train_by_definition(counts, 16, "likelihood", 1)[1]

    def test_the_order_of_the_words_does_not_matter(self):
        backwards = dict(reversed(COUNTS.items()))
        assert train_wordpiece(COUNTS, 18) == train_wordpiece(backwards, 18)

    def test_equal_scores_go_by_frequency_and_then_by_string_order(self):
        """ab and cd score 1/3, ef 1/2, gh 1/2: ef before gh, cd before nothing."""
        merges = train_wordpiece(
            {"ab": 3, "gh": 2, "cd": 3, "ef": 2}, vocab_size=17
        ).merges
        assert [merge.merged for merge in merges] == ["ef", "gh", "ab", "cd"]
        merges = train_wordpiece(
            {"ab": 3, "gh": 2, "cd": 3, "ef": 2}, vocab_size=17, score="frequency"
        ).merges
        assert [merge.merged for merge in merges] == ["ab", "cd", "ef", "gh"]

    def test_scores_that_differ_in_the_seventeenth_digit_are_told_apart(self):
        """Two fractions that are the same number in floating point."""
        big = 10**17
        counts = {"ab": big, "axb": 1, "cd": big + 1, "cyd": 1}
        first, second = Fraction(big, (big + 1) ** 2), Fraction(big + 1, (big + 2) ** 2)
        assert first > second
        assert float(first) == float(second)
        merges = train_wordpiece(counts, vocab_size=100).merges
        assert merges == train_by_definition(counts, 100, "likelihood", 1)[1]
        order = [merge.merged for merge in merges]
        # by frequency, were they taken for equal, it would be after it
        assert order.index("ab") < order.index("cd")

    def test_a_rare_pair_is_left_alone(self):
        training = train_wordpiece({"ab": 9, "cd": 2}, vocab_size=50, min_frequency=3)
        assert [merge.merged for merge in training.merges] == ["ab"]

    def test_training_ends_when_every_word_is_a_piece(self):
        assert len(train_wordpiece(COUNTS, vocab_size=1000).vocab) < 30
        assert {"hug", "pug", "pun", "bun", "hugs"} <= set(
            train_wordpiece(COUNTS, vocab_size=1000).vocab
        )

    def test_words_with_a_rare_character_are_left_out_with_it(self):
        training = train_wordpiece({"ab": 9, "az": 1}, vocab_size=50, limit_alphabet=2)
        assert training.vocab == [*SPECIAL_TOKENS, "##b", "a", "ab"]

    def test_words_that_encoding_would_not_look_at_are_not_learned(self):
        training = train_wordpiece(
            {"ab": 1, "c" * 101: 50, "c" * 100: 1}, vocab_size=12
        )
        assert training.merges[0].frequency == 1
        assert train_wordpiece({"ab": 1, "c" * 101: 50}, vocab_size=50).vocab == [
            *SPECIAL_TOKENS,
            "##b",
            "a",
            "ab",
        ]

    @for_each(
        ("counts", "size", "options", "words"),
        [
            ({}, 100, {}, "there is no word to learn from"),
            (
                {"a": 0},
                100,
                {},
                "the word 'a' has count 0; pass words of 1 character or more",
            ),
            ({"": 3}, 100, {}, "the word '' has count 3"),
            (
                COUNTS,
                11,
                {},
                (
                    "vocab_size=11 has no room for 5 special tokens, 7 characters; pass"
                    " at least 12"
                ),
            ),
        ],
    )
    def test_what_cannot_be_learned_from_is_refused(self, counts, size, options, words):
        with pytest.raises(ValueError, match=words):
            train_wordpiece(counts, size, **options)


class TestCounting:
    def test_words_are_counted_as_encoding_will_cut_them(self):
        assert count_words(["Été, été!", "ETE"]) == {"ete": 3, ",": 1, "!": 1}
        assert count_words(["Été"], lowercase=False) == {"Été": 1}

    def test_the_counts_are_those_of_each_text_split_by_itself_in_the_order_of_the_text(
        self,
    ):
        texts = hostile_texts(300, seed=0)
        one_by_one = Counter(word.text for text in texts for word in split_words(text))
        assert list(count_words(texts).items()) == list(one_by_one.items())

    def test_one_string_is_not_taken_for_many(self):
        with pytest.raises(TypeError, match=r"texts is one string.*pass a list"):
            count_words("a text")


class TestTheLibrarySTrainer:
    """It is named after WordPiece, and it merges by frequency."""

    def test_its_merges_are_those_of_our_score_frequency(self):
        """Up to ties, which it breaks by the numbers of its pieces; there is none among
        the first three."""
        ours = train_wordpiece(COUNTS, vocab_size=12 + 3, score="frequency")
        theirs = FastWordPiece.train(TEXT, vocab_size=16 + 3)
        assert ours.vocab[12:] == theirs.pieces[16:] == ["##ug", "##un", "hug"]

    def test_its_alphabet_has_characters_as_first_ones_that_begin_no_word(self):
        theirs = FastWordPiece.train(TEXT, vocab_size=16)
        assert sorted(theirs.pieces) == sorted(
            [*SPECIAL_TOKENS, *ALPHABET, "g", "n", "s", "u"]
        )

    def test_its_merges_are_not_those_of_the_likelihood(self):
        likely = train_wordpiece(COUNTS, vocab_size=15).vocab[12:]
        assert not set(likely) & set(
            FastWordPiece.train(TEXT, vocab_size=16 + 3).pieces
        )

    def test_a_limit_keeps_the_most_frequent_characters(self):
        theirs = FastWordPiece.train(TEXT, vocab_size=50, limit_alphabet=3)
        assert {piece for piece in theirs.pieces if len(piece) == 1} == {"u", "g", "p"}
