"""Search by trained static vectors, and the data that its page loads."""

import base64
import gzip
import json
import re

import numpy as np
import pytest
import torch

from course_lab.ch06_pretraining.shipped import CHECKPOINTS
from course_lab.ch09_sentence_bert import licences, static_search
from course_lab.ch09_sentence_bert.search_explorer import (
    Document,
    Licence,
    quantised,
    restored,
    search_data,
    search_explorer,
)
from course_lab.ch09_sentence_bert.sentence_encoders import StaticSentences
from course_lab.ch09_sentence_bert.sentences import holding
from course_lib.training.loop import TrainingConfig
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

WORDS = ["cat", "dog", "red", "blue", "sea"]
DOCUMENTS = [
    Document("p", "p.first", ["A cat.", "A </script> dog."]),
    Document("a", "a.b", ["Zürich."]),
]
LICENCES = {"p": Licence("1.0", "MIT", "All of it."), "a": Licence("2", "BSD", "")}


def written(script: str) -> dict:
    call = re.fullmatch(r"courseSearchData\((.*)\);\n", script)
    assert call is not None
    return json.loads(call[1])


def test_the_script_holds_what_was_given():
    matrix = np.random.default_rng(0).normal(size=(7, 3))
    numbers, scales = quantised(matrix)
    script = search_data(
        {"vocabulary": list("abcdefg")},
        numbers,
        scales,
        DOCUMENTS,
        LICENCES,
        (1.2, 0.75),
    )
    assert script.isascii()
    assert "</script" not in script
    data = written(script)
    collection = json.loads(gzip.decompress(base64.b64decode(data["collection"])))
    assert collection == {
        "packages": [["a", "2", "BSD", ""], ["p", "1.0", "MIT", "All of it."]],
        "documents": [[1, "p.first", 2], [0, "a.b", 1]],
        "paragraphs": "A cat.\nA </script> dog.\nZürich.",
    }
    table = np.frombuffer(base64.b64decode(data["table"]), np.int8).reshape(
        7, data["features"]
    )
    read = np.frombuffer(base64.b64decode(data["scales"]), "<f4")
    # Half a step, a 254th of the largest number of the row, and what float32 adds.
    assert (
        abs(restored(table, read) - matrix)
        <= abs(matrix).max(axis=1, keepdims=True) / 253
    ).all()


def test_faulty_data_are_refused_in_words():
    numbers, scales = quantised(np.eye(2))
    vocabulary = {"vocabulary": ["a", "b"]}
    with pytest.raises(ValueError, match="3 pieces, 2 vectors"):
        search_data(
            {"vocabulary": ["a", "b", "c"]},
            numbers,
            scales,
            DOCUMENTS,
            LICENCES,
            (1.2, 0.75),
        )
    with pytest.raises(ValueError, match="no licence is known for a"):
        search_data(
            vocabulary, numbers, scales, DOCUMENTS, {"p": LICENCES["p"]}, (1.2, 0.75)
        )
    with pytest.raises(ValueError, match="line break"):
        search_data(
            vocabulary,
            numbers,
            scales,
            [Document("p", "p", ["a\nb"])],
            LICENCES,
            (1.2, 0.75),
        )
    with pytest.raises(ValueError, match="not finite"):
        quantised(np.array([[np.nan]]))
    with pytest.raises(ValueError, match="path from the page"):
        search_explorer("https://example.org/x.js", 1, 1, "?", {})


def test_paragraphs_that_hold_a_phrase_are_found_as_one_by_one():
    """Against the plain way: each phrase in each text."""
    random = np.random.default_rng(1)
    texts = ["".join(random.choice(list("ab "), 12)) for _ in range(60)]
    phrases = ["aba", "bb a", "zzz", texts[7]]
    assert holding(texts, phrases) == {
        n for n, text in enumerate(texts) if any(phrase in text for phrase in phrases)
    }


def test_training_brings_neighbours_together():
    """Colours only ever stand with animals of their own: only training can tell."""
    tokenizer = FastWordPiece([*SPECIAL_TOKENS, *WORDS])
    pairs = [("cat sea", "red"), ("dog", "blue sea")] * 8
    torch.manual_seed(0)
    first = torch.randn(len(tokenizer), 6)
    config = TrainingConfig(steps=40, learning_rate=0.05, progress=False)
    after = StaticSentences(
        static_search.train_table(pairs, tokenizer, first, config), tokenizer
    )
    cat, dog, red, blue = torch.nn.functional.normalize(
        after.encode(["cat", "dog", "red", "blue"]), dim=1
    )
    assert cat @ red > cat @ blue + 0.3
    assert dog @ blue > dog @ red + 0.3


def test_neighbours_are_sentences_of_a_paragraph_and_paragraphs_of_a_document():
    """Of one short sentence, as of "A third.", nothing is to be learnt."""
    documents = [
        [
            "It sorts a list. It is stable. It is old.",
            "See also the others.",
            "A third. No more.",
        ],
        ["Alone."],
    ]
    assert static_search.neighbours(documents) == [
        ("It sorts a list. It is stable. It is old.", "See also the others."),
        ("It sorts a list.", "It is stable. It is old."),
    ]


def test_chance_and_hidden_documents_are_counted():
    """Of four documents one is hidden: a right one moves up from place 2 to 1, and
    chance is (1 + 1/2 + 1/3) / 3."""
    scores = {"one": torch.tensor([[0.9, 0.5, 0.1, 0.2], [0.1, 0.2, 0.8, 0.3]])}
    chance, one = static_search.measure_ways(scores, right=[1, 3], hidden=[0])
    assert chance.mrr == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert one.mrr == pytest.approx((1 + 1 / 2) / 2)
    assert static_search.places_of(scores["one"], [1, 3], [0]).tolist() == [1, 2]


def test_every_package_of_the_corpus_has_a_licence():
    from course_lib.data.pydocs import PACKAGES

    for package in PACKAGES:
        licence = licences.licence_of(package)
        assert len(licence.text) > 150, package
        assert licence.version


@pytest.mark.slow
def test_what_the_page_loads_is_small_and_finds_what_it_should():
    made = static_search.make()
    assert made.script.stat().st_size <= 6_000_000
    data = written(made.script.read_text())
    assert (
        data["tokenizer"]["vocabulary"]
        == FastWordPiece.load(CHECKPOINTS / "tiny").pieces
    )
    ways = {row.name: row for row in made.measured}
    chance = ways["in random order"].mrr
    assert chance < ways[static_search.UNTRAINED].mrr / 20
    assert (
        2 * ways[static_search.UNTRAINED].mrr
        < ways[static_search.VECTORS].mrr
        < ways[static_search.BOTH].mrr
    )
    assert made.told["only_vectors"] > 0
    assert made.told["only_words"] > 0
    assert static_search.make().script == made.script, "kept, and not made again"
