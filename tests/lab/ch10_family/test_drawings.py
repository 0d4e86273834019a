"""Chapter 10's diagrams: what they say is what the library computes."""

from xml.etree import ElementTree

import pytest
import torch

from course_lab.ch10_family import drawings, maxsim_drawings
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining
from course_lib.family.albert import AlbertForPreTraining
from course_lib.family.distilbert import student_of

WORDS = ["a", "b", "c"]


def words(diagram):
    """All text of a drawing; XML that does not parse is an error."""
    tree = ElementTree.fromstring(diagram.svg())
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()) for text in texts]


def bert(layers=4):
    return BertForPreTraining(BertConfig.tiny(vocab_size=50, num_hidden_layers=layers))


def test_every_member_of_the_family_can_be_looked_at():
    members = [name for _, name, _, _ in drawings.FAMILY]
    for name in members:
        svg = drawings.time_line(name).svg()
        assert svg.count('class="faded"') == len(members) - 1
    with pytest.raises(ValueError, match="no part"):
        drawings.time_line("ELMo").svg()


def test_shared_blocks_are_counted_once():
    model = bert()
    found = words(drawings.shared_blocks(model, AlbertForPreTraining(model.config, 8)))
    block = drawings.count(model.bert.blocks[0])
    assert f"+ {4 * block:,} parameters" in found
    assert f"+ {block:,} parameters" in found


def test_the_student_has_the_layers_that_it_was_given():
    torch.manual_seed(0)
    teacher = bert()
    assert drawings.copied_from(teacher, student_of(teacher)) == [0, 2]
    logits = 2 * torch.tensor([[4.0, 2.0, 1.0], [1.0, 1.0, 1.0]]).log()

    def drawn(here=None):
        student = student_of(teacher)
        return drawings.teacher_and_student(teacher, student, WORDS, logits, 2.0, here)

    numbers = [text for text in words(drawn()) if text.startswith("0.")]
    assert " ".join(numbers) == "0.57 0.29 0.14 0.33 0.33 0.33"
    for part in drawings.TEACHING:
        faded = drawn(part).svg().count('class="faded"')
        assert faded == len(drawings.TEACHING) - 1


def test_only_the_content_stream_sees_the_word_itself():
    found = words(drawings.two_streams(WORDS, [2, 0, 1], word=1))
    # causal 6; content: a sees a and c, b all, c itself; query: the same, less 3
    assert found.count("1") == 6 + 6 + 3
    assert found.count("hb") == 1 + 1  # the state itself, and what it is made of
    assert found.count("gb") == 1
    assert "pos. 2" in found


def test_each_step_of_maxsim_adds_the_best_of_a_row():
    query = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    document = torch.tensor([[0.6, -0.8], [1.0, 0.0], [0.0, 1.0]])
    steps = maxsim_drawings.maxsim_steps(["q", "r"], WORDS, query, document)
    best = [
        [text for text in words(step.diagram)[-5:] if text.startswith(("0.", "1."))]
        for step in steps
    ]
    assert len(steps) == 3
    assert best[-1] == ["0.80", "0.80", "1.80"]
    assert "best partner of r is c" in steps[-1].text


def test_what_t5_writes_is_what_is_missing():
    assert drawings.denoising("a b c d", [(1, 3)]) == ("a <X> d", "<X> b c <Y>")
    assert "<X> b c <Y>" in words(drawings.text_to_text("a b c d", [(1, 3)]))
