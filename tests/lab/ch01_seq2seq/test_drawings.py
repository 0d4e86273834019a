"""Chapter 1's diagrams and tables show what the library computes."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from course_lab.ch01_seq2seq import drawings, search_drawings, seq2seq_page
from course_lab.records import Record, load
from course_lib.figures.diagrams import Diagram
from course_lib.seq2seq.search import beam_search, greedy

ENDS = {
    "bos": search_drawings.WORDS.index("<bos>"),
    "eos": search_drawings.WORDS.index("<eos>"),
}
PARTS = {False: ("encoder", "decoder", "bottleneck"), True: ("encoder", "attention")}


def texts(svg: str) -> list[str]:
    return ["".join(e.itertext()) for e in ElementTree.fromstring(svg).iter() if e.tag
            .endswith("}text")]  # fmt: skip


def every_diagram() -> list[Diagram]:
    whole = [drawings.encoder_decoder(attention=attention) for attention in PARTS]
    lit = [
        drawings.encoder_decoder(part, attention)
        for attention, parts in PARTS.items()
        for part in parts
    ]
    others = (
        drawings.gated_unit,
        drawings.teacher_forcing,
        search_drawings.ways_to_draw,
    )
    return whole + lit + [draw() for draw in others]


def test_diagrams_are_xml_with_a_title_and_a_description_and_ids_of_their_own():
    svgs = [diagram.svg() for diagram in every_diagram()]
    titles = [ElementTree.fromstring(svg)[0].get("id") for svg in svgs]
    assert len(set(titles)) == len(svgs)
    assert all(ElementTree.fromstring(svg)[1].text for svg in svgs)


def test_the_attention_step_is_that_of_the_table():
    """By hand: scores 2·1 − 1, 2·1 + 1, −2 + 2; e^1 + e^3 + e^0 = 23.804."""
    scores, weights, context = drawings.by_hand()
    assert scores.tolist() == [1, 3, 0]
    exponentials = torch.tensor([math.e, math.e**3, 1.0])
    torch.testing.assert_close(weights, exponentials / exponentials.sum())
    markup = drawings.attention_step()._repr_html_()
    for number in (*weights, *context):
        assert f">{number:.2f}<" in markup


def test_the_decoder_of_the_drawing_reads_the_labels_one_step_later():
    found = texts(drawings.teacher_forcing().svg())
    reads = [text for text in found if text in {"<bos>", *drawings.TARGET}]
    assert {word: reads.count(word) for word in reads} == {
        "<bos>": 1,
        # as input, as label, and in its loss
        **dict.fromkeys(drawings.TARGET, 3),
    }


def test_the_tree_is_the_beam_that_the_library_searches():
    best = beam_search(
        search_drawings.next_words,
        None,
        **ENDS,
        max_length=5,
        beam_size=2,
        length_penalty=0.0,
    )
    first = greedy(search_drawings.next_words, None, 1, **ENDS, max_length=5)[0]
    (last, kept), *_ = search_drawings.beam_rounds()[-1]
    assert kept
    assert last.tokens == [*best.tokens, ENDS["eos"]]
    assert last.log_prob == pytest.approx(best.log_prob)
    assert math.exp(best.log_prob) == pytest.approx(0.324)
    assert math.exp(first.log_prob) == pytest.approx(0.18)
    assert all(
        sum(row.values()) == pytest.approx(1) for row in search_drawings.NEXT.values()
    )


def test_temperature_top_k_and_nucleus_leave_distributions():
    numbers = [t for t in texts(search_drawings.ways_to_draw().svg()) if t[0] in "01"]
    columns = np.array([float(n) for n in numbers]).reshape(4, 5)
    np.testing.assert_allclose(columns.sum(1), 1, atol=0.015)
    assert (columns > 0).sum(1).tolist() == [5, 5, 2, 3]


def test_a_table_of_searches_shows_means_and_intervals():
    """Two values with mean 1 and difference 2: half width 12.706 (t, 1 degree)."""
    table = seq2seq_page.interval_table("decoding", {"greedy": [[0.0] * 3, [2.0] * 3]})
    assert (
        table.splitlines()[-1] == "| greedy | 1.00 ± 12.71 | 1.0 ± 12.7 | 1.0 ± 12.7 |"
    )
    measured = {"a": np.array([[0, 4.0, 9], [0, 8, 9]]), "b": np.zeros((2, 3))}
    assert seq2seq_page.gain(measured, "a", "b", "BLEU").mean == 6


def test_models_are_compared_on_the_same_seeds():
    record = load("seq2seq-translation")
    runs = seq2seq_page.by_attention(record)
    assert [run["seed"] for run in runs["attention"]] == record.seeds
    fewer = {**vars(record), "results": record.results[1:], "runs": record.runs[1:]}
    with pytest.raises(ValueError, match="other seeds"):
        seq2seq_page.by_attention(Record(**fewer))
