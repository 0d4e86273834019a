"""Sentence pairs: adjacent, or of two documents; half of each; nothing else tells them
apart (Devlin et al. 2019)."""

from collections import Counter

import numpy as np
import pytest
from cases import for_each
from expect import refusal
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ks_2samp

from course_lib.pretraining.masking import IGNORE
from course_lib.pretraining.next_sentence import (
    IS_NEXT,
    NOT_NEXT,
    exchange_second_segments,
    sentence_pairs,
)
from course_lib.pretraining.packing import cut_long_sentences
from course_lib.pretraining.sequences import Sequences

MAX_LENGTH = (
    21  # room for 18 tokens beside [CLS] and two [SEP], so for sentences of up to 9
)


@st.composite
def corpora(draw, alike=False):
    """Ids, sentence starts, document starts; with `alike`, documents repeat one
    another's sentences."""
    documents = draw(
        st.lists(
            st.lists(st.integers(1, 9), min_size=1, max_size=12), min_size=2, max_size=9
        )
    )
    sentences = np.cumsum(
        [0, *(length for document in documents for length in document)]
    )
    ids = np.arange(sentences[-1])
    if alike:
        ids = np.array(
            draw(st.lists(st.integers(0, 1), min_size=len(ids), max_size=len(ids)))
        )
    return ids, sentences, np.cumsum([0, *map(len, documents)])


def made(corpus, seed, short_share=0.1) -> Sequences:
    """Pairs of a corpus; one that cannot give half of its pairs a partner is no
    example."""
    try:
        return sentence_pairs(
            *corpus, MAX_LENGTH, np.random.default_rng(seed), short_share
        )
    except ValueError as error:
        assume("find a partner from another document" not in str(error))
        raise


def pairs_of(pairs: Sequences) -> list[tuple[tuple[int, int], tuple[int, int], int]]:
    """The pairs as ((start, end) of the first segment, of the second, label), without
    single segments."""
    of_two = np.flatnonzero(np.diff(pairs.first_piece) == 2)
    at = pairs.first_piece[of_two]
    columns = (
        pairs.starts[at],
        pairs.ends[at],
        pairs.starts[at + 1],
        pairs.ends[at + 1],
        pairs.labels[of_two],
    )
    return [
        ((a, b), (c, d), label)
        for a, b, c, d, label in zip(*map(np.ndarray.tolist, columns), strict=True)
    ]


