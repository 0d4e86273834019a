"""Layers, words and senses: each selection against its sum written out, pooling by
hand, scores by other means."""

from inspect import unwrap

import numpy as np
import pytest
import torch
from cases import for_each
from expect import assert_near, refusal
from sklearn.metrics import roc_auc_score
from torch import nn

from course_lib.bert.model import BertConfig, BertModel
from course_lib.embeddings.contextual import (
    NO_WORD,
    SELECTIONS,
    LayerMix,
    encode_words,
    pool_words,
    select_layers,
    sense_separation,
)
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece

H = tuple(
    (
        torch.randn(7, 2, 3, 5, generator=torch.Generator().manual_seed(0)).double()
    ).unbind()
)


class TestSelections:
    """Devlin et al. 2019, table 7, on a model of six layers: H[0] are the
    embeddings."""

    @for_each(
        ("how", "expected"),
        [
            ("first", H[0]),
            ("last", H[6]),
            ("second_to_last", H[5]),
            ("sum_last_4", H[3] + H[4] + H[5] + H[6]),
            ("concat_last_4", torch.cat([H[3], H[4], H[5], H[6]], dim=2)),
            ("sum", H[1] + H[2] + H[3] + H[4] + H[5] + H[6]),
        ],
    )
    def test_each_is_the_sum_that_its_name_says(self, how, expected):
        assert_near(select_layers(H, how), expected, 1e-12, 1e-12)

    def test_all_that_are_named_are_known(self):
        # concatenation sums alike
        assert len({select_layers(H, how).sum().item() for how in SELECTIONS}) == 6 - 1

    def test_they_are_the_layers_of_a_real_model(self):
        bert = BertModel(BertConfig.tiny(vocab_size=31, num_hidden_layers=5)).eval()
        ids = torch.tensor([[2, 9, 3]])
        with torch.no_grad():
            output = bert(ids, return_hidden_states=True)
            assert torch.equal(
                select_layers(output.hidden_states, "first"), bert.embeddings(ids)
            )
            assert torch.equal(
                select_layers(output.hidden_states, "last"), output.last_hidden_state
            )
        assert select_layers(output.hidden_states, "concat_last_4").shape == (
            1,
            3,
            4 * 128,
        )

    @for_each(
        ("states", "how", "words"),
        [
            (
                H[:4],
                "sum_last_4",
                (
                    "sum_last_4 needs the embeddings and 4 layers, but there are 4"
                    " states in all"
                ),
            ),
            (H[:2], "second_to_last", "needs the embeddings and 2 layers"),
            (H[:1], "last", "needs the embeddings and 1 layers"),
            ((), "first", "there are 0 states"),
            (H, "average", "how is 'average'; choose one of first, last"),
        ],
    )
    def test_what_cannot_be_selected_is_refused_in_words(self, states, how, words):
        with refusal(words):
            # as a student calls it: without the types checked
            unwrap(select_layers)(states, how)


class TestLayerMix:
    def test_it_is_the_scaled_sum_with_softmax_weights(self):
        """Peters et al. 2018, equation 1."""
        mix = LayerMix(3).double()
        nn.init.constant_(mix.scale, 1.7)
        mix.weights.data.copy_(torch.tensor([0.2, -1.1, 0.8]))
        shares = np.exp([0.2, -1.1, 0.8]) / np.exp([0.2, -1.1, 0.8]).sum()
        expected = 1.7 * (shares[0] * H[0] + shares[1] * H[1] + shares[2] * H[2])
        assert_near(mix(H[:3]), expected, 1e-6, 1e-6)

    def test_it_starts_as_the_mean_and_learns_which_layer_helps(self):
        mix = LayerMix(3)
        states = [state.float() for state in H[:3]]
        torch.testing.assert_close(mix(states), (states[0] + states[1] + states[2]) / 3)
        optimizer = torch.optim.Adam(mix.parameters(), lr=0.1)
        for _ in range(150):
            optimizer.zero_grad()
            (mix(states) - 2 * states[1]).square().mean().backward()
            optimizer.step()
        assert mix.weights.softmax(dim=0)[1] > 0.95
        assert mix.scale.item() == pytest.approx(2, abs=0.1)

    def test_another_number_of_states_is_refused(self):
        with refusal("there are 2 states, but this mix has 3 weights"):
            LayerMix(3)(H[:2])
        with refusal("num_states is 0"):
            LayerMix(0)


