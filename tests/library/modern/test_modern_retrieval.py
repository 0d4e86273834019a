"""Fusion of rankings and sparse vectors, against loops."""

import math

import torch
from expect import assert_near
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining
from course_lib.modern.model import ModernBertConfig, ModernBertForMaskedLM
from course_lib.modern.retrieval import (
    flops_loss,
    reciprocal_rank_fusion,
    sparse_vectors,
)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 60.0]))
def test_fusion_adds_reciprocal_ranks(seed, k):
    """Cormack et al. 2009, section 2; ties share the best of their ranks."""
    torch.manual_seed(seed)
    systems = [torch.randint(0, 5, (2, 7)).double(), torch.randn(2, 7).double()]
    found = reciprocal_rank_fusion(systems, k)
    for q in range(2):
        for d in range(7):
            expected = 0.0
            for scores in systems:
                better = sum(float(scores[q, j] > scores[q, d]) for j in range(7))
                expected += 1 / (k + 1 + better)
            assert abs(found[q, d].item() - expected) < 1e-15


def test_the_unit_of_a_system_s_scores_does_not_matter():
    torch.manual_seed(1)
    words, vectors = torch.randn(3, 11), torch.randn(3, 11)
    expected = reciprocal_rank_fusion([words, vectors])
    assert torch.equal(
        reciprocal_rank_fusion([100 * words + 7, vectors.exp()]), expected
    )
    assert_near(reciprocal_rank_fusion([vectors, words]), expected, atol=1e-8)


def test_documents_that_no_word_is_found_in_keep_the_order_of_the_other_system():
    """BM25 gives 0 to most documents: none of them may rise by its place in a file."""
    words = torch.tensor([[0.0, 0.0, 4.0, 0.0, 0.0]])
    vectors = torch.tensor([[0.1, 0.4, 0.0, 0.5, 0.2]])
    fused = reciprocal_rank_fusion([words, vectors])[0]
    rest = [0, 1, 3, 4]
    assert fused[rest].argsort().tolist() == vectors[0, rest].argsort().tolist()


def test_sparse_vectors_are_the_loop_s_and_padding_has_no_part():
    """Formal et al. 2021b, equation 6, number by number."""
    torch.manual_seed(2)
    logits = torch.randn(3, 5, 7, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([5, 2, 1])[:, None]
    logits[~mask] = 99.0
    found = sparse_vectors(logits, mask)
    for b in range(3):
        for v in range(7):
            weights = [
                math.log(1 + max(0.0, logits[b, t, v].item()))
                for t in range(5)
                if mask[b, t]
            ]
            assert abs(found[b, v].item() - max(weights)) < 1e-15
    assert (found == 0).any()
    assert_near(sparse_vectors(logits[:1]), found[:1], atol=0)


def test_the_loss_is_the_sum_of_squared_mean_weights():
    """Paria et al. 2020, section 4: the expected cost, token by token; one that all
    texts weigh costs more than many that one text weighs."""
    torch.manual_seed(3)
    vectors = torch.rand(4, 9, dtype=torch.float64)
    expected = sum((sum(vectors[:, v].tolist()) / 4) ** 2 for v in range(9))
    assert abs(flops_loss(vectors).item() - expected) < 1e-14
    spread, piled = torch.eye(4), torch.zeros(4, 4)
    piled[:, 0] = 1
    assert flops_loss(piled) == 4 * flops_loss(spread)


def test_the_loss_makes_vectors_of_both_models_sparse_and_reaches_all_their_weights():
    torch.manual_seed(4)
    sizes = {"vocab_size": 53, "hidden_dropout_prob": 0.0, "pad_token_id": 0}
    ids = torch.randint(1, 53, (3, 6))
    for model in (
        BertForPreTraining(BertConfig.tiny(**sizes, attention_probs_dropout_prob=0.0)),
        ModernBertForMaskedLM(ModernBertConfig.tiny(**sizes)),
    ):
        steps = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
        counts = []
        for _ in range(30):
            vectors = sparse_vectors(model(ids).prediction_logits)
            counts.append(int((vectors > 0).sum()))
            steps.zero_grad()
            flops_loss(vectors).backward()
            if len(counts) == 1:
                assert model.mlm_head.output.weight.grad.any()
                assert model.bert.blocks[0].feed_forward.expand.weight.grad.any()
            steps.step()
        assert counts[-1] < counts[0] / 2
