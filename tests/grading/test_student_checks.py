"""The checks that notebooks share: each refusal says what is wrong and what was expected."""

import pytest
import torch

from course_lib.grading import student_checks
from course_lib.grading.student_checks import check_close, check_pair, check_shape, check_withheld

WANTED = torch.tensor([[1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (None, "The table must be a tensor; yours is None. Did you forget return?"),
        ([[1.0, 2.0, 3.0]], "The table must be a tensor; yours is a list."),
        (torch.ones(3, 1), "The table must have shape [1, 3]; yours has [3, 1]. One row."),
        (WANTED.double(), "The table must have dtype torch.float32; yours is torch.float64. One row."),
        (WANTED / torch.tensor([1.0, 0.0, 0.0]) * 0, "The table contains nan, which is no number. One row."),
        (WANTED + 0.5, "The table is wrong at [0, 0]: expected 1.0000, yours is 1.5000. One row."),
        (WANTED * 2, "The table is wrong at [0, 0]: expected 1.0000, yours is 2.0000. You doubled it."),
        (
            WANTED.clone().index_fill_(1, torch.tensor([2]), 3.0001),
            "wrong at [0, 2]: expected 3.0000, yours is 3.0001.",
        ),
    ],
)
def test_a_wrong_tensor_is_refused_in_these_words(got: object, words: str) -> None:
    with pytest.raises(AssertionError) as refusal:
        check_close(got, WANTED, "The table", "One row.", slips=((2 * WANTED, "You doubled it."),))
    assert words in str(refusal.value)


def test_what_is_within_the_tolerance_passes_and_what_is_outside_does_not() -> None:
    check_close(WANTED + 9e-3, WANTED, "The table", tolerance=1e-2)
    with pytest.raises(AssertionError):
        check_close(WANTED + 5e-2, WANTED, "The table", tolerance=1e-2)


def test_a_message_without_a_hint_ends_with_its_sentence() -> None:
    for refuse in (lambda: check_close(WANTED + 1, WANTED, "It"), lambda: check_shape(WANTED, [3], "It")):
        with pytest.raises(AssertionError) as refusal:
            refuse()
        assert str(refusal.value).endswith("."), "no blank at the end"


def test_truth_values_are_shown_as_words() -> None:
    with pytest.raises(AssertionError, match=r"wrong at \[1\]: expected False, yours is True\."):
        check_close(torch.tensor([True, True]), torch.tensor([True, False]), "The mask")


@pytest.mark.parametrize(
    ("got", "words"), [(None, "Did you forget return?"), ([1, 2], "a list, not two things"), ((1,), "a tuple, not two")]
)
def test_what_is_no_pair_is_refused(got: object, words: str) -> None:
    with pytest.raises(AssertionError) as refusal:
        check_pair(got, "search must return (words, score)")
    assert words in str(refusal.value)
    assert check_pair((1, 2), "search") == (1, 2)


def test_the_latest_definition_alone_is_searched_for_what_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    first = "from course_lib.scores import DotScore\ndef score(q, k):\n    return DotScore()(q, k)"
    monkeypatch.setattr(student_checks, "WITHHELD", ["course_lib.scores"])
    monkeypatch.setattr(student_checks, "In", [first])
    with pytest.raises(AssertionError, match="In the cell that defines score, line 1 imports course_lib"):
        check_withheld("other", "score")
    monkeypatch.setattr(student_checks, "In", [first, "def score(q, k):\n    return q @ k"])
    check_withheld("other", "score")
