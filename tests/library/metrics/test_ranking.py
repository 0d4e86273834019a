"""Measures of rankings, against scikit-learn and loops."""

import math

import numpy as np
import pytest
import torch
from expect import assert_near, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from course_lib.metrics.ranking import ndcg, recall_at, reciprocal_rank


def judged(seed, tied=False):
    """Scores of 13 documents for 5 queries, and gains from 0 to 3, one above 0."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(5, 13, generator=generator, dtype=torch.float64)
    if tied:
        scores = scores.round()
    gains = torch.randint(0, 4, (5, 13), generator=generator).double()
    gains *= torch.rand(5, 13, generator=generator) < 0.3
    gains[:, 4] = 2
    return scores, gains


@pytest.mark.parametrize("k", [1, 4, 10, 13, 20])
def test_ndcg_is_scikit_learn_s(k):
    for seed in range(20):
        scores, gains = judged(seed)
        expected = [
            ndcg_score(g[None], s[None], k=k)
            for g, s in zip(gains.numpy(), scores.numpy(), strict=True)
        ]
        assert_near(
            ndcg(scores, gains, k), torch.tensor(np.array(expected)), atol=1e-14
        )


def ranked(scores, gains):
    """TREC's order: by score, and of two equal ones the larger number first."""
    order = sorted(range(len(scores)), key=lambda d: (-scores[d], -d))
    return [gains[d] for d in order]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 3, 10, 13]), st.booleans())
def test_all_measures_follow_trec_s_program_in_a_loop(seed, k, tied):
    """Järvelin and Kekäläinen 2002; Voorhees and Harman 2005, chapter 3."""
    scores, gains = judged(seed, tied)
    found = ndcg(scores, gains, k), recall_at(scores, gains > 0, k)
    reciprocal = reciprocal_rank(scores, gains > 0, k)
    whole = reciprocal_rank(scores, gains > 0)
    for q in range(5):
        order = ranked(scores[q].tolist(), gains[q].tolist())
        best = sorted(order, reverse=True)

        def total(values):
            return sum(g / math.log2(i + 2) for i, g in enumerate(values[:k]))

        assert abs(found[0][q].item() - total(order) / total(best)) < 1e-14
        relevant = [g > 0 for g in order]
        share = sum(relevant[:k]) / sum(relevant)
        assert found[1][q].item() == pytest.approx(share, abs=1e-7)
        first = relevant.index(True) + 1
        assert reciprocal[q].item() == pytest.approx((first <= k) / first, abs=1e-7)
        assert whole[q].item() == pytest.approx(1 / first, abs=1e-7)


def test_the_best_order_has_1_and_an_order_that_finds_nothing_0():
    _, gains = judged(3)
    assert_near(ndcg(gains, gains), torch.ones(5).double(), atol=1e-15)
    assert_near(recall_at(gains, gains > 0, 13), torch.ones(5), atol=0)
    last = -(gains > 0).double()
    assert not ndcg(last, gains, k=2).any()
    assert not recall_at(last, gains > 0, k=2).any()
    assert not reciprocal_rank(last, gains > 0, k=2).any()


def test_what_cannot_be_ranked_is_refused():
    scores, gains = judged(4)
    with refusal("1 queries have no relevant document"):
        ndcg(scores, gains * torch.tensor([1, 1, 0, 1, 1])[:, None])
    with refusal("a score is not finite"):
        recall_at(scores.masked_fill(scores > 1, torch.nan), gains > 0, 3)
    with refusal("a gain is below 0"):
        ndcg(scores, -gains)
    with refusal("k=0; give each document"):
        reciprocal_rank(scores, gains > 0, 0)
