"""Undoing the Penn Treebank's tokenization where a WordPiece tokenizer sees the difference.

Source: Marcus, Santorini and Marcinkiewicz 1993, section 2; SST-2 (Socher et al. 2013) is cut up so.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.data.treebank import rejoin
from course_lib.experiments.finetuning_runs import rejoined
from course_lib.experiments.finetuning_tasks import Rows


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("it does n't work", "it doesn't work"),
        ("ca n't and wo n't", "can't and won't"),
        ("Do N'T do it", "DoN'T do it"),
        ("you 're gon na wan na , and got ta", "you 're gonna wanna , and gotta"),
        ("`` roger '' is `fun'", "\" roger \" is 'fun'"),
        ("n't at the beginning", "n't at the beginning"),
        ("a nt hill , na na na", "a nt hill , na na na"),
    ],
)
def test_what_was_cut_is_one_word_again_and_the_rest_stays(cut, whole):
    assert rejoin(cut) == whole


@given(st.lists(st.sampled_from(["don't", "can't", "gonna", "got", "it's", "--", "na", '"', "'s"]), max_size=6))
def test_text_as_people_write_it_comes_back_as_it_is(words):
    text = " ".join(words).replace("got na", "got")
    assert rejoin(text) == text
    assert rejoin(rejoin(text)) == rejoin(text)


def test_rows_keep_their_golds():
    rows = Rows(["i do n't", "fine"], [0, 1], [])
    assert rejoined(rows) == Rows(["i don't", "fine"], [0, 1], [])
