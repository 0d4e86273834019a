"""Skip-gram with negative sampling against sums by hand, and vectors from files
(Mikolov et al. 2013; GloVe)."""

import math

import numpy as np
import pytest
import torch
from expect import assert_near, refusal

from course_lib.embeddings.skip_gram import (
    SkipGram,
    SkipGramBatch,
    SkipGramConfig,
    WordCorpus,
    keep_probability,
    noise_distribution,
    skip_gram_loss,
    skip_gram_loss_sum,
    skip_gram_pairs,
)
from course_lib.embeddings.static import StaticVectors


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


class TestTheLoss:
    """Mikolov et al. 2013b, equation 4, written out number by number."""

    centre = ((0.3, -0.7), (1.1, 0.4), (-0.2, 0.9))
    context = ((0.5, 0.2), (-0.6, 0.8), (0.1, -1.3))
    noise = (
        ((0.9, 0.1), (-0.4, 0.6), (0.2, 0.2), (1.5, -0.3)),
        ((0.3, 0.3), (0.7, -0.9), (-1.2, 0.5), (0.0, 0.4)),
        ((-0.8, 0.2), (0.6, 0.6), (0.1, 1.4), (-0.5, -0.5)),
    )

    def by_hand(self) -> list[float]:
        losses = []
        for v, u, others in zip(self.centre, self.context, self.noise, strict=True):
            loss = -math.log(sigma(u[0] * v[0] + u[1] * v[1]))
            for other in others:
                loss -= math.log(sigma(-(other[0] * v[0] + other[1] * v[1])))
            losses.append(loss)
        return losses

    def test_it_is_the_sum_of_one_true_and_four_noise_terms(self):
        found = skip_gram_loss(
            *(
                torch.tensor(x, dtype=torch.float64)
                for x in (self.centre, self.context, self.noise)
            )
        )
        assert_near(found.tolist(), self.by_hand(), 0, 1e-12)

    def test_its_gradients_are_those_of_the_formula(self):
        """dL/dv = (σ(u·v) - 1) u + Σ σ(u_n·v) u_n; dL/du = (σ(u·v) - 1) v; dL/du_n =
        σ(u_n·v) v."""
        centre, context, noise = (
            torch.tensor(x, dtype=torch.float64, requires_grad=True)
            for x in (self.centre, self.context, self.noise)
        )
        skip_gram_loss(centre, context, noise).sum().backward()
        for row, (v, u, others) in enumerate(
            zip(self.centre, self.context, self.noise, strict=True)
        ):
            pull = sigma(np.dot(u, v)) - 1
            push = [sigma(np.dot(other, v)) for other in others]
            of_centre = pull * np.array(u) + sum(
                p * np.array(o) for p, o in zip(push, others, strict=True)
            )
            for ours, theirs in (
                (centre, of_centre),
                (context, pull * np.array(v)),
                (noise, np.outer(push, v)),
            ):
                assert_near(ours.grad[row], torch.from_numpy(theirs), 0, 1e-12)

    def test_a_large_product_gives_no_infinity(self):
        centre = torch.full((1, 2), 100.0)
        context = torch.full((1, 2), -100.0)
        noise = torch.full((1, 3, 2), 100.0)
        assert skip_gram_loss(centre, context, noise).item() == pytest.approx(
            4 * 20_000
        )


class TestTheModel:
    def test_centres_are_looked_up_in_one_table_and_neighbours_in_the_other(self):
        model = SkipGram(vocab_size=7, dim=3).double()
        for table in (model.centre, model.context):
            torch.nn.init.normal_(table.weight)
        batch = SkipGramBatch(
            torch.tensor([4, 1]),
            torch.tensor([2, 6]),
            torch.tensor([[0, 5, 4], [3, 3, 1]]),
        )
        v, u = model.centre.weight, model.context.weight
        expected = skip_gram_loss(
            v[[4, 1]], u[[2, 6]], torch.stack([u[[0, 5, 4]], u[[3, 3, 1]]])
        )
        assert torch.equal(model(batch), expected)
        total, count = skip_gram_loss_sum(model, batch)
        assert (total.item(), count) == (
            pytest.approx(expected.sum().item(), rel=1e-12),
            2,
        )

    def test_only_the_words_of_a_batch_learn(self):
        model = SkipGram(vocab_size=9, dim=4)
        torch.nn.init.normal_(model.context.weight)
        batch = SkipGramBatch(
            torch.tensor([4]), torch.tensor([2]), torch.tensor([[7, 8]])
        )
        skip_gram_loss_sum(model, batch)[0].backward()
        slopes = [
            table.weight.grad.abs().sum(dim=1)
            for table in (model.centre, model.context)
        ]
        moved = [slope.nonzero().flatten().tolist() for slope in slopes]
        assert moved == [[4], [2, 7, 8]]


