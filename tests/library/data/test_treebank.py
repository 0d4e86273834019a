"""Undoing the Penn Treebank's tokenization where a WordPiece tokenizer sees the
difference.

Source: Marcus, Santorini and Marcinkiewicz 1993, section 2; SST-2 (Socher et al. 2013)
is cut up so.
"""

from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from course_lab.ch08_finetuning.finetuning_runs import rejoined
from course_lab.ch08_finetuning.finetuning_tasks import Rows
from course_lib.data.sentences import rejoin
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS


@for_each(
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


@given(
    st.lists(
        st.sampled_from(
            ["don't", "can't", "gonna", "got", "gon", "wan", "it's", "--", '"', "'s"]
        ),
        max_size=6,
    )
)
def test_a_text_without_cut_words_comes_back_as_it_is(words):
    assert rejoin(" ".join(words)) == " ".join(words)


def test_what_is_left_cut_is_the_same_to_a_tokenizer_and_what_is_joined_is_not():
    pieces = ["do", "don", "n", "t", "it", "s", "they", "re", "'", '"', "`"]
    tokenizer = FastWordPiece([*SPECIAL_TOKENS, *pieces])
    for cut, whole in (("it 's", "it's"), ("they 're", "they're")):
        assert rejoin(cut) == cut
        assert tokenizer.encode(cut).ids == tokenizer.encode(whole).ids
    for cut in ("do n't", "`` it ''"):
        assert tokenizer.encode(rejoin(cut)).ids != tokenizer.encode(cut).ids


def test_rows_keep_their_golds():
    rows = Rows(["i do n't", "fine"], [0, 1], [])
    assert rejoined(rows) == Rows(["i don't", "fine"], [0, 1], [])
