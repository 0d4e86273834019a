"""Scores against arithmetic done by hand, sacrebleu's own tokeniser, and what must hold
for any input."""

import math

import pytest
import torch
from cases import for_each
from expect import refusal
from hypothesis import given
from hypothesis import strategies as st

from course_lib.metrics.scores import (
    alignment_error_rate,
    alignment_from_weights,
    bleu,
    exact_match,
    mean_interval,
    student_t,
)

# -- BLEU and exact match
# --------------------------------------------------------------------------------------


def test_bleu_of_one_changed_word_is_the_geometric_mean_of_four_precisions():
    """Papineni et al. (2002), section 2.3: of 7 words 6 match, of 6 pairs 4, of 5
    triples 3, of 4 fours 2."""
    expected = 100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25
    score = bleu(["the cat sat on the old mat"], ["the cat sat on the red mat"])
    assert score == pytest.approx(expected, rel=1e-12)


def test_bleu_punishes_what_is_too_short():
    """All precisions are 1; the brevity penalty is exp(1 - 9/5)."""
    assert bleu(["a b c d e"], ["a b c d e f g h i"]) == pytest.approx(
        100 * math.exp(1 - 9 / 5), rel=1e-12
    )


def test_bleu_is_counted_over_the_corpus_and_not_averaged_over_sentences():
    """Together 9 + 3 of 9 + 5 words match, 8 + 1 of 8 + 4 pairs, 7 + 0 of 7 + 3
    triples, 6 + 0 of 6 + 2 fours."""
    hypotheses = ["a b c d e f g h i", "k l x m y"]
    references = ["a b c d e f g h i", "k l z m u"]
    expected = 100 * (12 / 14 * 9 / 12 * 7 / 10 * 6 / 8) ** 0.25
    assert bleu(hypotheses, references) == pytest.approx(expected, rel=1e-12)
    assert bleu(hypotheses, references) != pytest.approx(
        (bleu(hypotheses[:1], references[:1]) + bleu(hypotheses[1:], references[1:]))
        / 2,
        rel=0.1,
    )


def test_bleu_splits_punctuation_off_as_13a_does():
    assert bleu(["le chat dort ici ."], ["le chat dort ici."]) == pytest.approx(100)
    assert bleu(["le chat dort ici ."], ["le chat dort ici."], tokenize="none") < 70


def test_bleu_takes_case_seriously():
    assert bleu(["Le chat dort ici"], ["le chat dort ici"]) < 60


def test_exact_match_counts_sentences_and_forgives_white_space():
    hypotheses = ["le chat  dort", "le chien dort", "Le chat", "un chat "]
    assert (
        exact_match(hypotheses, ["le chat dort", "le chat dort", "le chat", "un chat"])
        == 0.5
    )


@pytest.mark.parametrize("score", [bleu, exact_match])
def test_nothing_to_score_and_lists_of_two_lengths_are_refused(score):
    with refusal("no hypotheses: there is nothing to score"):
        score([], [])
    with refusal("2 hypotheses but 3 references; give one for each"):
        score(["a", "b"], ["a", "b", "c"])


# -- alignment error rate
# --------------------------------------------------------------------------------------

words = st.integers(0, 6)
link_sets = st.lists(
    st.sets(st.tuples(words, words), min_size=1, max_size=9), min_size=1, max_size=4
)


def test_error_rate_by_hand():
    """A has 4 links, S 3, P 5; A∩S = 2, A∩P = 3: 1 - 5/7 (Och and Ney 2003, section
    4.1)."""
    predicted = {(0, 0), (1, 1), (2, 3), (5, 5)}
    sure = {(0, 0), (1, 1), (4, 2)}
    possible = sure | {(2, 3), (3, 3)}
    assert alignment_error_rate([predicted], [sure], [possible]) == pytest.approx(
        1 - 5 / 7, rel=1e-15
    )


def test_error_rate_pools_links_over_sentences():
    """1 of 1 right and 1 of 4: 1 - (2 + 2)/(5 + 5), and not the mean of 0 and 0.75."""
    predicted = [{(0, 0)}, {(0, 0), (1, 2), (2, 1), (3, 4)}]
    gold = [{(0, 0)}, {(0, 0), (1, 1), (2, 2), (3, 3)}]
    assert alignment_error_rate(predicted, gold) == pytest.approx(0.6, rel=1e-15)


def test_turned_links_are_wrong():
    """(source, target), not (target, source): on a sentence that turns round, the two
    differ."""
    assert alignment_error_rate(
        [{(2, 0), (1, 1), (0, 3)}], [{(0, 2), (1, 1), (3, 0)}]
    ) == pytest.approx(2 / 3)


