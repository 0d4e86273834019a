"""What a model gets wrong, counted by hand: classes, temperatures, entities and
answers; and the pictures of it."""

import numpy as np
import pytest
from cases import for_each
from scipy.special import softmax

from course_lib.figures.curves import reliability_diagram
from course_lib.figures.style import alt_text
from course_lib.figures.tables import confusion_map
from course_lib.metrics.entities import Entity, entity_scores
from course_lib.metrics.errors import (
    ANSWERS,
    ENTITIES,
    EntityMistake,
    answer_kind,
    apply_temperature,
    calibration,
    confusion,
    entity_mistakes,
    fit_temperature,
    surest_mistakes,
)
from course_lib.metrics.squad import squad_scores


def test_gold_classes_stand_in_rows_and_guesses_in_columns():
    """By hand; class 3 never occurs."""
    found = confusion([0, 0, 0, 1, 2, 2], [0, 1, 1, 1, 0, 2], ["a", "b", "c", "d"])
    assert found.counts.tolist() == [
        [1, 2, 0, 0],
        [0, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 0, 0, 0],
    ]
    assert found.shares[0].tolist() == pytest.approx([1 / 3, 2 / 3, 0, 0])
    assert found.shares[3].tolist() == [0, 0, 0, 0]


def test_a_temperature_divides_scores_and_moves_no_guess():
    scores = np.array([[2.0, -1.0, 0.5], [0.1, 0.3, -4.0]])
    cooled = apply_temperature(softmax(scores, axis=1), 2.5)
    assert cooled == pytest.approx(softmax(scores / 2.5, axis=1), abs=1e-15)
    assert cooled.argmax(axis=1).tolist() == scores.argmax(axis=1).tolist()
    assert apply_temperature(cooled, 1 / 2.5) == pytest.approx(
        softmax(scores, axis=1), abs=1e-12
    )


def test_a_probability_of_0_stays_small_and_spoils_nothing():
    cooled = apply_temperature(np.array([[1.0, 0.0]], dtype=np.float32), 4.0)
    assert np.isfinite(cooled).all()
    assert 0 < cooled[0, 1] < 1e-9


@pytest.mark.parametrize("true", [0.4, 1.0, 3.0])
def test_the_temperature_that_labels_were_drawn_with_is_found_and_calibrates(true):
    """Labels are drawn from softmax(scores / T); the standard error of the estimate is
    about 2% with 20,000 rows."""
    generator = np.random.default_rng(4)
    scores = generator.normal(0, 2, (20_000, 3))
    chances = softmax(scores / true, axis=1)
    golds = (
        (generator.random((20_000, 1)) > chances.cumsum(axis=1)).sum(axis=1).tolist()
    )
    probabilities = softmax(scores, axis=1)
    found = fit_temperature(probabilities, golds)
    assert found == pytest.approx(true, rel=0.06)
    assert (
        calibration(apply_temperature(probabilities, found).tolist(), golds).error
        < 0.015
    )
    if true != 1.0:
        assert calibration(probabilities.tolist(), golds).error > 0.05


def test_the_temperature_of_a_model_that_is_always_as_sure_has_a_formula():
    """At T the guess has p(T) = 1 / (1 + exp(-s / T)), which must be the share of right
    guesses, 0.7."""
    score = 3.0
    probability = 1 / (1 + np.exp(-score))
    found = fit_temperature(
        np.array([[1 - probability, probability]] * 10), [1] * 7 + [0] * 3
    )
    assert found == pytest.approx(score / np.log(0.7 / 0.3), rel=1e-3)


def test_mistakes_come_by_confidence_and_right_guesses_not_at_all():
    probabilities = np.array(
        [
            [0.2, 0.7, 0.1],
            [0.0, 0.0, 1.0],
            [0.9, 0.1, 0.0],
            [0.1, 0.8, 0.1],
            [0.3, 0.3, 0.4],
        ]
    )
    golds = [0, 2, 1, 2, 0]
    assert surest_mistakes(probabilities, golds, most=3) == [2, 3, 0]
    assert surest_mistakes(probabilities, golds, most=9) == [2, 3, 0, 4]


def test_each_entity_has_one_kind_of_mistake():
    golds = [
        "B-PER",
        "I-PER",
        "O",
        "B-LOC",
        "O",
        "B-ORG",
        "I-ORG",
        "O",
        "B-PER",
        "O",
        "O",
    ]
    guesses = [
        "B-PER",
        "O",
        "O",
        "B-ORG",
        "O",
        "B-ORG",
        "I-ORG",
        "O",
        "O",
        "O",
        "B-LOC",
    ]
    found = entity_mistakes(golds, guesses)
    assert [x.kind for x in found] == ["borders", "type", "right", "missed", "invented"]
    assert found[0] == EntityMistake(
        "borders", Entity("PER", 0, 1), Entity("PER", 0, 0)
    )
    assert found[4] == EntityMistake("invented", None, Entity("LOC", 10, 10))


def test_a_guess_is_the_partner_of_one_entity_only():
    """One long guess over two names: the first takes it, the second is missed."""
    found = entity_mistakes(["B-PER", "B-PER", "O"], ["B-LOC", "I-LOC", "O"])
    assert [x.kind for x in found] == ["type and borders", "missed"]


