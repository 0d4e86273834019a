"""The diagrams of chapter 2: the numbers drawn are those of the functions."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from course_lab.ch02_self_attention import drawings, multi_head_drawings

X, QUERY, KEY, VALUE = torch.tensor(
    [
        [[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]],
        [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]],
        [[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]],
    ]
)
WORDS = drawings.WORDS


def texts(diagram):
    root = ET.fromstring(diagram.svg())
    return ["".join(text.itertext()) for text in root.findall(".//{*}text")]


def test_a_head_shows_torchs_weights_and_output():
    drawn = texts(drawings.one_head(X, QUERY[:2], KEY[:2], VALUE[:2], WORDS))
    query, key, value = (X @ matrix[:2] for matrix in (QUERY, KEY, VALUE))
    output = scaled_dot_product_attention(query, key, value)
    weights = scaled_dot_product_attention(query, key, torch.eye(3))
    for numbers in (weights, output):
        cells = [f"{number:.2f}" for number in numbers.flatten()]
        assert re.search(".*".join(cells), " ".join(drawn))
    assert {"(3, 2)", "(3, 3)"} <= set(re.findall(r"\(.*?\)", " ".join(drawn)))


def test_every_step_and_part_can_be_here_and_others_cannot():
    for draw, parts in (
        (drawings.head_map, (None, *drawings.STEPS, "heads")),
        (multi_head_drawings.multi_head, (None, "split", "attend", "join")),
    ):
        for part in parts:
            assert ('class="hi"' in draw(part).svg()) == (part is not None)
        with pytest.raises(ValueError, match="is no part"):
            draw("nowhere").svg()


def test_a_masked_key_has_no_arrow():
    svg = drawings.wiring().svg()
    everything, triangle = 3 * 3, 3 + 2 + 1
    assert svg.count('class="head v"') == 3 * everything + triangle
    assert "le sees le;" in svg
    assert "sleeps sees the, cat, sleeps." in svg


def test_the_divisor_keeps_the_largest_weight_where_it_was():
    drawn = texts(drawings.scaling())
    largest = [float(text) for text in drawn if re.fullmatch(r"0\.\d\d", text)]
    unscaled, scaled = largest[::2], largest[1::2]
    assert unscaled == sorted(unscaled)
    assert max(scaled) < 0.4 < unscaled[0]


def test_all_drawings_are_xml_with_names_of_their_own():
    drawn = [drawings.paths(), drawings.scaling(), drawings.wiring()]
    drawn += [step.diagram for step in multi_head_drawings.multi_head_steps()]
    drawn += [
        drawings.head_map(),
        drawings.head_map("mask"),
        multi_head_drawings.multi_head(),
    ]
    names = [ET.fromstring(d.svg()).find("{*}title").get("id") for d in drawn]
    assert len(set(names)) == len(names)
