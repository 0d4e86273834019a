"""Chapter 11's diagrams: what they say is what the library computes; and tables of its
records."""

import re
from xml.etree import ElementTree

import pytest
import torch

from course_lab import records
from course_lab.ch11_encoders_today import drawings, encoders_page

tensor = torch.tensor


def words(diagram):
    """All text of a drawing; XML that does not parse is an error."""
    tree = ElementTree.fromstring(diagram.svg())
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()) for text in texts]


def test_a_norm_follows_each_addition_of_bert_and_precedes_each_layer_of_modernbert():
    found = words(drawings.two_blocks())
    both = [text for text in found if text in {*drawings.POST, *drawings.PRE}]
    assert both == [*drawings.POST, *drawings.PRE]
    for place, part in enumerate(drawings.POST):
        assert part != "+" or drawings.POST[place + 1] == "norm"
    for place, part in enumerate(drawings.PRE):
        assert part in ("+", "norm") or drawings.PRE[place - 1] == "norm"


def test_equal_distances_have_equal_products_and_others_do_not():
    found = words(drawings.rotation([(2, 1), (5, 4)]))
    assert found.count("product 0.54") == 2
    assert "product -0.42" in words(drawings.rotation([(2, 1), (5, 3)]))


def test_a_joined_token_sees_its_own_text_and_locally_its_neighbours_alone():
    ids = tensor([[5, 7, 8], [6, 0, 0]])
    mask = tensor([[1, 1, 1], [1, 0, 0]]).bool()
    found = words(drawings.unpadding(ids, mask, window=2))
    assert found.count("pad") == 2
    # 9 pairs in the first text and 1 in the second; 2 of these are two places apart;
    # and two tokens have the position 1 or none: 0, 1, 2 and 0
    assert found.count("1") == 10 + 8 + 1


def test_the_nearest_document_under_the_ceiling_is_the_hard_negative():
    texts = ["own", "twin", "near", "far"]
    found = words(drawings.negatives(texts, tensor([0.9, 0.88, 0.8, 0.2]), 0.95))
    told = [text for text in found if text in {*texts} or not re.search(r"\d", text)]
    assert told == [
        *("own", "its own", "twin", "too near: left out"),
        *("near", "hard negative", "far", "easier"),
    ]
    found = words(drawings.negatives(texts, tensor([0.9, 0.88, 0.8, 0.2]), 1.0))
    assert "too near: left out" not in found


def test_a_sparse_vector_has_the_largest_logit_of_each_token():
    found = words(drawings.sparse(["x", "y"], ["a", "b"], tensor([[1.0, -1], [3, -2]])))
    assert found[-3:] == ["1.39", "0", "weights"]  # ln 4


def test_the_fused_ranking_is_that_of_the_ranks():
    systems = {"one": tensor([9.0, 5, 1]), "two": tensor([0.2, 0.9, 0.5])}
    found = words(drawings.stages("ABC", systems, candidates=20))
    letters = "".join(text for text in found if len(text) == 1)
    assert letters == "ABC" + "BCA" + "BAC"


def test_a_pair_that_lies_together_has_no_line_between():
    apart = tensor([[0.0, 0], [1, 1], [1, 0], [0, 1]])
    together = apart[[0, 1, 0, 1]]
    svg = drawings.one_space(apart, together).svg()
    assert svg.count('r dash"') == 2
    assert "0.00 after it" in svg


def test_lora_s_numbers_are_counted():
    found = words(drawings.low_rank(768, 8))
    assert "589,824 numbers" in found
    assert "12,288 numbers" in found


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Three seeds of two variants, and one of a third."""
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    scores = {"control": (0.5, 0.6, 0.7), "better": (0.6, 0.7, 0.81), "new": (0.9,)}
    for variant, by_seed in scores.items():
        for seed, score in enumerate(by_seed):
            result = {"variant": variant, "seed": seed, "scores": {"ndcg": score}}
            records.add("encoders-trial", ["course"], {"variants": [*scores]}, result)


def test_a_table_shows_what_has_an_interval_and_its_lead(recorded):
    figure = {"nDCG": ("scores", "ndcg")}
    table = encoders_page.comparison(
        "encoders-trial", "control", ("better", "new"), figure
    )
    assert "of 3 seeds" in table
    assert "| better | 70.3 ± 26.1 | **+10.3 ± 1.4** |" in table
    assert "new" not in table
    missing = encoders_page.comparison("encoders-other", "control", (), figure)
    assert "`course record encoders-other`" in missing
