"""The diagrams of chapter 4 show what the tokenizer does."""

from xml.etree import ElementTree

import pytest

from course_lab.ch04_wordpiece.drawings import match_steps, pipeline, three_units
from course_lib.figures.diagrams import Diagram
from course_lib.wordpiece.tokenizer import WordPiece
from course_lib.wordpiece.training import SPECIAL_TOKENS

SVG = "{http://www.w3.org/2000/svg}"
VOCAB = ["the", "t", "cat", "sleep", "##s", "!", "un", "una", "##aff", "##able"]
PIECES = {"un", "una", "##aff", "##able", "##ffable"}


def words_of(diagram: Diagram) -> list[str]:
    return [
        "".join(text.itertext())
        for text in ElementTree.fromstring(diagram.svg()).iter(f"{SVG}text")
    ]


def test_the_pipeline_shows_words_pieces_and_ids_of_the_tokenizer():
    tokenizer = WordPiece([*SPECIAL_TOKENS, *VOCAB])
    shown = words_of(pipeline("Thé cat sleeps!", tokenizer))
    ids = [2, 5, 7, 8, 9, 10, 3]
    assert shown[-7:] == list(map(str, ids))
    assert shown.count("the") == 2
    assert shown.count("sleeps") == shown.count("##s") == 1
    assert "“the cat sleeps!”" in shown


@pytest.mark.parametrize("step", ["normalise", "match pieces"])
def test_a_step_of_the_pipeline_can_be_lit(step):
    tokenizer = WordPiece([*SPECIAL_TOKENS, *VOCAB])
    lit = ElementTree.fromstring(pipeline("the cat", tokenizer, here=step).svg())
    assert [group.get("class") for group in lit.iter(f"{SVG}g")].count("faded") == 3
    with pytest.raises(ValueError, match="'cook' is no part"):
        pipeline("the cat", tokenizer, here="cook").svg()


def test_three_vocabularies_are_counted():
    tokenizer = WordPiece([*SPECIAL_TOKENS, "a", "##b", "##c", "##bc"])
    shown = words_of(three_units("abc", tokenizer, words=7_000))
    assert shown[1] == "3 units, vocabulary of 3"
    assert "2 units, vocabulary of 9" in shown
    assert "1 unit, vocabulary of 7,000" in shown


def test_matching_is_shown_piece_by_piece_with_what_was_refused():
    first, second = match_steps("unaffable", PIECES)
    assert (first.title, second.title) == ("Piece 1: una", "Piece 2: ##ffable")
    assert first.diagram is not None
    assert second.diagram is not None
    assert words_of(first.diagram).count("not in the vocabulary") == 6
    assert words_of(second.diagram).count("not in the vocabulary") == 0


def test_a_word_that_cannot_be_spelled_ends_in_unk():
    *_, last = match_steps("unaffably", PIECES)
    assert last.title == "Piece 2: [UNK]"
    assert "whole word" in last.text
