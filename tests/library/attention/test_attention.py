"""Attention against formulas, loops, torch's fused kernel and torch.nn; and what must
hold for any input."""

import math

import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from expect import assert_near, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.attention.masks import causal_mask, masked_softmax, padding_mask
from course_lib.attention.multi_head import (
    attend,
    merge_heads,
    scaled_dot_product_attention,
    self_attention_loops,
    split_heads,
)
from course_lib.attention.scores import AdditiveScore, BilinearScore, DotScore

# All different, so that a transposed or confused dimension cannot go unseen.
B, H, T, S, D, E = 2, 3, 5, 7, 4, 6


def tensors(
    *shapes: tuple[int, ...], dtype: torch.dtype = torch.float64, seed: int = 0
) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, dtype=dtype, generator=generator) for shape in shapes]


def some_mask(*shape: int, seed: int = 1) -> torch.Tensor:
    """A mask with holes in which each query keeps at least one key."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[..., 2] = True
    return mask


class TestMasks:
    def test_padding_mask_marks_words_and_not_padding(self):
        assert padding_mask(torch.tensor([3, 1, 2]), max_length=4).tolist() == [
            [True, True, True, False],
            [True, False, False, False],
            [True, True, False, False],
        ]

    def test_padding_mask_refuses_a_sentence_without_words(self):
        with refusal("sentence 1 has length 0; every sentence needs at least one word"):
            padding_mask(torch.tensor([3, 0, 2]))

    def test_padding_mask_of_an_empty_batch_is_refused(self):
        with refusal("the batch holds no sentence"):
            padding_mask(torch.tensor([], dtype=torch.long))

    def test_padding_mask_refuses_a_sentence_longer_than_the_batch(self):
        with refusal("sentence 1 has 5 words but max_length is 4"):
            padding_mask(torch.tensor([3, 5]), max_length=4)

    def test_causal_mask_lets_position_t_see_t_plus_one_positions(self):
        mask = causal_mask(5)
        assert mask.sum(dim=1).tolist() == [1, 2, 3, 4, 5]
        assert not mask[1, 2]
        assert mask[2, 1]

    def test_causal_mask_of_nothing_is_refused(self):
        with refusal("length is 0"):
            causal_mask(0)


class TestMaskedSoftmax:
    def test_equals_the_formula_written_out(self):
        """Bahdanau et al. 2015, equation 6, over the allowed positions."""
        weights = masked_softmax(
            torch.tensor([1.0, 2.0, 9.0, 0.5]), torch.tensor([True, True, False, True])
        )
        total = math.exp(1.0) + math.exp(2.0) + math.exp(0.5)
        expected = torch.tensor(
            [math.exp(1.0) / total, math.exp(2.0) / total, 0.0, math.exp(0.5) / total]
        )
        assert_near(weights, expected, 0, 1e-6)

    @for_each("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
    def test_a_forbidden_key_gets_exactly_nothing_in_every_precision(self, dtype):
        """A mask of -1e9 overflows float16, and one of -1e4 leaves weight where all
        scores are low."""
        scores = torch.tensor([[-30000.0, -30000.0, 5.0]], dtype=dtype)
        weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
        assert weights.tolist() == [[0.5, 0.5, 0.0]]
        assert weights.dtype == dtype

    def test_normalises_the_dimension_that_it_is_told(self):
        (scores,) = tensors((T, S))
        torch.testing.assert_close(
            masked_softmax(scores, dim=0).sum(dim=0), torch.ones(S, dtype=torch.float64)
        )

    def test_does_not_change_its_input(self):
        (scores,) = tensors((T, S))
        before = scores.clone()
        masked_softmax(scores, some_mask(T, S))
        assert torch.equal(scores, before)

    def test_no_gradient_flows_into_forbidden_scores_and_none_is_nan(self):
        (scores,) = tensors((T, S))
        scores.requires_grad_()
        mask = some_mask(T, S)
        (masked_softmax(scores, mask) ** 2).sum().backward()
        assert scores.grad[~mask].abs().max() == 0
        assert scores.grad[mask].abs().min() > 0

    def test_a_query_that_may_attend_to_nothing_is_refused_in_words(self):
        mask = torch.ones(T, S, dtype=torch.bool)
        mask[3] = False
        with refusal("forbids every key for 1 of the queries"):
            masked_softmax(torch.zeros(T, S), mask)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 6),
    keys=st.integers(1, 9),
    scale=st.floats(0.01, 100),
    shift=st.floats(-50, 50),
    seed=st.integers(0, 9999),
)
def test_weights_sum_to_one_ignore_a_shift_and_never_touch_a_masked_position(
    rows, keys, scale, shift, seed
):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, keys, dtype=torch.float64, generator=generator) * scale
    mask = torch.rand(rows, keys, generator=generator) < 0.5
    mask[torch.arange(rows), torch.randint(keys, (rows,), generator=generator)] = True
    weights = masked_softmax(scores, mask)
    assert (weights[~mask] == 0).all()
    assert (weights >= 0).all()
    assert_near(weights.sum(dim=-1), torch.ones(rows, dtype=torch.float64), 1e-14)
    assert_near(masked_softmax(scores + shift, mask), weights, 1e-12)
    # What stands at a masked position cannot matter at all.
    poisoned = scores.masked_fill(~mask, 1e30)
    assert torch.equal(masked_softmax(poisoned, mask), weights)


class TestScores:
    """Each score against its formula, pair by pair."""

    def pairs(self, query, key, formula):
        return torch.stack(
            [
                torch.stack([torch.stack([formula(q, k) for k in ks]) for q in qs])
                for qs, ks in zip(query, key, strict=True)
            ]
        )

    def test_dot_is_the_dot_product_without_scale(self):
        """Luong et al. 2015, section 3.1: only Vaswani et al. 2017 divide by the root
        of the features."""
        query, key = tensors((B, T, D), (B, S, D))
        torch.testing.assert_close(
            DotScore()(query, key), self.pairs(query, key, lambda q, k: (q * k).sum())
        )

    def test_bilinear_is_query_times_matrix_times_key(self):
        query, key = tensors((B, T, D), (B, S, E))
        score = BilinearScore(D, E).double()
        matrix = score.project.weight  # (D, E)
        expected = self.pairs(query, key, lambda q, k: q @ matrix @ k)
        torch.testing.assert_close(score(query, key), expected)

    def test_a_scaled_bilinear_score_is_divided_by_the_root_of_the_keys_features(self):
        """Vaswani et al. 2017, section 3.2.1, with a matrix between."""
        query, key = tensors((B, T, D), (B, S, E))
        plain = BilinearScore(D, E).double()
        scaled = BilinearScore(D, E, scaled=True).double()
        scaled.load_state_dict(plain.state_dict())
        torch.testing.assert_close(scaled(query, key) * E**0.5, plain(query, key))

    def test_bilinear_agrees_with_torch_bilinear(self):
        query, key = tensors((B, D), (B, E))
        score = BilinearScore(D, E).double()
        theirs = nn.Bilinear(D, E, 1, bias=False).double()
        theirs.weight.data = score.project.weight.data[None]
        torch.testing.assert_close(
            score(query[:, None], key[:, None]).flatten(), theirs(query, key).flatten()
        )

    def test_additive_is_v_tanh_of_the_sum(self):
        """Bahdanau et al. 2015, appendix A.1.2."""
        query, key = tensors((B, T, D), (B, S, E))
        score = AdditiveScore(D, E, hidden_dim=9).double()
        w = score.project_query.weight
        u = score.project_key.weight
        v = score.reduce.weight[0]
        expected = self.pairs(
            query,
            key,
            lambda q, k: v @ torch.tanh(w @ q + u @ k + score.project_key.bias),
        )
        torch.testing.assert_close(score(query, key), expected)

    def test_dot_refuses_different_features_and_says_what_to_use(self):
        with refusal(
            r"query has 4 features and key has 6.*BilinearScore or AdditiveScore"
        ):
            DotScore()(torch.zeros(B, T, D), torch.zeros(B, S, E))

    def test_attend_averages_the_values_of_allowed_keys(self):
        scores, values = tensors((B, T, S), (B, S, E))
        mask = padding_mask(torch.tensor([4, 7]))[:, None]
        context, weights = attend(scores, values, mask)
        torch.testing.assert_close(
            context[0], scores[0, :, :4].softmax(-1) @ values[0, :4]
        )
        torch.testing.assert_close(context[1], scores[1].softmax(-1) @ values[1])
        assert weights.shape == (B, T, S)


class TestScaledDotProductAttention:
    """Vaswani et al. 2017, equation 1: loops = matrices = fused kernel."""

    def loops(self, query, key, value, mask):
        output = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
        for place in torch.cartesian_prod(
            *(torch.arange(n) for n in query.shape[:-1])
        ).tolist():
            *lead, t = place
            allowed = [s for s in range(key.shape[-2]) if mask[(*lead, t, s)]]
            scores = [
                sum(query[(*lead, t)] * key[(*lead, s)]) / math.sqrt(query.shape[-1])
                for s in allowed
            ]
            total = sum(math.exp(score) for score in scores)
            for s, score in zip(allowed, scores, strict=True):
                output[(*lead, t)] += math.exp(score) / total * value[(*lead, s)]
        return output

    def test_loops_matrices_and_fused_kernel_agree(self):
        query, key, value = tensors((B, H, T, D), (B, H, S, D), (B, H, S, E))
        mask = some_mask(B, H, T, S)
        expected = self.loops(query, key, value, mask)
        explicit, weights = scaled_dot_product_attention(query, key, value, mask)
        assert_near(explicit, expected, 1e-12)
        fused = F.scaled_dot_product_attention(query, key, value, mask)
        assert_near(fused, expected, 1e-12)
        torch.testing.assert_close(
            weights.sum(-1), torch.ones(B, H, T, dtype=torch.float64)
        )

    @for_each(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
    @for_each("mask_shape", [None, (B, 1, 1, S), (B, H, T, S), (T, S), (1, S)])
    def test_torch_s_fused_kernel_gives_the_same_with_gradients(
        self, dtype, tolerance, mask_shape
    ):
        inputs = tensors((B, H, T, D), (B, H, S, D), (B, H, S, E), dtype=dtype)
        mask = None if mask_shape is None else some_mask(*mask_shape)
        (direction,) = tensors((B, H, T, E), dtype=dtype, seed=3)
        results = []
        for attention in (
            F.scaled_dot_product_attention,
            lambda *given: scaled_dot_product_attention(*given)[0],
        ):
            leaves = [tensor.clone().requires_grad_() for tensor in inputs]
            output = attention(*leaves, mask)
            (output * direction).sum().backward()
            results.append([output, *(leaf.grad for leaf in leaves)])
        for fused, explicit in zip(*results, strict=True):
            assert_near(fused, explicit, tolerance)

    def test_equals_torch_multihead_attention_once_heads_are_split(self):
        query, key = tensors((B, T, 12), (B, S, 12))
        theirs = nn.MultiheadAttention(
            12, num_heads=H, bias=False, batch_first=True
        ).double()
        w_query, w_key, w_value = theirs.in_proj_weight.chunk(3)
        mask = padding_mask(torch.tensor([5, 7]))
        expected, expected_weights = theirs(
            query, key, key, key_padding_mask=~mask, average_attn_weights=False
        )
        parts = [
            split_heads(x @ w.T, H)
            for x, w in ((query, w_query), (key, w_key), (key, w_value))
        ]
        output, weights = scaled_dot_product_attention(*parts, mask[:, None, None])
        assert_near(merge_heads(output) @ theirs.out_proj.weight.T, expected, 1e-12)
        assert_near(weights, expected_weights, 1e-12)

    def test_refuses_different_features(self):
        with refusal("query has 4 features and key has 6"):
            scaled_dot_product_attention(
                torch.zeros(T, D), torch.zeros(S, E), torch.zeros(S, E)
            )

    @pytest.mark.cpu  # on a GPU no mask is looked at
    def test_refuses_a_query_that_may_attend_to_nothing(self):
        """torch's kernel would answer with nan, or, in some versions, with the mean of
        all values."""
        query, key, value = tensors((B, T, D), (B, S, D), (B, S, E))
        mask = torch.ones(B, 1, S, dtype=torch.bool)
        mask[1] = False
        with refusal("forbids every key for 1 of the queries"):
            scaled_dot_product_attention(query, key, value, mask)


class TestLoops:
    """Vaswani et al. 2017, equation 1, number by number."""

    @for_each(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
    @for_each("mask", [None, some_mask(T, S)])
    def test_loops_equal_matrices_and_give_the_weights_too(
        self, dtype, tolerance, mask
    ):
        query, key, value = tensors((T, D), (S, D), (S, E), dtype=dtype)
        output, weights = self_attention_loops(query, key, value, mask)
        expected, expected_weights = scaled_dot_product_attention(
            query, key, value, mask
        )
        assert_near(output, expected, tolerance)
        assert_near(weights, expected_weights, tolerance)
        if mask is not None:
            assert (weights[~mask] == 0).all()

    def test_a_worked_example(self):
        """Two keys; the scores are ln 3 and 0, so the weights are 3/4 and 1/4."""
        root = 2.0  # of 4 features
        query = torch.tensor([[root, 0.0, 0.0, 0.0]], dtype=torch.float64)
        key = torch.tensor([[3.0, 0, 0, 0], [1.0, 5, 5, 5]], dtype=torch.float64)
        key[:, 0] = key[:, 0].log()
        output, weights = self_attention_loops(
            query, key, torch.tensor([[8.0], [16.0]], dtype=torch.float64)
        )
        assert weights.tolist() == [
            [pytest.approx(0.75, abs=1e-15), pytest.approx(0.25, abs=1e-15)]
        ]
        assert output.item() == pytest.approx(10.0, abs=1e-14)

    def test_large_scores_do_not_overflow(self):
        """exp(710) is beyond float64: the largest score must be taken off first."""
        query, key, value = (
            torch.tensor(x, dtype=torch.float64)
            for x in ([[1000.0]], [[1.0], [0.999]], [[1.0], [0.0]])
        )
        output, weights = self_attention_loops(query, key, value)
        assert_near(weights, query.new_tensor([[1.0, 0.0]]).softmax(-1), 0, 1e-12)
        assert output.item() == weights[0, 0].item()

    @pytest.mark.cpu  # on a GPU no mask is looked at
    def test_a_query_that_may_attend_to_nothing_is_refused_in_words(self):
        mask = torch.ones(T, S, dtype=torch.bool)
        mask[3] = False
        with refusal("forbids every key for 1 of the queries"):
            self_attention_loops(*tensors((T, D), (S, D), (S, E)), mask)

    def test_different_features_are_refused_in_words(self):
        with refusal("query has 4 features and key has 6"):
            self_attention_loops(*tensors((T, D), (S, E), (S, E)))


class TestHeads:
    def test_head_h_holds_the_hth_slice_of_features(self):
        (hidden,) = tensors((B, T, 12))
        heads = split_heads(hidden, num_heads=3)
        assert heads.shape == (B, 3, T, 4)
        assert torch.equal(heads[:, 1], hidden[..., 4:8])

    @pytest.mark.parametrize("num_heads", [5, 0, -3])
    def test_heads_that_do_not_divide_the_features_are_refused_with_a_remedy(
        self, num_heads
    ):
        with refusal(
            f"12, do not divide into num_heads={num_heads}; choose one of 1, 2, 3,"
            " 4, 6, 12"
        ):
            split_heads(torch.zeros(B, T, 12), num_heads)
