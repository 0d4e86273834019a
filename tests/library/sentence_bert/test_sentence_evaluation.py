"""Scores of sentence vectors: against SciPy, scikit-learn and ranks counted by hand."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from whole import whole_only

from course_lib.sentence_bert.evaluation import (
    pair_features,
    probe,
    probe_split,
    sts_score,
)
from course_lib.sentence_bert.model import SentenceBert

torch.manual_seed(9)
FIRST, SECOND = torch.randn(31, 6), torch.randn(31, 6)
SCORES = (
    (torch.cosine_similarity(FIRST, SECOND) + 0.5 * torch.randn(31))
    .mul(4)
    .round()
    .div(2)
    .tolist()
)
LABELS = [
    "a" if x > 0.4 else "b" if x > -0.6 else "c"
    for x in (FIRST[:, 0] + 0.7 * torch.randn(31)).tolist()
]


def test_the_score_is_scipys_spearman_of_cosines_ties_included():
    cosines = [
        float(u @ v / (u.norm() * v.norm()))
        for u, v in zip(FIRST.double(), SECOND.double(), strict=True)
    ]
    assert len(set(SCORES)) < 31, "people's scores have ties"
    expected = spearmanr(cosines, SCORES).statistic
    assert sts_score(FIRST, SECOND, SCORES) == pytest.approx(expected, abs=1e-12)
    assert 0.2 < expected < 0.95


def test_lengths_and_scales_do_not_change_the_ranks():
    found = sts_score(
        FIRST * torch.rand(31, 1).add(0.1),
        SECOND * 7,
        [2 + 3 * score for score in SCORES],
    )
    assert found == pytest.approx(sts_score(FIRST, SECOND, SCORES), abs=1e-12)


def test_three_pairs_are_ranked_by_hand():
    """Cosines rank 1, 2, 3 and scores 2, 1, 3: 1 - 6 (1 + 1 + 0) / (3 · 8) = 0.5."""
    first = torch.eye(2)[[0, 0, 0]]
    second = torch.tensor([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    assert sts_score(first, second, [2.0, 1.0, 4.0]) == pytest.approx(0.5)


def test_what_ranks_nothing_is_refused():
    with pytest.raises(ValueError, match="the scores of 31 pairs are all equal"):
        sts_score(FIRST, SECOND, [1.0] * 31)
    with pytest.raises(ValueError, match="the cosines of 31 pairs are all equal"):
        sts_score(torch.ones(31, 2), torch.ones(31, 2), SCORES)
    with pytest.raises(ValueError, match="31 and 31 vectors but 30 scores"):
        sts_score(FIRST, SECOND, SCORES[:30])


def test_a_pair_has_the_same_features_whoever_comes_first():
    assert torch.equal(pair_features(FIRST, SECOND), pair_features(SECOND, FIRST))
    torch.testing.assert_close(pair_features(FIRST, SECOND)[:, 6:], FIRST * SECOND)


@pytest.mark.parametrize(("strength", "folds"), [(1.0, 5), (0.03, 3)])
def test_a_probe_is_scikit_learns_logistic_regression_fold_by_fold(strength, folds):
    rows, labels, expected = FIRST.double().numpy(), np.array(LABELS), []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=4).split(
        rows, labels
    ):
        fitted = LogisticRegression(C=strength, max_iter=1000).fit(
            rows[train], labels[train]
        )
        expected.append(float((fitted.predict(rows[test]) == labels[test]).mean()))
    found = probe(FIRST, LABELS, [strength], folds, seed=4)
    assert found.accuracies == pytest.approx(expected)
    assert found.accuracy == pytest.approx(sum(expected) / folds)
    assert len(set(expected)) > 1


def test_a_strength_is_chosen_without_the_test_part():
    """Labels of the test rows are turned round: what was chosen and fitted is the same,
    and each right guess wrong."""
    labels = [int(x > 0) for x in FIRST[:, 0].tolist()]
    right = probe_split(
        FIRST[:20], labels[:20], FIRST[20:], labels[20:], [0.001, 1.0, 100.0], folds=3
    )
    wrong = probe_split(
        FIRST[:20],
        labels[:20],
        FIRST[20:],
        [1 - x for x in labels[20:]],
        [0.001, 1.0, 100.0],
        folds=3,
    )
    assert right > 0.8
    assert right + wrong == pytest.approx(1.0)
    assert len(probe(FIRST, labels, [0.001, 1.0], folds=3).accuracies) == 3


def test_a_probe_of_noise_finds_nothing():
    torch.manual_seed(1)
    vectors, labels = torch.randn(400, 3), [0, 1] * 200
    assert abs(probe(vectors, labels).accuracy - 0.5) < 0.1


def test_what_cannot_be_probed_is_refused():
    with pytest.raises(ValueError, match="31 vectors but 3 labels"):
        probe(FIRST, ["a", "b", "c"])
    with pytest.raises(ValueError, match="all 31 labels are 'a'"):
        probe(FIRST, ["a"] * 31)
    with pytest.raises(ValueError, match="class 'b' has 2 rows, too few for 3 folds"):
        probe(FIRST, ["a"] * 29 + ["b"] * 2, folds=3)
    for strengths in ([], [0.0], [1.0, -1.0]):
        with pytest.raises(ValueError, match="give at least one value of C, above 0"):
            probe(FIRST, LABELS, strengths, folds=3)


@whole_only
@pytest.mark.slow
@pytest.mark.real_data
def test_the_real_checkpoint_reaches_its_published_score_on_the_test_part_of_sts_b(
    real_data,
):
    """82.03 is the figure that is published for this model."""
    from course_lib.data import load

    folder = real_data.parent / "models" / "all-MiniLM-L6-v2"
    if not folder.is_dir():
        pytest.skip(f"no real checkpoint at {folder}")
    rows = load("stsb", str(real_data))["test"]
    model = SentenceBert.from_pretrained(folder)
    first, second = (
        model.encode(list(rows[name]), batch_size=64)
        for name in ("sentence1", "sentence2")
    )
    assert 100 * sts_score(first, second, list(rows["label"])) == pytest.approx(
        82.03, abs=0.1
    )