class TestPairs:
    def test_each_word_meets_the_neighbours_in_its_own_reach(self):
        """Five places, the last of another sentence; the reach is that of the centre,
        not of the neighbour."""
        pairs = skip_gram_pairs(
            np.array([0, 0, 0, 0, 1]), np.array([3, 1, 2, 1, 3]), window=3
        )
        assert sorted(map(tuple, pairs.tolist())) == [
            *[(0, 1), (0, 2), (0, 3)],
            *[(1, 0), (1, 2)],
            *[(2, 0), (2, 1), (2, 3)],
            (3, 2),
        ]

    def test_a_window_wider_than_the_text_is_no_error(self):
        assert skip_gram_pairs(
            np.array([0, 0]), np.array([5, 5]), window=5
        ).tolist() == [[0, 1], [1, 0]]
        assert skip_gram_pairs(np.array([0]), np.array([5]), window=5).shape == (0, 2)

    def test_frequent_words_are_thinned_out_as_the_square_root_says(self):
        """Equation 5: 1 - sqrt(t / f) are discarded, with f a share of the text."""
        counts = np.array([9000, 900, 90, 10])
        expected = [math.sqrt(0.01 / 0.9), math.sqrt(0.01 / 0.09), 1.0, 1.0]
        np.testing.assert_allclose(keep_probability(counts, 0.01), expected, rtol=1e-12)

    def test_noise_is_drawn_by_counts_to_the_power_of_three_quarters(self):
        corpus = WordCorpus(
            [["a"] * 81 + ["b"] * 16 + ["c"]] * 60,
            SkipGramConfig(min_count=1, subsample=1.0, noise=7, window=2),
        )
        drawn = np.concatenate(
            [batch.noise_ids.flatten().numpy() for batch in corpus(epoch=0)]
        )
        expected = np.array([27, 8, 1]) / 36
        np.testing.assert_allclose(
            noise_distribution(corpus.counts), expected, rtol=1e-12
        )
        shares = np.bincount(drawn, minlength=3) / len(drawn)
        assert np.abs(shares - expected).max() < 5 * math.sqrt(0.25 / len(drawn))


class TestBatches:
    sentences = [
        ["the", "old", "mill", "turns"],
        ["the", "mill", "is", "old"],
        ["rare"],
        ["the", "end"],
    ] * 5

    def test_rare_words_are_left_out_before_windows_are_laid(self):
        text = [["the", "odd", "mill"], ["the", "mill"]]  # "odd" stands between, once
        corpus = WordCorpus(
            text, SkipGramConfig(min_count=2, window=1, subsample=1.0, batch_size=99)
        )
        batch = next(corpus(epoch=0))
        pairs = sorted(
            zip(batch.centre_ids.tolist(), batch.context_ids.tolist(), strict=True)
        )
        assert corpus.words == ["the", "mill"]
        assert pairs == [(0, 1), (0, 1), (1, 0), (1, 0)]

    def test_no_pair_crosses_a_sentence(self):
        corpus = WordCorpus(
            self.sentences,
            SkipGramConfig(min_count=1, subsample=1.0, window=4, batch_size=7),
        )
        allowed = {(a, b) for s in self.sentences for a in s for b in s if a != b}
        met = {
            (corpus.words[c], corpus.words[o])
            for epoch in range(4)
            for batch in corpus(epoch)
            for c, o in zip(
                batch.centre_ids.tolist(), batch.context_ids.tolist(), strict=True
            )
        }
        assert met == allowed

    def test_an_epoch_is_determined_by_seed_and_number(self):
        def drawn(seed, epoch):
            corpus = WordCorpus(
                self.sentences,
                SkipGramConfig(min_count=1, subsample=0.1, batch_size=5, seed=seed),
            )
            return [[column.tolist() for column in batch] for batch in corpus(epoch)]

        assert drawn(3, 1) == drawn(3, 1)
        assert drawn(3, 1) != drawn(3, 2)
        assert drawn(3, 1) != drawn(4, 1)

    def test_a_frequent_word_is_left_out_and_a_rare_one_never(self):
        """Mikolov et al. 2013b, section 2.3: "the" stays with sqrt(0.05 * 11 / 10)."""
        text = [["the", "the"]] * 200 + [["old", "mill"]] * 20
        corpus = WordCorpus(text, SkipGramConfig(min_count=1, window=1, subsample=0.05))
        batches = [batch for epoch in range(20) for batch in corpus(epoch)]
        centres = torch.cat([batch.centre_ids for batch in batches]).bincount().tolist()
        the, *rare = [
            centres[corpus.words.index(word)] for word in ("the", "old", "mill")
        ]
        assert rare == [400, 400]  # 20 sentences, 20 epochs
        assert the == pytest.approx(20 * 400 * 0.055, rel=0.15)  # both of a pair stay

    def test_too_little_text_is_refused_in_words(self):
        with refusal(
            "1 words occur min_count=6 times; take more text, or lower min_count"
        ):
            WordCorpus([["so"] * 6, ["few"]], SkipGramConfig(min_count=6))

    @pytest.mark.parametrize(
        ("setting", "words"),
        [
            ({"window": 0}, "window is 0"),
            ({"noise": 0}, "noise is 0"),
            ({"subsample": 0.0}, "subsample is 0.0"),
        ],
    )
    def test_settings_that_teach_nothing_are_refused(self, setting, words):
        with refusal(words):
            SkipGramConfig(**setting)


