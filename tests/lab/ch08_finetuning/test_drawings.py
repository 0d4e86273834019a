"""Chapter 8's diagrams: what they say is what the functions and models that they draw
compute."""

from xml.etree import ElementTree

import pytest
import torch
from tiny import tiny_bert

from course_lab.ch08_finetuning import drawings, span_drawings
from course_lib.bert.model import BertModel
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece

WORDS = ["who", "sleeps", "?", "the", "dog", "barks", ".", "cat", "on", "mat", "##s"]
TOKENIZER = WordPiece([*SPECIAL_TOKENS, *WORDS])


def words(diagram):
    """All text of a drawing; XML that does not parse is an error."""
    tree = ElementTree.fromstring(diagram.svg())
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()) for text in texts]


def test_the_pipeline_has_the_ids_padding_and_shapes_of_its_model():
    model = BertModel(tiny_bert(vocab_size=len(TOKENIZER))).eval()
    size = model.config.hidden_size
    found = words(drawings.feature_pipeline(model, TOKENIZER, ["the cat sleeps", "?"]))
    assert found[1:11] == ["2", "8", "12", "6", "3", "2", "7", "3", "0", "0"]
    assert {"ids (2, 5); padding is 0", f"states (2, 5, {size})"} < {*found}
    assert f"features (2, {size})" in found


def test_every_format_can_be_here_and_has_the_shape_that_its_head_returns():
    shapes = ["(1, 2)", "(1, 5, 3)", "(1, 7)", "(1, 4)"]
    for part in drawings.PARTS:
        found = drawings.task_formats(part)
        assert found.svg().count('class="faded"') == len(drawings.PARTS) - 1
        assert [text for text in words(found) if text in shapes] == shapes
    with pytest.raises(ValueError, match="no part"):
        drawings.task_formats("poetry").svg()


def test_only_the_first_token_of_a_word_has_its_label():
    found = words(drawings.word_tags(["cats", "sleeps"], ["B", "O"], TOKENIZER))
    assert found[2:6] == ["B", "cats", "O", "sleeps"]
    assert found[6:] == [
        "[CLS]",
        "X",
        "cat",
        "B",
        "##s",
        "X",
        "sleeps",
        "O",
        *found[14:],
    ]
    assert found[14:] == ["[SEP]", "X"]


TEXT = "The dog barks. The cat sleeps on the mat."


def test_a_window_without_the_whole_answer_points_at_cls():
    begin = TEXT.index("The cat")
    answer = begin, begin + len("The cat")
    steps = span_drawings.window_steps("Who sleeps?", TEXT, answer, TOKENIZER, 14, 5)
    assert [step.title for step in steps] == [
        "Window 1 of 2",
        "Window 2 of 2",
        "Which window decides",
    ]
    assert "start 9, end 10." in steps[0].text
    assert "start 0, end 0." in steps[1].text
    for step in steps[:2]:
        marked = step.diagram.svg().count('class="box w"')
        assert marked == (2 if step is steps[0] else 1)
    # of windows over tokens 0 to 7 and 5 to 10, 6 is as near to the end of the first as
    # to the start of the second, which is the shorter one
    tokens = words(steps[2].diagram)
    assert tokens[::2] == [
        "the",
        "dog",
        "barks",
        ".",
        "the",
        "cat",
        "sleeps",
        "on",
        "the",
        "mat",
        ".",
    ]
    assert tokens[1::2] == list("11111112222")


def test_the_sums_mark_the_best_span_of_the_text_not_the_largest_sum():
    start = torch.tensor([0.0, 0, 6, 0, 0, 4, 1, 5, 0])
    end = torch.tensor([0.0, 0, 5, 0, 0, 0, 6, 1, 0])
    sums = span_drawings.span_sums(
        "Who sleeps?", "the cat sleeps", start, end, TOKENIZER
    )
    assert "the best is 'the cat' with 10." in sums.svg().replace("&#x27;", "'")
    assert sums.svg().count('class="cell w"') == 1
    assert sums.svg().count('class="cell q"') == 5  # and the best: six spans of three
    assert "12" in words(sums)
