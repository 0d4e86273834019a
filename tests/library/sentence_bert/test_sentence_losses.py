"""The objectives: against values worked out by hand, and against the plain formulas of
the papers."""

import math

import pytest
import torch
from cases import for_each
from expect import refusal

from course_lib.sentence_bert.losses import (
    CosineObjective,
    InBatchObjective,
    SoftmaxObjective,
    TripletObjective,
    cosine_losses,
    in_batch_logits,
    in_batch_losses,
    softmax_features,
    triplet_losses,
)

torch.manual_seed(5)
VECTORS = torch.randn(6, 3, 4, dtype=torch.float64)  # six examples of three sentences


def cosine(u, v):
    return float(u @ v / math.sqrt(float(u @ u) * float(v @ v)))


def test_the_class_is_named_from_both_vectors_and_their_absolute_difference():
    """W picks u_1, v_2 and |u_1 - v_1|, so each logit is one of these."""
    objective = SoftmaxObjective(2, ["a", "b", "c"])
    with torch.no_grad():
        objective.classifier.weight.copy_(torch.eye(6)[[0, 3, 4]])
        objective.classifier.bias.zero_()
    pair = torch.tensor([[[1.0, 9.0], [1.5, 2.0]]])
    assert objective.logits(pair).tolist() == [[1.0, 2.0, 0.5]]
    total = math.exp(1.0) + math.exp(2.0) + math.exp(0.5)
    assert objective(pair, torch.tensor([0])).item() == pytest.approx(
        -math.log(math.exp(1.0) / total), abs=1e-6
    )
    assert objective.right(pair, torch.tensor([1])).item() is True
    assert objective.right(pair, torch.tensor([0])).item() is False


def test_the_order_of_a_pair_does_not_change_the_difference():
    u, v = VECTORS[:, 0], VECTORS[:, 1]
    assert torch.equal(softmax_features(u, v)[:, 8:], softmax_features(v, u)[:, 8:])
    assert (softmax_features(u, v)[:, 8:] >= 0).all()


def test_the_squared_error_is_that_of_the_cosine():
    u, v = VECTORS[:, 0], VECTORS[:, 1]
    scores = torch.tensor([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    expected = [
        (cosine(a, b) - float(s)) ** 2 for a, b, s in zip(u, v, scores, strict=True)
    ]
    assert cosine_losses(u, v, scores.double()).tolist() == pytest.approx(
        expected, abs=1e-12
    )
    assert CosineObjective()(VECTORS[:, :2], scores).tolist() == pytest.approx(
        expected, abs=1e-6
    )


def test_a_triplet_costs_by_how_much_the_negative_is_not_farther():
    expected = [
        max(
            math.dist(a.tolist(), p.tolist()) - math.dist(a.tolist(), n.tolist()) + 0.7,
            0.0,
        )
        for a, p, n in VECTORS
    ]
    assert 0 < sum(value == 0 for value in expected) < 6, "both cases are there"
    found = TripletObjective(margin=0.7)(VECTORS, torch.zeros(6))
    # each difference is shifted by 1e-6
    assert found.tolist() == pytest.approx(expected, abs=1e-5)
    nearer = [
        math.dist(a.tolist(), p.tolist()) < math.dist(a.tolist(), n.tolist())
        for a, p, n in VECTORS
    ]
    assert TripletObjective().right(VECTORS, torch.zeros(6)).tolist() == nearer
    assert len(set(nearer)) == 2


def test_equal_vectors_of_a_triplet_have_a_gradient():
    anchor = torch.ones(1, 3, requires_grad=True)
    triplet_losses(
        anchor, torch.ones(1, 3), torch.zeros(1, 3), margin=5.0
    ).sum().backward()
    assert anchor.grad.isfinite().all()


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_each_query_is_compared_with_all_documents_of_the_batch(temperature):
    """Henderson et al. 2017, section 4.4, on cosines; rows 6 to 11 are wrong
    for all."""
    queries, documents = VECTORS[:, 0], torch.cat([VECTORS[:, 1], VECTORS[:, 2]])
    expected = []
    for index, query in enumerate(queries):
        scores = [
            math.exp(cosine(query, document) / temperature) for document in documents
        ]
        expected.append(-math.log(scores[index] / sum(scores)))
    assert in_batch_losses(queries, documents, temperature).tolist() == pytest.approx(
        expected, abs=1e-10
    )
    found = InBatchObjective(temperature)(VECTORS, torch.zeros(6))
    assert found.tolist() == pytest.approx(expected, abs=1e-10)


def test_both_ways_is_the_mean_of_query_to_document_and_back():
    queries, documents = VECTORS[:, 0], torch.cat([VECTORS[:, 1], VECTORS[:, 2]])
    there = in_batch_losses(queries, documents, 0.3)
    back = in_batch_losses(VECTORS[:, 1], queries, 0.3)
    torch.testing.assert_close(
        in_batch_losses(queries, documents, 0.3, both_ways=True), (there + back) / 2
    )
    assert (there - back).abs().min() > 1e-3


def test_a_query_is_right_when_its_own_document_is_the_nearest():
    logits = in_batch_logits(VECTORS[:, 0], torch.cat([VECTORS[:, 1], VECTORS[:, 2]]))
    expected = [int(row.argmax()) == index for index, row in enumerate(logits)]
    assert InBatchObjective().right(VECTORS, torch.zeros(6)).tolist() == expected
    assert InBatchObjective().right(VECTORS[:, [0, 0]], torch.zeros(6)).all()


@for_each(
    ("objective", "labels"),
    [
        (SoftmaxObjective(4, 3), torch.tensor([0, 2, 1, 0, 2, 1])),
        (CosineObjective(), torch.linspace(0, 1, 6)),
        (TripletObjective(margin=9.0), torch.zeros(6)),
        (InBatchObjective(), torch.zeros(6)),
    ],
)
def test_the_gradient_of_every_objective_lowers_it(objective, labels):
    sentences = objective.sentences[0]
    vectors = VECTORS[:, :sentences].float().requires_grad_()
    before = objective(vectors, labels)
    before.sum().backward()
    after = objective((vectors - 0.01 * vectors.grad).detach(), labels)
    assert after.sum() < before.sum()
    assert before.shape == (6,)


def test_what_cannot_be_compared_is_refused():
    with refusal("an example has 3 sentences, but a CosineObjective compares 2"):
        CosineObjective()(VECTORS, torch.zeros(6))
    with refusal("an example has 2 sentences, but a TripletObjective compares 3"):
        TripletObjective()(VECTORS[:, :2], torch.zeros(6))
    with refusal("an example has 1 sentences, but a InBatchObjective compares 2 to 8"):
        InBatchObjective()(VECTORS[:, :1], torch.zeros(6))
    with refusal("6 queries but 5 documents"):
        in_batch_losses(VECTORS[:, 0], VECTORS[:5, 1])
    for temperature in (0.0, -1.0, math.nan):
        with refusal(r"temperature is .*; it must be above 0"):
            InBatchObjective(temperature)
    with refusal(r"margin is -1\.0; it is a distance"):
        TripletObjective(-1.0)
    with refusal("labels has 'a' twice"):
        SoftmaxObjective(4, ["a", "a"])