def large_corpus(documents=700, seed=9):
    """Documents of 2 to 15 sentences, of 1 to 9 tokens, all different."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 16, documents)
    sentences = np.append(0, np.cumsum(random.integers(1, 10, sizes.sum())))
    return np.arange(sentences[-1]), sentences, np.append(0, np.cumsum(sizes))


class TestEveryPair:
    @given(corpora(), st.integers(0, 999))
    @settings(deadline=None, max_examples=60)
    def test_the_next_is_next_and_another_is_of_another_document(self, corpus, seed):
        _, sentences, documents = corpus
        starts = sentences[documents]
        for (first, middle), (second, end), label in pairs_of(made(corpus, seed)):
            documents_of = (
                np.searchsorted(
                    starts, [first, middle - 1, second, end - 1], side="right"
                )
                - 1
            )
            assert documents_of[0] == documents_of[1], "a segment is of one document"
            assert documents_of[2] == documents_of[3]
            if label == IS_NEXT:
                assert second == middle
                assert documents_of[0] == documents_of[2]
            else:
                assert label == NOT_NEXT
                assert documents_of[0] != documents_of[2]

    @given(corpora(), st.integers(0, 999), st.sampled_from([0.0, 0.1, 1.0]))
    @settings(deadline=None, max_examples=60)
    def test_every_token_is_read_once_in_whole_sentences_within_the_length(
        self, corpus, seed, short_share
    ):
        pairs = made(corpus, seed, short_share)
        order = np.argsort(pairs.starts)
        assert pairs.starts[order].tolist() == [0, *pairs.ends[order][:-1].tolist()]
        assert pairs.ends.max() == len(corpus[0])
        assert set(pairs.starts.tolist()) <= set(corpus[1].tolist())
        assert pairs.lengths.max() <= MAX_LENGTH

    @given(corpora(), st.integers(0, 999))
    @settings(deadline=None, max_examples=60)
    def test_both_labels_are_half_of_the_pairs_and_a_single_sentence_has_none(
        self, corpus, seed
    ):
        pairs = made(corpus, seed)
        count = Counter(pairs.labels.tolist())
        assert abs(count[IS_NEXT] - count[NOT_NEXT]) <= 3
        assert count[NOT_NEXT] % 2 == 0, "two pairs exchange"
        assert (pairs.labels == IGNORE).tolist() == (
            np.diff(pairs.first_piece) == 1
        ).tolist()
        assert pairs.segments[pairs.first_piece[:-1]].tolist() == [0] * len(pairs)
        assert pairs.segments.sum() == count[IS_NEXT] + count[NOT_NEXT]

    @given(corpora(alike=True), st.integers(0, 999))
    @settings(deadline=None, max_examples=60)
    def test_what_begins_as_the_true_next_segment_is_never_called_another(
        self, corpus, seed
    ):
        ids, sentences, documents = corpus
        pairs = made(corpus, seed)
        ends = sentences[documents[1:]]
        for (_, middle), (second, end), label in pairs_of(pairs):
            if label == NOT_NEXT:
                rest = ids[middle : ends[np.searchsorted(ends, middle, side="right")]]
                assert ids[second:end].tolist() != rest[
                    : end - second
                ].tolist() or end - second > len(rest)

    def test_a_document_of_one_sentence_is_read_alone(self):
        pairs = sentence_pairs(
            np.arange(9),
            np.array([0, 4, 9]),
            np.array([0, 1, 2]),
            MAX_LENGTH,
            np.random.default_rng(0),
        )
        assert (pairs.starts.tolist(), pairs.ends.tolist(), pairs.labels.tolist()) == (
            [0, 4],
            [4, 9],
            [IGNORE] * 2,
        )

    def test_copies_of_a_document_never_exchange(self):
        """Twins and a stranger, one pair each: what the twins would exchange is the
        true next."""
        ids = np.array([1, 2, 3, 4] * 2 + [5, 6, 7, 8] * 2)
        sentences, documents = np.arange(0, 17, 2), np.arange(0, 9, 2)
        exchanged = 0
        for seed in range(50):
            pairs = pairs_of(
                sentence_pairs(
                    ids, sentences, documents, 7, np.random.default_rng(seed)
                )
            )
            for (_, middle), (second, _), label in pairs:
                assert (label == NOT_NEXT) == (ids[second] != ids[middle])
                exchanged += label == NOT_NEXT
        assert exchanged == 100, "two of four pairs each time"


class TestNothingElseTellsTheLabel:
    """A model that could read the label off one segment, or off a length, would score
    without understanding."""

    pairs = staticmethod(
        lambda seed: pairs_of(
            sentence_pairs(*large_corpus(), 40, np.random.default_rng(seed))
        )
    )

    def test_no_second_segment_begins_a_document_whatever_the_label(self):
        """A random place in a random document would be its first sentence one time in
        eight; the next never is."""
        _, sentences, documents = large_corpus()
        firsts = set(sentences[documents].tolist())
        assert not any(second in firsts for _, (second, _), _ in self.pairs(1))

    @pytest.mark.parametrize("what", ["second", "both"])
    def test_lengths_have_the_same_distribution_under_both_labels(self, what):
        lengths = {IS_NEXT: [], NOT_NEXT: []}
        for (first, middle), (second, end), label in self.pairs(2):
            lengths[label].append(
                end - second + (middle - first if what == "both" else 0)
            )
        assert abs(len(lengths[IS_NEXT]) - len(lengths[NOT_NEXT])) <= 2
        assert ks_2samp(*lengths.values()).pvalue > 0.01

    def test_every_document_has_both_labels_half_of_the_time(self):
        _, sentences, documents = large_corpus(documents=30)
        counts = np.zeros((30, 2), dtype=int)
        for seed in range(150):
            made = sentence_pairs(
                *large_corpus(documents=30), 40, np.random.default_rng(seed)
            )
            for (first, _), _, label in pairs_of(made):
                counts[
                    np.searchsorted(sentences[documents], first, side="right") - 1,
                    label,
                ] += 1
        for of_document in counts:
            low, high = binom.interval(1 - 1e-5, int(of_document.sum()), 0.5)
            assert low <= of_document[NOT_NEXT] <= high

    def test_where_a_run_is_cut_is_uniform(self):
        """Documents of six sentences of one token each: five places to cut."""
        bounds = np.arange(6 * 5000 + 1), np.arange(0, 6 * 5000 + 1, 6)
        made = sentence_pairs(
            bounds[0][:-1], *bounds, 21, np.random.default_rng(3), short_share=0.0
        )
        cuts = Counter(middle - first for (first, middle), _, _ in pairs_of(made))
        assert sorted(cuts) == [1, 2, 3, 4, 5]
        low, high = binom.interval(1 - 1e-6, 5000, 1 / 5)
        assert all(low <= count <= high for count in cuts.values())


class TestSeeds:
    def test_the_same_seed_gives_the_same_pairs_and_another_gives_others(self):
        one, same, other = (
            pairs_of(sentence_pairs(*large_corpus(), 40, np.random.default_rng(s)))
            for s in (4, 4, 5)
        )
        assert one == same
        assert len(set(one) & set(other)) < 0.3 * len(one)

    def test_pairs_of_one_length_exchange_with_any_other(self):
        first, second = np.arange(4 * 12).reshape(-1, 2, 2).transpose(1, 0, 2)
        partners = {
            int(
                exchange_second_segments(
                    np.arange(48),
                    first,
                    second,
                    np.arange(12),
                    9,
                    np.random.default_rng(s),
                )[0][7, 0]
            )
            for s in range(250)
        }
        assert partners == set(second[:, 0].tolist()), (
            "its own, or that of each other pair"
        )

    @for_each("count", [1, 2, 3, 5, 8])
    def test_a_number_that_is_no_multiple_of_four_is_made_even_by_chance(self, count):
        """Pairs are exchanged two by two, so the rest of the division by four decides
        on one couple more."""
        first, second = np.arange(0, 4 * count).reshape(-1, 2, 2).transpose(1, 0, 2)
        made = [
            exchange_second_segments(
                np.arange(4 * count),
                first,
                second,
                np.arange(count),
                9,
                np.random.default_rng(seed),
            )[1].sum()
            for seed in range(100)
        ]
        assert set(made) <= {count // 4 * 2, count // 4 * 2 + 2}
        if count > 1:
            assert abs(np.mean(made) - count / 2) < 0.4


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            [0] * 8,
            (
                "of 8 pairs only 0 find a partner from another document, but 4 are to"
                " get a random second segment"
            ),
        ),
        ([0] * 7 + [1], "of 8 pairs only 2 find a partner"),
    ],
)
def test_too_few_documents_are_refused_in_words(document, words):
    first, second = np.arange(32).reshape(8, 2, 2).transpose(1, 0, 2)
    with refusal(words):
        exchange_second_segments(
            np.arange(32),
            first,
            second,
            np.array(document),
            9,
            np.random.default_rng(0),
        )


@given(
    st.lists(st.integers(0, 4), min_size=4, max_size=40).filter(
        lambda d: max(Counter(d).values()) * 2 <= len(d)
    ),
    st.integers(0, 99),
)
@settings(deadline=None, max_examples=60)
def test_as_long_as_no_document_has_more_than_half_of_the_pairs_half_of_all_exchange(
    document, seed
):
    count = len(document)
    first, second = np.arange(4 * count).reshape(-1, 2, 2).transpose(1, 0, 2)
    _, labels = exchange_second_segments(
        np.arange(4 * count),
        first,
        second,
        np.array(document),
        9,
        np.random.default_rng(seed),
    )
    assert labels.sum() in (count // 4 * 2, count // 4 * 2 + 2)


def test_a_sentence_that_is_too_long_is_refused_and_cut_long_sentences_helps():
    ids = np.arange(40)
    sentences = np.array([0, 11, 14, 20, 40])
    documents = np.array([0, 2, 4])
    with refusal(
        "a sentence has 20 tokens; in pairs of max_length=21 there is room for 9"
    ):
        sentence_pairs(ids, sentences, documents, MAX_LENGTH, np.random.default_rng(0))
    cut = cut_long_sentences(sentences, documents, 9)
    assert (
        sentence_pairs(ids, *cut, MAX_LENGTH, np.random.default_rng(0)).lengths.max()
        <= MAX_LENGTH
    )