class TestVectors:
    def vectors(self) -> StaticVectors:
        return StaticVectors(
            ["river", "stream", "money", "bank"],
            torch.tensor([[4.0, 0.0], [0.3, 0.03], [0.0, 2.0], [1.0, 1.0]]),
        )

    def test_the_nearest_is_judged_by_direction_and_not_by_length(self):
        """By inner product "bank" (4) would be nearer to "river" than "stream"
        (1.2)."""
        nearest = self.vectors().nearest("river", most=2)
        assert [word for word, _ in nearest] == ["stream", "bank"]
        assert nearest[1][1] == pytest.approx(math.sqrt(0.5))
        assert len(self.vectors().nearest("river", most=9)) == 3

    def test_a_word_without_vector_says_so(self):
        assert "rivers" not in self.vectors()
        with refusal("'rivers' has no vector", KeyError):
            self.vectors()["rivers"]

    def test_a_word_that_comes_twice_is_refused(self):
        with refusal("'a' comes more than once"):
            StaticVectors(["b", "a", "a"], torch.zeros(3, 2))
        with refusal("2 words but 3 rows"):
            StaticVectors(["b", "a"], torch.zeros(3, 2))


class TestGloveFiles:
    def write(self, folder, text: str):
        path = folder / "glove.txt"
        path.write_bytes(text.encode())
        return path

    def test_a_published_kind_of_line_is_read(self, tmp_path):
        """A line separator and a no-break space inside of words, and a word with a
        space, as in glove.840B.300d."""
        path = self.write(
            tmp_path,
            "the 0.5 -1e-2 3\nto\u2028day 1 2 3\nno\u00a0break 4 5 6\n. . 7 8 9\n",
        )
        vectors = StaticVectors.from_glove(path)
        assert vectors.words == ["the", "to\u2028day", "no\u00a0break", ". ."]
        assert vectors.matrix.dtype == torch.float32
        assert_near(vectors["the"], torch.tensor([0.5, -0.01, 3.0]), 0)
        assert vectors[". ."].tolist() == [7, 8, 9]

    def test_the_head_of_a_word2vec_file_is_no_word(self, tmp_path):
        assert StaticVectors.from_glove(
            self.write(tmp_path, "2 3\nthe 1 2 3\nof 4 5 6\n")
        ).words == ["the", "of"]

    def test_only_the_words_that_were_asked_for_are_kept(self, tmp_path):
        path = self.write(tmp_path, "the 1 2\nof 3 4\nand 5 6\n")
        assert StaticVectors.from_glove(
            path, words={"and", "the", "nowhere"}
        ).words == ["the", "and"]

    def test_of_a_repeated_word_the_first_counts_and_a_warning_says_so(self, tmp_path):
        with pytest.warns(UserWarning, match="1 lines repeat a word"):
            vectors = StaticVectors.from_glove(
                self.write(tmp_path, "the 1 2\nthe 3 4\n")
            )
        assert vectors["the"].tolist() == [1, 2]

    def test_what_was_saved_is_read_back_bit_for_bit(self, tmp_path):
        saved = StaticVectors(["one", "two words", "три"], torch.randn(3, 5))
        saved.save_glove(tmp_path / "vectors.txt")
        read = StaticVectors.from_glove(tmp_path / "vectors.txt")
        assert read.words == saved.words
        assert torch.equal(read.matrix, saved.matrix)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "the 1 2 3\nof 4 5\n",
                "line 2: expected a word and 3 numbers, found 3 fields",
            ),
            (
                "the 1 2\nof 4 five\n",
                "line 2: could not convert string to float: 'five'",
            ),
            ("the 1 2\nof 4 nan\n", "line 2: a number is not finite"),
            ("the\n", "line 1: expected a word"),
            ("", "holds a vector of none of the words"),
        ],
    )
    def test_a_damaged_file_is_refused_in_words(self, tmp_path, text, words):
        with refusal(words):
            StaticVectors.from_glove(self.write(tmp_path, text))
