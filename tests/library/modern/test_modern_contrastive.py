"""Pairs, negatives, InfoNCE, Matryoshka vectors and SetFit."""

import math

import pytest
import torch
import torch.nn.functional as F
from expect import assert_near, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertModel
from course_lib.finetuning.finetune import FineTuningConfig
from course_lib.modern.contrastive import hard_negatives, setfit, simcse_pairs
from course_lib.sentence_bert.losses import (
    CosineObjective,
    InBatchObjective,
    MatryoshkaObjective,
    SoftmaxObjective,
    in_batch_losses,
)
from course_lib.sentence_bert.model import SentenceBert
from course_lib.sentence_bert.training import SiameseBert, sentence_examples
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

WORDS = ["red", "blue", "green", "one", "two", "three", "is", "seen"]


def encoder(dropout=0.0):
    torch.manual_seed(1)
    tokenizer = FastWordPiece([*SPECIAL_TOKENS, *WORDS])
    config = BertConfig.tiny(
        vocab_size=len(tokenizer),
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=0.0,
    )
    return SentenceBert(BertModel(config), tokenizer)


def test_info_nce_bounds_what_two_views_tell_of_each_other():
    """van den Oord et al. 2018, equation 5: ln N - loss is at most the information; it
    is ln N where each query knows its document, and below 0 for vectors in disorder."""
    vectors = torch.eye(6, dtype=torch.float64)
    sure = in_batch_losses(vectors, vectors, temperature=0.01).mean()
    assert abs(math.log(6) - (math.log(6) - sure.item())) < 1e-12
    wrong = in_batch_losses(vectors, vectors.roll(1, dims=0), temperature=0.1).mean()
    assert math.log(6) - wrong < 0


def test_a_lower_temperature_gives_the_hardest_negative_more_of_the_gradient():
    """Wang and Liu 2021, section 3.2."""
    torch.manual_seed(2)
    shares = []
    for temperature in (1.0, 0.2, 0.05):
        queries = F.normalize(torch.randn(1, 4, dtype=torch.float64), dim=1)
        documents = F.normalize(torch.randn(5, 4, dtype=torch.float64), dim=1)
        weights = (queries @ documents.T / temperature).softmax(dim=1)[0, 1:]
        shares.append((weights.max() / weights.sum()).item())
        documents.requires_grad_(True)
        in_batch_losses(queries, documents, temperature).sum().backward()
        slopes = documents.grad[1:]
        expected = (
            weights[:, None]
            / temperature
            * (queries - documents[1:] * (documents[1:] @ queries.T))
        )
        assert_near(slopes, expected.detach(), atol=1e-12)


def test_simcse_pairs_hold_each_sentence_once_in_their_order():
    assert simcse_pairs(["b", "a", "b", "c"]) == [("b", "b"), ("a", "a"), ("c", "c")]


def test_dropout_is_all_that_two_readings_of_a_sentence_differ_by():
    """Gao et al. 2021, section 3, and table 3 for a dropout of 0: then the positives
    are equal, and only negatives are learnt from."""
    for dropout, differs in ((0.1, True), (0.0, False)):
        model = encoder(dropout)
        siamese = SiameseBert(model, InBatchObjective()).train()
        pairs = simcse_pairs(["red is seen", "two is seen", "one"])
        rows = [
            torch.tensor([row[0] for row in example.rows])
            for example in sentence_examples(pairs, None, model)[:2]
        ]
        first, second = siamese(torch.stack(rows)).unbind(dim=1)
        apart = (first - second).abs().amax(dim=1)
        assert bool((apart > 1e-3).all()) is differs
        assert differs or float(apart.max().detach()) < 1e-6


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.95, 1.0]))
def test_negatives_are_the_best_below_the_ceiling(seed, ceiling):
    """Moreira et al. 2024, section 3, against a loop; scores may be below 0."""
    torch.manual_seed(seed)
    scores = torch.randn(3, 40, dtype=torch.float64)
    right = torch.tensor([0, 17, 39])
    scores[torch.arange(3), right] = torch.tensor([0.9, 0.4, -0.2]).double()
    queries, found = hard_negatives(scores, right, 4, ceiling)
    assert queries.tolist() == [0, 1, 2]
    for q in range(3):
        own = scores[q, right[q]].item()
        bound = own - (1 - ceiling) * abs(own)
        order = sorted(range(40), key=lambda d: -scores[q, d].item())
        kept = [d for d in order if scores[q, d] <= bound and d != right[q]]
        assert found[q].tolist() == kept[:4]


