"""What chapter 5 shows of a published checkpoint, on a small one that is made here."""

import string
from pathlib import Path

import pytest
import torch
from tiny import tiny_bert

from course_lab import records
from course_lab.ch05_bert import bert_page, published
from course_lib.bert.files import save_bert
from course_lib.bert.model import BertModel
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

ROOT = Path(__file__).parents[2]
LETTERS = [*string.ascii_lowercase, *(f"##{x}" for x in string.ascii_lowercase)]


@pytest.fixture
def checkpoint(tmp_path):
    tokenizer = FastWordPiece([*SPECIAL_TOKENS, "bank", "cat", *LETTERS])
    model = BertModel(
        tiny_bert(
            vocab_size=len(tokenizer),
            hidden_size=24,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=40,
            max_position_embeddings=64,
            dropout=0.1,
        )
    )
    bert_page.draw_all(model, seed=0)
    save_bert(model, tmp_path, tokenizer)
    return tmp_path


def test_sizes_texts_and_the_word_in_two_senses_are_read(checkpoint):
    sizes, pair, text, word, untrained = published.run(checkpoint)
    assert sizes["num_hidden_layers"] == 3
    assert sizes["weights stored as"] == ["torch.float32"]
    assert pair["tokens"][4] == "cat"
    assert pair["type_ids"] == [0] * (pair["tokens"].index("[SEP]") + 1) + [1] * 9
    assert text["last_hidden_state"] == [1, len(text["tokens"]), 24]
    assert text["pooler_output"] == [1, 24]
    for row in (word, untrained):
        for of_sense in (row["same sense"], row["other sense"]):
            assert len(of_sense) == 4
            assert of_sense[0] == pytest.approx(1), "one vector at one position"
            assert max(of_sense[1:]) < 1


def test_ours_agrees_with_transformers_and_a_difference_is_refused(
    checkpoint, monkeypatch, capsys
):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import published_checkpoint

    published_checkpoint.main(["--folder", str(checkpoint)])
    assert "difference from transformers" in capsys.readouterr().out
    same = published_checkpoint.load_bert

    def other(folder, dtype):
        model = same(folder, dtype=dtype)
        torch.nn.init.zeros_(model.blocks[2].norm2.bias)
        return model

    monkeypatch.setattr(published_checkpoint, "load_bert", other)
    with pytest.raises(RuntimeError, match="the cat sleeps: ours and"):
        published_checkpoint.agreement(checkpoint)


@pytest.mark.records
def test_the_record_shows_what_the_published_vocabulary_and_sizes_are():
    """The ids as Google's own tokenizer gives them; the sizes of the model's card."""
    rows = records.load("benchmark-published_checkpoint").results
    (sizes,) = [row for row in rows if row["what"] == "sizes"]
    assert (sizes["vocab_size"], sizes["hidden_size"]) == (30_522, 384)
    ids = [101, 1037, 17453, 14726, 19379, 12758, 2006, 2293, 102]
    assert [row["ids"] for row in rows if row["what"] == "text"][1] == ids
    (peer,) = [row["largest"] for row in rows if "largest" in row]
    assert peer < 1e-5
