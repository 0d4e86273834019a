"""The checks that notebooks share: each refusal says what is wrong and what was
expected."""

from collections import Counter, defaultdict
from fractions import Fraction

import pytest
import torch
from cases import for_each

from course_tools.grading.assignments import student_checks
from course_tools.grading.assignments.student_checks import (
    check_close,
    check_given,
    check_pair,
    check_same,
    check_shape,
    check_withheld,
)

WANTED = torch.tensor([[1.0, 2.0, 3.0]])


@for_each(
    ("got", "words"),
    [
        (None, "The table must be a tensor; yours is None. Did you forget return?"),
        ([[1.0, 2.0, 3.0]], "The table must be a tensor; yours is a list."),
        (
            torch.ones(3, 1),
            "The table must have shape [1, 3]; yours has [3, 1]. One row.",
        ),
        (
            WANTED.double(),
            "The table must have dtype torch.float32; yours is torch.float64. One row.",
        ),
        (
            WANTED / torch.tensor([1.0, 0.0, 0.0]) * 0,
            "The table contains nan, which is no number. One row.",
        ),
        (
            WANTED + 0.5,
            "The table is wrong at [0, 0]: expected 1.0000, yours is 1.5000. One row.",
        ),
        (
            WANTED * 2,
            (
                "The table is wrong at [0, 0]: expected 1.0000, yours is 2.0000. You"
                " doubled it."
            ),
        ),
        (
            WANTED.clone().index_fill_(1, torch.tensor([2]), 3.0001),
            "wrong at [0, 2]: expected 3.0000, yours is 3.0001.",
        ),
    ],
)
def test_a_wrong_tensor_is_refused_in_these_words(got, words):
    with pytest.raises(AssertionError) as refusal:
        check_close(
            got,
            WANTED,
            "The table",
            "One row.",
            slips=((2 * WANTED, "You doubled it."),),
        )
    assert words in str(refusal.value)


def test_what_is_within_the_tolerance_passes_and_what_is_outside_does_not():
    check_close(WANTED + 9e-3, WANTED, "The table", tolerance=1e-2)
    with pytest.raises(AssertionError):
        check_close(WANTED + 5e-2, WANTED, "The table", tolerance=1e-2)


def test_a_second_definition_of_what_is_given_is_refused(monkeypatch):
    cells = ["def attention(query):\n    return query", "class Model:\n    pass"]
    monkeypatch.setattr(student_checks, "In", cells, raising=False)
    check_given("attention", "Model")
    cells.append(cells[0])  # the same cell, run twice
    check_given("attention")
    cells.append("def attention(query):\n    return 2 * query")
    with pytest.raises(
        AssertionError,
        match=(
            "attention is given by the notebook, and one of your cells defines it, too"
        ),
    ):
        check_given("Model", "attention")


def test_a_message_without_a_hint_ends_with_its_sentence():
    for refuse in (
        lambda: check_close(WANTED + 1, WANTED, "It"),
        lambda: check_shape(WANTED, [3], "It"),
    ):
        with pytest.raises(AssertionError) as refusal:
            refuse()
        assert str(refusal.value).endswith("."), "no blank at the end"


def test_truth_values_are_shown_as_words():
    with pytest.raises(
        AssertionError, match=r"wrong at \[1\]: expected False, yours is True\."
    ):
        check_close(torch.tensor([True, True]), torch.tensor([True, False]), "The mask")


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (None, "Did you forget return?"),
        ([1, 2], "a list, not two things"),
        ((1,), "a tuple, not two"),
    ],
)
def test_what_is_no_pair_is_refused(got, words):
    with pytest.raises(AssertionError) as refusal:
        check_pair(got, "search must return (words, score)")
    assert words in str(refusal.value)
    assert check_pair((1, 2), "search") == (1, 2)


def test_the_latest_definition_alone_is_searched_for_what_is_withheld(monkeypatch):
    first = (
        "from course_lib.attention.scores import DotScore\ndef score(q, k):\n    return"
        " DotScore()(q, k)"
    )
    monkeypatch.setattr(student_checks, "WITHHELD", ["course_lib.attention.scores"])
    monkeypatch.setattr(student_checks, "In", [first])
    with pytest.raises(
        AssertionError,
        match="In the cell that defines score, line 1 imports course_lib",
    ):
        check_withheld("other", "score")
    monkeypatch.setattr(
        student_checks, "In", [first, "def score(q, k):\n    return q @ k"]
    )
    check_withheld("other", "score")


@for_each(
    ("got", "expected", "words"),
    [
        (
            None,
            ["a"],
            "The pieces must be a list; yours is None. Did you forget return?",
        ),
        (
            ("a", "b"),
            ["a", "b"],
            "The pieces must be a list; yours is a tuple: ('a', 'b').",
        ),
        (["a"], "a", "The pieces must be a string; yours is a list: ['a']."),
        (
            ["a", "c"],
            ["a", "b"],
            "The pieces: expected ['a', 'b'], yours is ['a', 'c']. Look again.",
        ),
        (
            ["b", "a"],
            ["a", "b"],
            (
                "The pieces: expected ['a', 'b'], yours is ['b', 'a']. You turned them"
                " round."
            ),
        ),
        (
            {"a": 2, "b": 1},
            {"a": 2, "b": 3},
            "The pieces is wrong at 'b': expected 3, yours is 1. Look again.",
        ),
        (
            {"a": 2},
            {"a": 2, "b": 3},
            "The pieces is wrong at 'b': expected 3, yours is missing.",
        ),
        (
            {"a": 2, "z": 9},
            {"a": 2},
            "wrong at 'z': expected nothing, it does not belong there, yours is 9.",
        ),
        ({"a": Fraction(2, 8)}, {"a": Fraction(1, 3)}, "expected 1/3, yours is 1/4."),
    ],
)
def test_a_wrong_value_is_refused_in_these_words(got, expected, words):
    with pytest.raises(AssertionError) as refusal:
        check_same(
            got,
            expected,
            "The pieces",
            "Look again.",
            slips=((["b", "a"], "You turned them round."),),
        )
    assert words in str(refusal.value)


def test_any_kind_of_dict_will_do_and_entries_of_zero_do_not_count():
    check_same(Counter({"a": 2, "b": 0}), {"a": 2}, "The table")
    check_same(defaultdict(int, {"a": 2}), {"a": 2}, "The table")


def test_of_two_slips_that_are_equal_numbers_the_one_of_the_same_type_speaks():
    """0.25 == Fraction(1, 4), but who returns a float is told of floats, and who
    returns a Fraction of Fractions."""
    slips = (
        ({"a": Fraction(0.25)}, "A Fraction of a float."),
        ({"a": 0.25}, "A float."),
    )
    for got, words in ((0.25, "A float."), (Fraction(1, 4), "A Fraction of a float.")):
        with pytest.raises(AssertionError, match=words):
            check_same({"a": got}, {"a": Fraction(1, 3)}, "The table", slips=slips)


def test_whole_numbers_are_shown_as_whole_numbers():
    with pytest.raises(
        AssertionError, match=r"wrong at \[1\]: expected 3, yours is 2\."
    ):
        check_close(torch.tensor([1, 2]), torch.tensor([1, 3]), "The row")


def test_a_single_number_has_no_place():
    with pytest.raises(
        AssertionError, match=r"The loss is wrong: expected 1\.0000, yours is 2\.0000\."
    ):
        check_close(torch.tensor(2.0), torch.tensor(1.0), "The loss")
