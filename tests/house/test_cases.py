"""A test of many cases runs all of them and says which fail."""

import pytest
from cases import for_each


@for_each(("word", "length"), [("a", 1), ("bc", 3), ("d", 1), ("ef", 1)])
def lengths(word, length):
    assert len(word) == length


@for_each("number", [1, 2])
@for_each("word", ["a"])
def meets(word, number):
    with pytest.raises(ZeroDivisionError):
        number / (number - 1)


def test_all_cases_run_and_each_that_fails_is_told_with_its_values():
    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases") as failure:
        lengths()
    notes = [one.__notes__ for one in failure.value.exceptions]
    assert [note for (note,) in notes] == [
        "where {'word': 'bc', 'length': 3}",
        "where {'word': 'ef', 'length': 1}",
    ]


def test_what_does_not_raise_fails_like_an_assertion():
    with pytest.raises(pytest.fail.Exception) as failure:
        meets()
    assert failure.value.__notes__ == ["where {'word': 'a'}", "where {'number': 2}"]


def test_a_test_without_a_case_is_refused():
    with pytest.raises(ValueError, match="no case"):
        for_each("x", [])
