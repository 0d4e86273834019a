"""Entities and their F1 are those of seqeval, on any sequences of tags; and by hand."""

import warnings

import pytest
from cases import for_each
from expect import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities

from course_lib.metrics.entities import Entity, entities, entity_scores

# A type may have a hyphen, or be called O.
tags = st.sampled_from(
    [
        "O",
        "O",
        "O",
        "B-PER",
        "I-PER",
        "B-LOC",
        "I-LOC",
        "I-creative-work",
        "B-creative-work",
        "I-O",
    ]
)
sentences = st.lists(
    st.lists(st.tuples(tags, tags), min_size=1, max_size=9), min_size=1, max_size=6
)


def columns(pairs):
    return [[gold for gold, _ in sentence] for sentence in pairs], [
        [x for _, x in sentence] for sentence in pairs
    ]


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(tags, max_size=12))
def test_entities_are_those_of_seqeval(sequence):
    assert [tuple(entity) for entity in entities(sequence)] == get_entities(sequence)


@settings(deadline=None)  # a busy machine is no failure
@given(sentences)
def test_precision_recall_and_f1_are_those_of_seqeval(pairs):
    golds, guesses = columns(pairs)
    found = entity_scores(golds, guesses)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a division by 0 is taken for 0
        expected = [
            measure(golds, guesses)
            for measure in (precision_score, recall_score, f1_score)
        ]
    assert found[:3] == pytest.approx(expected, abs=1e-12)


def test_f1_counts_entities_of_the_corpus_together():
    """Right: 2 of 3 guessed, of 4 gold ones: 2·2/(3 + 4). A mean over sentences would
    be 0.75."""
    golds = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "B-PER"]]
    guesses = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]
    assert entity_scores(golds, guesses) == pytest.approx(
        (2 / 3, 2 / 4, 4 / 7, 2, 3, 4), rel=1e-15
    )


def test_an_entity_with_one_word_more_is_wrong_twice():
    score = entity_scores([["B-PER", "I-PER", "I-PER"]], [["B-PER", "I-PER", "O"]])
    assert (score.right, score.guessed, score.gold, score.f1) == (0, 1, 1, 0)


def test_an_entity_does_not_go_on_into_the_next_sentence():
    score = entity_scores(
        [["O", "B-PER"], ["I-PER", "O"]], [["O", "B-PER"], ["O", "O"]]
    )
    assert (score.right, score.gold) == (1, 2)


def test_what_is_not_well_formed_begins_an_entity():
    """CoNLL's script: I- after O, after another type, and at the start."""
    found = entities(["I-PER", "O", "I-LOC", "I-PER", "B-PER", "I-PER"])
    assert found == [
        Entity("PER", 0, 0),
        Entity("LOC", 2, 2),
        Entity("PER", 3, 3),
        Entity("PER", 4, 5),
    ]


def test_without_an_entity_all_is_zero_and_nothing_divides_by_it():
    assert entity_scores([["O", "O"]], [["O", "O"]]) == (0, 0, 0, 0, 0, 0)


@for_each("tag", ["PER", "B-", "X-PER", "", "b-PER", "o", "B"])
def test_a_tag_of_another_form_is_refused(tag):
    with refusal(f"tag 1 is '{tag}'; a tag is O, or B- or I- and a type"):
        entities(["O", tag])


@pytest.mark.parametrize(
    ("golds", "guesses", "expected"),
    [
        ([["O"]], [["O"], ["O"]], "1 sentences of gold tags but 2 of guesses"),
        ([], [], "0 sentences of gold tags but 0 of guesses"),
        (
            [["O"], ["O", "O"]],
            [["O"], ["O"]],
            "sentence 1 has 2 gold tags but 1 guesses",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(golds, guesses, expected):
    with refusal(expected):
        entity_scores(golds, guesses)
