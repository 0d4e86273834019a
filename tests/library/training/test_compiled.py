"""Compiled, a Transformer or a BERT is one graph, gives the same numbers, and refuses
what it refuses otherwise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from whole import whole_only

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers():
    program = Path(__file__).with_name("compiled_model.py")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@whole_only
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_logits_and_gradients_are_those_of_the_model_that_is_not_compiled(
    answers, norm
):
    assert answers[norm] < 1e-10


@pytest.mark.parametrize("fault", ["empty sentence", "sentence too long"])
def test_a_length_that_cannot_be_stops_the_graph(answers, fault):
    assert answers[fault] == "a sentence has no word, or more words than max_length"


@pytest.mark.parametrize("causal", [False, True])
def test_a_mask_that_leaves_a_word_nothing_stops_the_graph(answers, causal):
    assert answers[f"mask, causal={causal}"].startswith(
        "the mask forbids every key for a query"
    )


@pytest.mark.parametrize("batch", ["padded", "full"])
def test_bert_s_logits_and_gradients_are_those_of_the_model_that_is_not_compiled(
    answers, batch
):
    assert answers[f"bert, {batch}"] < 1e-10


def test_a_sequence_of_padding_only_stops_bert_s_graph(answers):
    assert answers["bert, all padding"].startswith(
        "the mask forbids every key for a query"
    )


def test_a_compiled_dropout_is_one_graph_and_drops_as_many(answers):
    assert answers["dropout"] == pytest.approx(
        0.25, abs=4 * (0.25 * 0.75 / 120_000) ** 0.5
    )