@given(link_sets)
def test_gold_itself_has_no_error(gold):
    assert alignment_error_rate(gold, gold) == 0


@given(link_sets, st.data())
def test_without_possible_links_the_rate_is_one_minus_f1(gold, data):
    size = st.sets(st.tuples(words, words), min_size=1, max_size=9)
    predicted = data.draw(st.lists(size, min_size=len(gold), max_size=len(gold)))
    right = sum(len(a & s) for a, s in zip(predicted, gold, strict=True))
    precision, recall = right / sum(map(len, predicted)), right / sum(map(len, gold))
    f1 = 2 * precision * recall / (precision + recall) if right else 0
    assert alignment_error_rate(predicted, gold) == pytest.approx(1 - f1, abs=1e-12)


@given(link_sets, st.data())
def test_more_possible_links_never_raise_the_rate(gold, data):
    shape = st.sets(st.tuples(words, words), max_size=9)
    lists = st.lists(shape, min_size=len(gold), max_size=len(gold))
    predicted, extra = data.draw(lists), data.draw(lists)
    wider = [sure | more for sure, more in zip(gold, extra, strict=True)]
    assert (
        0
        <= alignment_error_rate(predicted, gold, wider)
        <= alignment_error_rate(predicted, gold)
        <= 1
    )


def test_links_may_come_as_lists_from_a_generator():
    assert (
        alignment_error_rate(iter([[(0, 1), (1, 0)]]), iter([[(0, 1), (1, 1)]])) == 0.5
    )


@for_each(
    ("arguments", "expected"),
    [
        (
            ([{(0, 0)}], [{(0, 0)}, {(1, 1)}]),
            "predicted has 1 sentences, sure 2, possible 2",
        ),
        (
            ([{(0, 0)}], [{(0, 0), (1, 1)}], [{(0, 0)}]),
            r"sentence 0: sure links \[\(1, 1\)\] are not among the possible",
        ),
        (([set()], [set()]), "no links, predicted or sure"),
        (([], []), "no links, predicted or sure"),
    ],
)
def test_what_has_no_error_rate_is_refused_in_words(arguments, expected):
    with refusal(expected):
        alignment_error_rate(*arguments)


# -- from weights to links
# --------------------------------------------------------------------------------------

WEIGHTS = torch.tensor(
    [[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4], [0.3, 0.4, 0.3, 0.0]]
)


def test_each_target_word_is_linked_to_the_source_word_it_attends_to_most():
    assert alignment_from_weights(WEIGHTS) == {(0, 0), (3, 1), (1, 2)}


def test_of_equal_weights_the_first_wins():
    assert alignment_from_weights(torch.full((2, 5), 0.2)) == {(0, 0), (0, 1)}


def test_weights_may_be_half_precision_and_carry_a_gradient():
    weights = WEIGHTS.to(torch.bfloat16).requires_grad_()
    assert alignment_from_weights(weights) == {(0, 0), (3, 1), (1, 2)}


def test_not_a_number_is_refused():
    weights = WEIGHTS.clone()
    weights[1, 2] = math.nan
    with refusal("weights hold NaN; a softmax over a row with every position masked"):
        alignment_from_weights(weights)


# -- intervals
# --------------------------------------------------------------------------------------


@for_each(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042)],
)
def test_students_t_as_printed_tables_have_it(freedom, quantile):
    assert student_t(freedom) == pytest.approx(quantile, abs=5e-4)


def test_the_interval_of_three_seeds_by_hand():
    """Mean 4, s = sqrt((4 + 1 + 9)/2) = sqrt(7); half width 4.303 · sqrt(7/3)."""
    mean, half_width = mean_interval([2.0, 3.0, 7.0])
    assert mean == 4
    assert half_width == pytest.approx(4.302653 * math.sqrt(7 / 3), rel=1e-6)


def test_equal_values_have_an_interval_of_no_width():
    assert mean_interval([0.25, 0.25, 0.25, 0.25]) == (0.25, 0)


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=8),
    st.floats(-50, 50),
    st.floats(0.1, 10),
)
def test_the_interval_moves_and_stretches_with_its_values(values, shift, scale):
    mean, half_width = mean_interval(values)
    moved, stretched = mean_interval([scale * value + shift for value in values])
    assert moved == pytest.approx(scale * mean + shift, abs=1e-9)
    assert stretched == pytest.approx(scale * half_width, abs=1e-6)


def test_one_seed_has_no_interval():
    with refusal(
        "1 value: an interval needs at least 2 seeds; 3 is the course's minimum"
    ):
        mean_interval([0.9])
    with refusal("degrees_of_freedom is 0"):
        student_t(0)
