"""Runs of sentences, packing, laying out and batches: every token once, in its order,
where it belongs."""

from itertools import pairwise

import numpy as np
import pytest
from expect import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.pretraining.packing import cut_into_runs, cut_long_sentences, pack
from course_lib.pretraining.sequences import Sequences, Specials, batch_plan, lay_out

SPECIALS = Specials(pad_id=-1, cls_id=-2, sep_id=-3)
CORPORA = st.lists(
    st.lists(st.integers(1, 9), min_size=1, max_size=12), min_size=1, max_size=9
)
"""Documents as lists of the lengths of their sentences."""


def bounds(corpus: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Where sentences and documents begin; the ids of such a corpus are taken to be 0,
    1, 2, ..."""
    lengths = [length for document in corpus for length in document]
    return np.cumsum([0, *lengths]), np.cumsum([0, *map(len, corpus)])


def drawn(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def sequences(*rows: list[tuple[int, int, int]]) -> Sequences:
    """Sequences of pieces (start, end, segment)."""
    pieces = [piece for row in rows for piece in row]
    starts, ends, segments = (np.array(column) for column in zip(*pieces, strict=True))
    return Sequences(
        starts,
        ends,
        segments,
        np.cumsum([0, *map(len, rows)]),
        np.zeros(len(rows), dtype=int),
    )


class TestLongSentences:
    @given(CORPORA, st.integers(1, 9))
    def test_parts_are_as_few_and_as_equal_as_can_be_and_documents_stay(
        self, corpus, longest
    ):
        sentences, documents = bounds(corpus)
        cut, of_documents = cut_long_sentences(sentences, documents, longest)
        assert set(sentences) <= set(cut)
        for start, end in pairwise(sentences):
            parts = np.diff(cut[(cut >= start) & (cut <= end)])
            assert len(parts) == -(-(end - start) // longest)
            assert parts.max() - parts.min() <= 1
            assert parts.max() <= longest
        assert cut[of_documents].tolist() == sentences[documents].tolist()


class TestRuns:
    @given(
        CORPORA,
        st.integers(0, 999),
        st.sampled_from([0.0, 0.1, 1.0]),
        st.integers(18, 40),
    )
    def test_runs_are_whole_sentences_of_one_document_and_hold_every_sentence(
        self, corpus, seed, short, room
    ):
        sentences, documents = bounds(corpus)
        first, end, document = cut_into_runs(
            sentences, documents, room, drawn(seed), short
        )
        order = np.argsort(first)
        assert first[order].tolist() == [0, *end[order][:-1]]
        assert end.max() == len(sentences) - 1
        assert (sentences[end] - sentences[first] <= room).all()
        assert (documents[document] <= first).all()
        assert (end <= documents[document + 1]).all()

    @given(CORPORA, st.integers(0, 999))
    def test_a_single_sentence_is_left_only_where_two_full_ones_stand_before_it(
        self, corpus, seed
    ):
        sentences, documents = bounds(corpus)
        first, end, document = cut_into_runs(sentences, documents, 18, drawn(seed), 0.1)
        for run in np.flatnonzero(end - first == 1):
            of_document = np.flatnonzero(document == document[run])
            before = of_document[end[of_document] == first[run]]
            assert len(before) == 0 or end[before[0]] - first[before[0]] == 2
            assert end[run] == documents[document[run] + 1], (
                "only at the end of a document"
            )

    def test_a_run_takes_all_that_fits_and_no_more(self):
        sentences, documents = bounds([[4, 4, 4, 4, 4, 3, 5]])
        runs = cut_into_runs(sentences, documents, 20, drawn(0), short_share=0.0)
        assert [column.tolist() for column in runs] == [[0, 5], [5, 7], [0, 0]]
        runs = cut_into_runs(sentences, documents, 19, drawn(0), short_share=0.0)
        assert [column.tolist() for column in runs] == [[0, 4], [4, 7], [0, 0]]

    def test_one_run_in_ten_is_shorter_than_would_fit(self):
        """The code of Devlin et al. 2019 calls this share short_seq_prob."""
        sentences, documents = bounds([[1] * 60_000])
        first, end, _ = cut_into_runs(sentences, documents, 100, drawn(3))
        short = float((end - first < 100).mean())
        assert 0.06 < short < 0.14
        lengths = (end - first)[end - first < 100]
        assert lengths.min() < 15
        assert 40 < lengths.mean() < 62


class TestPacking:
    @given(CORPORA, st.integers(0, 999), st.integers(11, 40), st.booleans())
    def test_every_sentence_is_packed_once_in_order_within_the_length(
        self, corpus, seed, max_length, across
    ):
        sentences, documents = bounds(corpus)
        packed = pack(
            sentences,
            documents,
            max_length,
            drawn(seed),
            label=-100,
            across_documents=across,
        )
        assert packed.lengths.max() <= max_length
        order = np.argsort(packed.starts)
        assert packed.starts[order].tolist() == [0, *packed.ends[order][:-1]]
        assert packed.ends.max() == sentences[-1]
        assert set(packed.starts) <= set(sentences), "whole sentences"
        document = (
            np.searchsorted(sentences[documents], packed.starts, side="right") - 1
        )
        assert (packed.ends <= sentences[documents[document + 1]]).all(), (
            "a piece is of one document"
        )
        if not across:
            assert np.diff(packed.first_piece).max() == 1

    @given(CORPORA, st.integers(0, 999), st.integers(11, 40))
    def test_the_next_sentence_would_not_have_fitted(self, corpus, seed, max_length):
        sentences, documents = bounds(corpus)
        packed = pack(sentences, documents, max_length, drawn(seed), label=-100)
        ends = packed.ends[packed.first_piece[1:] - 1]
        begins = packed.starts[packed.first_piece[:-1]]
        for row in range(len(packed) - 1):
            following = begins[row + 1]
            length = sentences[np.searchsorted(sentences, following) + 1] - following
            separator = (
                0
                if following == ends[row] and following not in sentences[documents]
                else 1
            )
            assert packed.lengths[row] + separator + length > max_length

    def test_documents_come_in_another_order_for_another_seed(self):
        corpus = bounds([[3]] * 40)
        orders = [
            pack(*corpus, 5, drawn(seed), label=0).starts.tolist() for seed in (1, 1, 2)
        ]
        assert orders[0] == orders[1] != orders[2]
        assert sorted(orders[0]) == sorted(orders[2])


class TestLayout:
    def test_a_pair_as_in_figure_2_of_the_paper(self):
        """[CLS] my dog is cute [SEP] he likes play ##ing [SEP], segments E_A six times
        and E_B five times."""
        laid = lay_out(
            np.arange(9), sequences([(0, 4, 0), (4, 8, 1)]), np.array([0]), 13, SPECIALS
        )
        assert laid.input_ids.tolist() == [[-2, 0, 1, 2, 3, -3, 4, 5, 6, 7, -3, -1, -1]]
        assert laid.token_type_ids.tolist() == [[0] * 6 + [1] * 5 + [0, 0]]
        assert laid.special_tokens_mask.astype(int).tolist() == [
            [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1]
        ]
        assert laid.lengths.tolist() == [11]

    @given(st.data())
    @settings(deadline=None)
    def test_any_rows_of_any_pieces_are_as_a_loop_would_lay_them_out(self, data):
        piece = st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(0, 1))
        made = data.draw(
            st.lists(st.lists(piece, min_size=1, max_size=4), min_size=1, max_size=6)
        )
        rows = data.draw(
            st.lists(st.integers(0, len(made) - 1), min_size=1, max_size=7)
        )
        all_rows = sequences(
            *(
                [(start, start + size, segment) for start, size, segment in row]
                for row in made
            )
        )
        width = int(all_rows.lengths[rows].max()) + data.draw(st.integers(0, 3))
        ids = np.arange(100, 150, dtype=np.uint16)
        laid = lay_out(ids, all_rows, np.array(rows), width, SPECIALS)
        for at, row in enumerate(rows):
            tokens, segments = [SPECIALS.cls_id], [0]
            for start, size, segment in made[row]:
                tokens += [*ids[start : start + size].tolist(), SPECIALS.sep_id]
                segments += [segment] * (size + 1)
            padding = width - len(tokens)
            assert laid.lengths[at] == len(tokens) == all_rows.lengths[row]
            assert laid.input_ids[at].tolist() == tokens + [SPECIALS.pad_id] * padding
            assert laid.token_type_ids[at, len(tokens) :].tolist() == [0] * padding
            assert laid.token_type_ids[at, 1 : len(tokens)].tolist() == segments[1:]
            assert (
                laid.special_tokens_mask[at].tolist()
                == [token < 0 for token in tokens] + [True] * padding
            )


class TestBatchPlan:
    @given(
        st.lists(st.integers(1, 50), min_size=1, max_size=200),
        st.sampled_from([1, 4, 8]),
        st.integers(0, 99),
    )
    def test_each_sequence_is_in_one_batch_that_is_wide_enough_and_not_too_large(
        self, lengths, multiple, seed
    ):
        plan = batch_plan(np.array(lengths), 60, multiple, drawn(seed))
        assert sorted(row for _, rows in plan for row in rows.tolist()) == list(
            range(len(lengths))
        )
        for width, rows in plan:
            assert width % multiple == 0
            assert max(lengths[row] for row in rows) <= width
            assert len(rows) * width <= 60
        full = [len(rows) == 60 // width for width, rows in plan]
        assert all(full[:-1]), "only the last may be smaller"

    @given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(0, 99))
    def test_dropping_the_last_leaves_as_many_shapes_as_widths(self, lengths, seed):
        kept = batch_plan(np.array(lengths), 60, 8, drawn(seed))
        dropped = batch_plan(np.array(lengths), 60, 8, drawn(seed), drop_last=True)
        assert len({(width, len(rows)) for width, rows in dropped}) == len(
            {width for width, _ in dropped}
        )
        assert len(kept) - len(dropped) in (0, 1)
        assert sum(len(rows) for _, rows in dropped) > len(lengths) - 60 // 8

    def test_little_is_padding_and_the_same_sequences_do_not_always_meet(self):
        """Batches of random lengths from 10 to 128 would be half padding."""
        lengths = drawn(0).integers(10, 129, 5000)
        plans = [batch_plan(lengths, 64 * 128, 8, drawn(seed)) for seed in (1, 2)]
        for plan in plans:
            assert lengths.sum() / sum(width * len(rows) for width, rows in plan) > 0.9
        assert {tuple(sorted(rows)) for _, rows in plans[0]}.isdisjoint(
            tuple(sorted(rows)) for _, rows in plans[1]
        )

    def test_what_has_the_width_already_is_not_padded(self):
        (width, rows), *more = batch_plan(np.array([8] * 5), 40, 8, drawn(0))
        assert (width, len(rows), more) == (8, 5, [])

    def test_a_batch_too_small_for_one_sequence_is_refused_in_words(self):
        with refusal(
            "a batch has 60 positions, but a sequence needs 64; take larger batches"
        ):
            batch_plan(np.array([61, 3]), 60, 8, drawn(0))


@pytest.mark.parametrize("missing", ["[PAD]", "[CLS]", "[SEP]"])
def test_a_vocabulary_without_a_special_token_is_refused_in_words(missing):
    vocab = {
        token: index
        for index, token in enumerate(["[PAD]", "[CLS]", "[SEP]"])
        if token != missing
    }
    with refusal(rf"the vocabulary lacks \{missing[:-1]}\]"):
        Specials.of(vocab)
