"""The diagrams of chapter 3 show what the library computes."""

import re
from xml.etree import ElementTree

import pytest
import torch

from course_lab.ch03_transformer import drawings
from course_lib.figures.diagrams import Diagram
from course_lib.transformer.heads import label_smoothing_loss
from course_lib.transformer.model import TransformerConfig
from course_lib.transformer.positions import sinusoidal_positions

WORDS = ["a", "am", "I", "thanks", "student", "<eos>"]
ALL = (
    lambda: drawings.whole_transformer(),
    lambda: drawings.one_hot(),
    lambda: drawings.position_dials(),
    lambda: drawings.norm_axes(),
    lambda: drawings.post_and_pre_norm(),
    lambda: drawings.feed_forward(),
    lambda: drawings.smoothed_labels(WORDS, 3),
    lambda: drawings.learning_rates(),
)


def texts(diagram: Diagram) -> list[str]:
    """What is written in a picture, title and description included."""
    root = ElementTree.fromstring(diagram.svg())
    return [
        "".join(element.itertext()).replace("\N{MINUS SIGN}", "-")
        for element in root.iter()
        if element.tag.endswith(("text", "desc"))
    ]


def test_every_diagram_is_valid_and_lies_within_its_frame():
    """Boxes and cells; letters are as wide as the reader's font."""
    for make in ALL:
        root = ElementTree.fromstring(make().svg())
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y, w, h = (float(rect.attrib[k]) for k in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width, (make().title, rect.attrib)
            assert 0 <= y <= y + h <= height, (make().title, rect.attrib)


@pytest.mark.parametrize("part", drawings.PARTS)
def test_every_part_of_the_transformer_can_be_here(part):
    lit = drawings.whole_transformer(part).svg()
    assert 'class="hi"' in lit
    assert 'class="faded"' in lit
    assert "here:</text>" in lit
    assert f">{part}</text>" in lit


def test_the_whole_transformer_shows_the_model_that_it_is_given():
    small = TransformerConfig(9, 8, dim=12, num_heads=3, num_layers=5)
    written = texts(drawings.whole_transformer(config=small))
    assert {"Encoder × 5", "Decoder × 5"} <= set(written)
    assert "Encoder × 6" in texts(drawings.whole_transformer())


def test_the_dials_show_the_table_of_positions():
    table = sinusoidal_positions(4, 4, base=100.0)
    written = texts(drawings.position_dials(100.0, 4))
    for vector in table.tolist():
        for pair in (vector[:2], vector[2:]):
            assert "{:.2f}, {:.2f}".format(*pair) in written


def test_the_norms_average_over_a_row_and_over_a_column():
    """By hand: (1, 7, 9, 15) has mean 8 and variance 25; the feature (4, 7, 1) has
    mean 4 and variance 6."""
    written = texts(drawings.norm_axes())
    assert "mean 8.0, std 5.0" in written
    assert {"4.0", "2.4"} <= set(written)
    transposed = texts(drawings.norm_axes(drawings.TOKENS[:, [0, 2, 1, 3]]))
    assert "6.0" in transposed


def test_smoothed_labels_are_those_of_the_loss():
    """0.9 + 0.1 / 6, and 0.1 / 6 five times."""
    logits = torch.zeros(1, 6, requires_grad=True)
    loss, _ = label_smoothing_loss(logits, torch.tensor([3]), 0.1, ignore_index=-1)
    loss.backward()
    target = 1 / 6 - logits.grad[0]  # the gradient is softmax minus target
    shown = texts(drawings.smoothed_labels(WORDS, 3, 0.1))
    for share in target.tolist():
        assert f"{share:.3f}" in shown
    assert shown.count("0.017") == 5


def test_the_learning_rate_peaks_where_equation_3_of_the_paper_does():
    """512^-0.5 times 4000^-0.5 is 6.99e-4."""
    assert "7.0" in texts(drawings.learning_rates(512, 4000))
    assert "14.0" in texts(drawings.learning_rates(128, 4000))


def test_the_feed_forward_layer_has_the_shapes_of_the_layer():
    torch.manual_seed(0)
    written = " ".join(texts(drawings.feed_forward()))
    assert "4 to 16" in written
    assert "16 to 4" in written


def test_the_cache_grows_by_one_word_a_step():
    stepper = drawings.decoding_with_a_cache()
    assert re.findall(r"now holds (\d)", stepper.markup) == ["1", "2", "3", "4"]
