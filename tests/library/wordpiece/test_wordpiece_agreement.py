"""The teaching code and the library `tokenizers` give the same encoding, to the last
offset, whatever the text."""

import importlib
import sys
from itertools import islice
from pathlib import Path

import pytest
from hostile_text import texts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer
from whole import whole_only

from course_lab.texts import hostile_texts, hostile_vocab
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece

VOCAB = hostile_vocab()
CASES = {
    options: (WordPiece(VOCAB, *options), FastWordPiece(VOCAB, *options))
    for options in ((True, None), (True, False), (False, None), (False, True))
}


@pytest.fixture
def agreement(monkeypatch):
    """The program that compares, from the folder of benchmarks."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    yield importlib.import_module("tokenizer_agreement")
    for module in ("tokenizer_agreement", "side_by_side"):
        sys.modules.pop(module, None)


@given(texts(), st.sampled_from(list(CASES)))
@example("[MASK]" + "x" * 10_000 + "\u0301 b", (True, None))
@example("\u302e" * 10_000, (False, True))
@settings(max_examples=60, deadline=None)
def test_one_text(text, options):
    ours, theirs = CASES[options]
    assert ours.encode(text) == theirs.encode(text)


@given(texts(8), texts(8), st.integers(3, 12), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_pair_cut_to_a_length(first, second, max_length, add_special_tokens):
    ours, theirs = CASES[True, None]
    call = (first, second, max_length, add_special_tokens)
    assert ours.encode(*call) == theirs.encode(*call)


@given(
    st.lists(texts(6) | st.tuples(texts(6), texts(6)), max_size=4),
    st.sampled_from(["longest", None, 9]),
)
@settings(max_examples=25, deadline=None)
def test_a_batch_padded(batch, padding):
    ours, theirs = CASES[True, None]
    assert ours.encode_batch(batch, padding, max_length=14) == theirs.encode_batch(
        batch, padding, max_length=14
    )


@given(st.lists(st.integers(0, len(VOCAB) - 1), max_size=12), st.booleans())
@settings(max_examples=80, deadline=None)
def test_decoding(ids, skip):
    ours, theirs = CASES[True, None]
    assert ours.decode(ids, skip) == theirs.decode(ids, skip)


def test_the_working_tokenizer_is_the_library_s_own_bert_tokenizer():
    """`FastWordPiece` puts the parts together itself; ``BertWordPieceTokenizer`` is how
    the library does it."""
    theirs = BertWordPieceTokenizer({piece: index for index, piece in enumerate(VOCAB)})
    texts = hostile_texts(200, seed=5)
    for text, found in zip(
        texts, CASES[True, None][1].encode_batch(texts, None), strict=True
    ):
        expected = theirs.encode(text)
        assert (found.ids, found.offsets, found.tokens) == (
            expected.ids,
            expected.offsets,
            expected.tokens,
        )


def test_a_disagreement_is_found_and_shown(agreement):
    """A tokenizer with another rule for accents, and a text that tells."""
    row = agreement.compare(
        "x", ["a", "é a", "b"], CASES[True, False][0], CASES[True, None][1]
    )
    assert (row["texts"], row["disagreements"], row["examples"]) == (3, 1, ["é a"])


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "options"), list(enumerate(CASES)))
def test_ten_thousand_generated_texts(agreement, seed, options):
    row = agreement.compare("generated", hostile_texts(2_500, seed), *CASES[options])
    assert (row["texts"], row["examples"]) == (2_500, [])
    # else the offsets of pieces would hardly be compared
    assert row["unknown"] < 0.1 * row["tokens"]


@pytest.mark.slow
@pytest.mark.real_data
def test_every_third_line_of_wikitext_and_sst_with_the_published_vocabulary(
    agreement, real_data
):
    """The program compares all, and those of ten more data sets, when its result is
    recorded."""
    vocab = real_data / "bert_base_uncased" / "vocab.txt"
    sources = dict(agreement.public_lines(real_data))
    for name, at_least in (("wikitext2_raw", 2_700), ("sst2", 22_700)):
        lines = islice(sources[name], 0, None, 3)
        row = agreement.compare(
            name, lines, WordPiece.load(vocab), FastWordPiece.load(vocab)
        )
        assert row["texts"] >= at_least
        assert row["examples"] == []


@whole_only
@pytest.mark.slow
def test_every_fifth_paragraph_of_the_embedded_corpus(agreement):
    row = agreement.compare(
        "pydocs", islice(agreement.pydocs(), 0, None, 5), *CASES[True, None]
    )
    assert row["texts"] > 2_000
    assert row["examples"] == []
