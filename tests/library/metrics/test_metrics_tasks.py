"""GLUE's metrics by hand, and what calibration must say for probabilities that are
known to be right."""

import math

import numpy as np
import pytest

from course_lib.metrics.errors import GLUE, calibration, glue_scores


def test_glue_has_nine_tasks_with_the_metrics_of_its_paper():
    """Wang et al. 2019, table 1."""
    assert len(GLUE) == 9
    assert {
        task: metrics for task, metrics in GLUE.items() if metrics != ("accuracy",)
    } == {
        "cola": ("matthews",),
        "stsb": ("pearson", "spearman"),
        "mrpc": ("accuracy", "f1"),
        "qqp": ("accuracy", "f1"),
    }


def test_f1_is_that_of_class_1():
    """2 right of 3 guessed and of 4 gold: 2·2/(3 + 4). For class 0 it would be 2·2/(5 +
    4)."""
    guesses, golds = [1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 1, 0, 0, 0]
    scores = glue_scores("mrpc", guesses, golds)
    assert scores == pytest.approx({"accuracy": 5 / 8, "f1": 4 / 7}, rel=1e-14)


def test_f1_without_a_guess_of_class_1_is_0():
    assert glue_scores("qqp", [0, 0, 0], [1, 0, 1])["f1"] == 0


def test_matthews_by_hand():
    """Warstadt et al. 2019, section 4: (tp·tn − fp·fn) /
    sqrt((tp+fp)(tp+fn)(tn+fp)(tn+fn)), here 2, 3, 1, 2."""
    guesses, golds = [1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 1, 0, 0, 0]
    expected = (2 * 3 - 1 * 2) / math.sqrt(3 * 4 * 4 * 5)
    assert glue_scores("cola", guesses, golds)["matthews"] == pytest.approx(
        expected, rel=1e-14
    )


def test_matthews_of_one_and_the_same_guess_is_0():
    assert glue_scores("cola", [1, 1, 1], [1, 0, 1]) == {"matthews": 0}


def test_pearson_sees_lines_and_spearman_sees_order():
    guesses, golds = [0.0, 1.0, 2.0, 5.0], [0.0, 1.0, 8.0, 9.0]
    scores = glue_scores("stsb", guesses, golds)
    x, y = np.array(guesses) - 2, np.array(golds) - 4.5
    assert scores["pearson"] == pytest.approx(
        (x @ y) / math.sqrt((x @ x) * (y @ y)), rel=1e-14
    )
    assert scores["spearman"] == pytest.approx(1, rel=1e-14)


def test_a_correlation_with_equal_guesses_is_not_defined():
    assert all(
        math.isnan(value)
        for value in glue_scores("stsb", [2.0, 2.0], [1.0, 3.0]).values()
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("sst", [1], [1]), "there is no GLUE task 'sst'; there are: cola, sst2"),
        (("sst2", [1, 0], [1]), "2 guesses but 1 labels"),
        (("sst2", [], []), "0 guesses but 0 labels"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments, expected):
    with pytest.raises(ValueError, match=expected):
        glue_scores(*arguments)


# -- calibration
# --------------------------------------------------------------------------------------


def test_calibration_by_hand():
    """Bins of a quarter: 0.5 lies in (0.25, 0.5]; 0.6 and 0.7 in (0.5, 0.75]; 1.0 in
    the last."""
    probabilities = [
        [0.5, 0.3, 0.2],
        [0.2, 0.6, 0.2],
        [0.1, 0.2, 0.7],
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
    ]
    found = calibration(probabilities, golds=[1, 1, 0, 0, 1], bins=4)
    assert found.confidence == pytest.approx([0.5, 0.65, 1.0])
    assert found.accuracy == pytest.approx([0.0, 0.5, 1.0])
    assert found.guesses == [1, 2, 2]
    assert found.error == pytest.approx((1 * 0.5 + 2 * 0.15 + 2 * 0.0) / 5)


def test_labels_drawn_from_the_probabilities_themselves_are_calibrated():
    generator = np.random.default_rng(3)
    first = generator.uniform(0, 1, 20_000)
    golds = (generator.uniform(0, 1, 20_000) > first).astype(int)
    found = calibration(np.stack([first, 1 - first], axis=1).tolist(), golds.tolist())
    assert found.error < 0.015
    assert (
        calibration(
            np.stack([first > 0.5, first <= 0.5], axis=1).astype(float).tolist(),
            golds.tolist(),
        ).error
        > 0.2
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([[0.5, 0.5]], [1, 0]), "1 guesses but 2 gold classes"),
        (([], []), "0 guesses but 0 gold classes"),
        (([[1.0, 0.0]], [1], 0), "bins is 0"),
    ],
)
def test_what_has_no_calibration_is_refused(arguments, expected):
    with pytest.raises(ValueError, match=expected):
        calibration(*arguments)