def test_false_negatives_are_passed_over_and_a_query_with_too_few_is_left_out():
    """Document 1 says what document 0 says: it may answer the query too."""
    scores = torch.tensor([[0.80, 0.79, 0.5, 0.3]])
    right = torch.tensor([0])
    assert hard_negatives(scores, right, 2, ceiling=1.0).documents.tolist() == [[1, 2]]
    assert hard_negatives(scores, right, 2).documents.tolist() == [[2, 3]]
    scores = torch.tensor([[0.8, 0.79, 0.5, 0.3], [0.2, 0.4, 0.1, 0.3]])
    queries, documents = hard_negatives(scores, torch.tensor([0, 1]), 3)
    assert (queries.tolist(), documents.tolist()) == ([1], [[3, 0, 2]])


def test_matryoshka_is_the_mean_over_sizes_of_the_first_features():
    """Kusupati et al. 2022, equation 1."""
    torch.manual_seed(3)
    vectors = torch.randn(5, 2, 11, dtype=torch.float64, requires_grad=True)
    labels = torch.zeros(5)
    plain = InBatchObjective(temperature=0.3)
    objective = MatryoshkaObjective(plain, sizes=[2, 7, 11])
    expected = sum(plain(vectors[:, :, :size], labels) for size in (2, 7, 11)) / 3
    assert_near(objective(vectors, labels), expected, atol=1e-14)
    assert torch.equal(objective.right(vectors, labels), plain.right(vectors, labels))
    assert (objective.sentences, objective.labels) == (plain.sentences, plain.labels)
    assert MatryoshkaObjective(CosineObjective(), [3]).guesses_number
    short = MatryoshkaObjective(plain, sizes=[2, 7])
    short(vectors, labels).sum().backward()
    assert vectors.grad[..., :7].all()
    assert not vectors.grad[..., 7:].any()


def test_sizes_that_cannot_be_are_refused():
    plain = InBatchObjective()
    for sizes in ([], [0, 3]):
        with refusal("give at least one, each at least 1"):
            MatryoshkaObjective(plain, sizes)
    with refusal("an objective without weights"):
        MatryoshkaObjective(SoftmaxObjective(4, 3), [2])
    with refusal("sizes go up to 9, but the vectors have 4 features"):
        MatryoshkaObjective(plain, [9])(torch.zeros(1, 2, 4), torch.zeros(1))


COLOURS = [f"{word} is {end}" for word in WORDS[:3] for end in ("seen", "red", "blue")]
NUMBERS = [f"{word} is {end}" for word in WORDS[3:6] for end in ("seen", "two", "one")]


@pytest.mark.parametrize("seed", [0, 1])
def test_setfit_learns_two_classes_from_a_few_texts_of_each(seed):
    """Tunstall et al. 2022, section 3; other texts of a class come near to one another,
    which before they are not."""
    texts, labels = [*COLOURS[::2], *NUMBERS[::2]], [0] * 5 + [1] * 5
    others, expected = [*COLOURS[1::2], *NUMBERS[1::2]], [0] * 4 + [1] * 4
    config = FineTuningConfig(steps=30, learning_rate=1e-3, batch_size=8)
    model = encoder()
    head = setfit(model, texts, labels, pairs=64, config=config, seed=seed)
    vectors = model.encode(others)
    assert head.score(vectors.numpy(), expected) == 1
    unit = F.normalize(vectors, dim=1)
    cosines = unit @ unit.T
    assert cosines[:4, :4].mean() > cosines[:4, 4:].mean() + 0.5
    start = F.normalize(encoder().encode(others), dim=1)
    before = start @ start.T
    assert before[:4, :4].mean() < before[:4, 4:].mean() + 0.5


def test_setfit_needs_two_texts_of_two_classes():
    for labels in ([0, 0, 0, 1], [1, 1, 1, 1]):
        with refusal("give two classes or more, and two texts or more of each"):
            setfit(encoder(), WORDS[:4], labels, pairs=8)