class TestWords:
    pieces = (*SPECIAL_TOKENS, "em", "##bed", "##ding", "it", ".", "(", ")", "int")

    @pytest.mark.parametrize("kind", [WordPiece, FastWordPiece])
    def test_each_piece_remembers_its_word(self, kind):
        encoded = encode_words(
            kind(self.pieces), ["It", "embedding", "(int)", "xyz", "."]
        )
        assert [self.pieces[i] for i in encoded.ids] == [
            *[
                "[CLS]",
                "it",
                "em",
                "##bed",
                "##ding",
                "(",
                "int",
                ")",
                "[UNK]",
                ".",
                "[SEP]",
            ]
        ]
        assert encoded.word_ids == [NO_WORD, 0, 1, 1, 1, 2, 2, 2, 3, 4, NO_WORD]

    def test_a_word_in_which_nothing_is_found_becomes_unknown_and_keeps_its_place(self):
        encoded = encode_words(WordPiece(self.pieces), ["it", "\u200b", "it"])
        assert [self.pieces[i] for i in encoded.ids] == [
            "[CLS]",
            "it",
            "[UNK]",
            "it",
            "[SEP]",
        ]
        assert encoded.word_ids == [NO_WORD, 0, 1, 2, NO_WORD]

    @for_each(
        ("longest", "kept"), [(8, 4), (7, 3), (6, 2), (5, 1), (4, 1), (3, 1), (2, 0)]
    )
    def test_whole_words_are_dropped_from_the_end(self, longest, kept):
        encoded = encode_words(
            WordPiece(self.pieces), ["it", "embedding", ".", "it"], longest
        )
        assert len(encoded.ids) <= longest
        assert max(encoded.word_ids) + 1 == kept
        assert encoded.ids[-1] == 3

    def test_a_mean_is_over_the_words_own_pieces(self):
        """Two sentences: two words of 1 and 3 pieces; three of 2, 1 and 1. Special
        tokens and padding hold 100."""
        numbers = [[100, 1, 2, 4, 9, 100, 100], [100, 3, 5, 7, 11, 100, 100]]
        hidden = torch.tensor(numbers, dtype=torch.float64)[:, :, None] * torch.tensor(
            [1.0, -1.0]
        )
        word_ids = torch.tensor([[-1, 0, 1, 1, 1, -1, -1], [-1, 0, 0, 1, 2, -1, -1]])
        mean = pool_words(hidden, word_ids)
        first = pool_words(hidden, word_ids, "first")
        assert mean.shape == (2, 3, 2)
        assert mean[:, :, 0].tolist() == [[1, 5, 0], [4, 7, 11]]
        assert first[:, :, 0].tolist() == [[1, 2, 0], [3, 7, 11]]
        assert torch.equal(mean[:, :, 1], -mean[:, :, 0])

    def test_pooling_agrees_with_a_loop_over_words(self):
        random = np.random.default_rng(2)
        word_ids = torch.tensor(
            [sorted(random.integers(0, 6, 11).tolist()) for _ in range(4)]
        )
        word_ids[:, [0, 10]] = NO_WORD
        hidden = torch.randn(4, 11, 3, dtype=torch.float64)
        mean = pool_words(hidden, word_ids)
        first = pool_words(hidden, word_ids, "first")
        for row in range(4):
            for word in range(int(word_ids.max()) + 1):
                own = hidden[row][word_ids[row] == word]
                if len(own):
                    torch.testing.assert_close(mean[row, word], own.mean(dim=0))
                    torch.testing.assert_close(first[row, word], own[0])
                else:
                    assert (mean[row, word] == 0).all()

    def test_nothing_to_pool_is_refused(self):
        with refusal("no piece is of a word"):
            pool_words(torch.zeros(1, 2, 3), torch.full((1, 2), NO_WORD))


class TestSeparation:
    def test_a_use_compares_its_own_sense_with_others_as_a_roc_curve_does(self):
        """Mean over uses of the area under the curve of cosines, by scikit-learn; three
        senses of unequal numbers."""
        senses = ["a"] * 4 + ["b"] * 7 + ["c"] * 2
        vectors = torch.randn(
            13, 5, generator=torch.Generator().manual_seed(4)
        ) + torch.tensor([3.0, 0, 0, 0, 0])
        vectors[:4, 1] += 1.5
        unit = (vectors / vectors.norm(dim=1, keepdim=True)).double().numpy()
        areas = []
        for use in range(13):
            others = [other for other in range(13) if other != use]
            same = [senses[other] == senses[use] for other in others]
            areas.append(roc_auc_score(same, (unit @ unit[use])[others]))
        score = sense_separation(vectors, senses)
        assert score == pytest.approx(np.mean(areas), abs=1e-9)
        assert 0.55 < score < 0.95

    def test_one_vector_for_all_uses_is_chance_exactly(self):
        vectors = torch.randn(1, 300).expand(37, -1) * 3.1
        assert sense_separation(vectors, [number % 3 for number in range(37)]) == 0.5

    def test_length_and_a_common_rotation_change_nothing(self):
        senses = [0, 0, 0, 1, 1, 1, 1]
        vectors = torch.randn(7, 4, generator=torch.Generator().manual_seed(1)).double()
        rotation, _ = torch.linalg.qr(torch.randn(4, 4).double())
        score = sense_separation(vectors, senses)
        assert sense_separation(
            vectors * torch.rand(7, 1) @ rotation, senses
        ) == pytest.approx(score, abs=1e-12)
        assert 0.05 < score < 0.95

    def test_perfect_and_inverted(self):
        apart = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
        assert sense_separation(apart, ["x", "x", "y", "y"]) == 1.0
        assert sense_separation(apart, ["x", "y", "y", "x"]) == pytest.approx(
            0.25, abs=0.25
        )

    def test_senses_without_order_in_the_vectors_are_near_chance(self):
        generator = torch.Generator().manual_seed(5)
        scores = [
            sense_separation(
                torch.randn(40, 20, generator=generator),
                [number % 2 for number in range(40)],
            )
            for _ in range(30)
        ]
        assert abs(np.mean(scores) - 0.5) < 0.02

    @pytest.mark.parametrize(
        ("count", "senses", "words"),
        [
            (3, ["x", "x"], "3 vectors but 2 senses"),
            (2, ["x", "x"], "2 uses of 1 senses hold nothing to compare"),
            (2, ["x", "y"], "give two senses, one of them twice"),
        ],
    )
    def test_what_cannot_be_compared_is_refused_in_words(self, count, senses, words):
        with refusal(words):
            sense_separation(torch.randn(count, 3), senses)