def test_a_partner_without_a_flaw_is_preferred():
    """The guess at words 1 and 2 overlaps the first entity too, but is the second."""
    found = entity_mistakes(["B-PER", "B-PER", "I-PER"], ["O", "B-PER", "I-PER"])
    assert [x.kind for x in found] == ["missed", "right"]


def test_kinds_of_mistakes_add_up_to_what_f1_counts():
    """Random tags: right ones are those of `entity_scores`, and no entity is counted
    twice or lost."""
    generator = np.random.default_rng(5)
    tags = np.array(["O", "O", "B-A", "I-A", "B-B", "I-B"])
    for _ in range(50):
        golds, guesses = (generator.choice(tags, 12).tolist() for _ in range(2))
        found = entity_mistakes(golds, guesses)
        score = entity_scores([golds], [guesses])
        assert sum(x.kind == "right" for x in found) == score.right
        assert sum(x.gold is not None for x in found) == score.gold
        assert sum(x.guess is not None for x in found) == score.guessed
        assert {x.kind for x in found} <= set(ENTITIES)


@for_each(
    ("guess", "golds", "kind"),
    [
        ("The Broncos.", ["Denver Broncos", "broncos"], "right"),
        ("Denver Broncos of Colorado", ["Broncos", "Denver Broncos"], "too long"),
        ("Denver", ["the Denver Broncos"], "too short"),
        ("Broncos of Denver", ["Denver Broncos"], "overlaps"),
        (
            "Denver team Broncos",
            ["Denver Broncos"],
            "overlaps",
        ),  # both words, but not side by side
        ("Carolina", ["Denver Broncos"], "elsewhere"),
        ("art", ["state of the art in arts"], "too short"),
        ("ar", ["state of the art"], "elsewhere"),  # words, not letters
        ("", ["Denver"], "no answer"),
        ("the", ["Denver"], "no answer"),
        ("Denver", [], "not answerable"),
        ("", [], "right"),
    ],
)
def test_an_answer_is_wrong_in_one_way(guess, golds, kind):
    assert answer_kind(guess, golds) == kind
    assert kind in ANSWERS
    assert (kind == "right") == (squad_scores([guess], [golds]).exact == 100)


@for_each(
    ("call", "expected"),
    [
        (lambda: confusion([0], [0, 1], ["a", "b"]), "2 guesses but 1 gold classes"),
        (lambda: confusion([], [], ["a"]), "0 guesses but 0"),
        (lambda: confusion([0, 2], [0, 1], ["a", "b"]), "classes are 0 to 1"),
        (lambda: confusion([0, 1], [0, -1], ["a", "b"]), "classes are 0 to 1"),
        (
            lambda: apply_temperature(np.array([[0.5, 0.5]]), 0.0),
            "temperature is 0.0; it must be above 0",
        ),
        (lambda: fit_temperature(np.zeros((0, 2)), []), "0 guesses"),
        (lambda: surest_mistakes(np.array([[0.5, 0.5]]), [0, 1], 1), "1 guesses but 2"),
        (lambda: entity_mistakes(["O"], ["O", "O"]), "1 gold tags but 2 guesses"),
        (
            lambda: confusion_map(np.zeros((2, 2), dtype=int), ["a", "b", "c"]),
            r"shape \(2, 2\) for 3 classes",
        ),
        (lambda: confusion_map(np.array([[-1]]), ["a"]), "a count from 0"),
        (lambda: reliability_diagram({}), "no curves"),
    ],
)
def test_what_cannot_be_examined_is_refused(call, expected):
    with pytest.raises(ValueError, match=expected):
        call()


def test_a_confusion_map_colours_by_row_and_states_counts():
    figure = confusion_map(
        np.array([[90, 10, 0], [1, 3, 0], [0, 0, 0]]), ["O", "type", "name"]
    )
    [image] = figure.axes[0].images
    assert image.get_array().tolist() == pytest.approx(
        np.array([[0.9, 0.1, 0], [0.25, 0.75, 0], [0, 0, 0]])
    )
    assert [text.get_text() for text in figure.axes[0].texts[:4]] == [
        "90",
        "10",
        "0",
        "1",
    ]
    assert alt_text(figure).endswith(
        "O: 90 of 100 right, most often else taken for type (10). type: 3 of 4 right,"
        " most often else taken for O (1). name: 0 of 0 right."
    )


def test_a_reliability_diagram_has_its_diagonal_and_a_point_for_each_bin():
    before = calibration([[0.99, 0.01]] * 4 + [[0.4, 0.6]], [0, 0, 1, 1, 0])
    figure = reliability_diagram({"as trained": before})
    diagonal, curve = figure.axes[0].lines
    assert diagonal.get_xdata().tolist() == diagonal.get_ydata().tolist() == [0, 100]
    assert curve.get_xdata().tolist() == pytest.approx([60, 99])
    assert curve.get_ydata().tolist() == pytest.approx([0, 50])
    assert figure.axes[0].get_xlabel().startswith("confidence")
    assert (
        "expected calibration error 51.2%; guesses of 99% confidence are right in 50%"
        " of cases" in alt_text(figure)
    )
