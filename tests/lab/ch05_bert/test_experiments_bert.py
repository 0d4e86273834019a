"""Chapter 5's experiments: parameters by part, an old checkpoint and padding."""

import math
import re

import pytest
import torch
from expect import refusal
from safetensors import safe_open
from tiny import tiny_bert, tiny_tokenizer

from course_lab.ch05_bert import bert_page, padding
from course_lab.records import Record
from course_lib.bert.files import load_bert, save_bert
from course_lib.bert.model import BertForPreTraining, BertModel, BertOutput

TOKENIZER = tiny_tokenizer("it is ##s cut .")
SMALL = tiny_bert(
    vocab_size=31,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=20,
    max_position_embeddings=17,
    dropout=0.1,
)


class TestParts:
    def test_parts_are_those_of_the_formulas(self):
        """Of a block: attention 4 d² + 4 d, feed-forward 2 d m + m + d, and a norm of 2
        d with each."""
        d, m, blocks = 12, 20, 3
        assert bert_page.parameters_by_part(SMALL) == {
            "embeddings": (31 + 17 + 2 + 2) * d,
            "attention": blocks * (4 * d**2 + 4 * d + 2 * d),
            "feed-forward": blocks * (2 * d * m + m + d + 2 * d),
            "pooler and heads": d**2 + d + (d**2 + d + 2 * d + 31) + (2 * d + 2),
        }

    def test_the_table_of_sizes_has_the_published_sizes_and_counts(self):
        """The counts are those of tests/library/bert/test_bert.py; a block of 2017 has
        12 d² + 13 d, too."""
        _, _, vaswani, base = bert_page.size_table(["base"]).splitlines()
        assert f"| {6 * (12 * 512**2 + 13 * 512):,} |" in vaswani
        assert base.startswith("| base | 12 | 768 | 12 |")
        assert base.endswith("| 109,482,240 | 110,106,428 |")

    def test_a_parameter_that_belongs_nowhere_is_refused(self):
        with refusal(r"decoder\.weight is no parameter of a BertForPreTraining"):
            bert_page.part_of("decoder.weight")


class TestLadder:
    def row(self, what="ladder", device="cpu", size="tiny", mode="a", ratio=2.0):
        return {
            "what": what,
            "device": device,
            "size": size,
            "mode": mode,
            "low": 1.0,
            "ratio": ratio,
            "high": 3.0,
        }

    def record(self, *rows):
        return Record("benchmark-bert", "", {}, [], list(rows), "", {}, "")

    def test_rungs_keep_their_order_and_each_size_its_quartiles(self):
        rows = [
            self.row(mode="b"),
            self.row(mode="a", ratio=2.5),
            self.row(size="mini", mode="a", ratio=1.5),
        ]
        others = [
            self.row(what="transformers", mode="training step"),
            self.row(device="cuda", mode="c"),
        ]
        rungs, ratios = bert_page.ladder_of(self.record(*others, *rows))
        assert rungs == ["b", "a"]
        assert ratios == {
            "tiny": {"b": (1.0, 2.0, 3.0), "a": (1.0, 2.5, 3.0)},
            "mini": {"a": (1.0, 1.5, 3.0)},
        }

    def test_a_record_without_one_is_told_of(self):
        with refusal(
            "benchmark-bert holds no ladder of the device 'cuda'", LookupError
        ):
            bert_page.ladder_of(self.record(self.row()), "cuda")


class TestWeights:
    def test_no_parameter_keeps_the_value_it_started_with(self):
        model = BertForPreTraining(SMALL)
        bert_page.draw_all(model, seed=1)
        for name, parameter in model.named_parameters():
            around = 1.0 if re.search(r"norm\d?\.weight$", name) else 0.0
            assert not (parameter == around).any(), name
            assert abs(parameter.mean().item() - around) < 0.1 * 5 / math.sqrt(
                parameter.numel()
            ), name

    def test_the_seed_decides_the_weights(self):
        models = [BertModel(SMALL) for _ in range(3)]
        for model, seed in zip(models, (4, 4, 5), strict=True):
            bert_page.draw_all(model, seed)
        first, same, other = (model.pooler.dense.weight for model in models)
        assert torch.equal(first, same)
        assert not torch.equal(first, other)

    def test_an_old_checkpoint_has_greek_names_and_a_tensor_too_many(self, tmp_path):
        """As google-bert/bert-base-uncased on the hub: gamma and beta; as many others:
        position_ids."""
        model = BertForPreTraining(SMALL)
        bert_page.draw_all(model, seed=2)
        save_bert(model, tmp_path)
        with safe_open(tmp_path / "model.safetensors", "pt") as file:
            before = set(file.keys())
        bert_page.make_old(tmp_path)
        with safe_open(tmp_path / "model.safetensors", "pt") as file:
            after = set(file.keys())
            assert file.get_tensor("bert.embeddings.position_ids").tolist() == [
                list(range(17))
            ]
        norms = {name for name in before if ".LayerNorm." in name}
        assert len(norms) == 2 * (1 + 2 * 3 + 1)
        greek = {
            name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
            for name in norms
        }
        assert after == before - norms | greek | {"bert.embeddings.position_ids"}
        assert torch.equal(
            load_bert(tmp_path, BertForPreTraining).mlm_head.norm.bias,
            model.mlm_head.norm.bias,
        )

    def test_rows_beyond_the_sequence_learn_nothing(self):
        learned = bert_page.rows_that_learn(BertModel(SMALL), length=7)
        assert learned.tolist() == [True] * 7 + [False] * 10


class TestPadding:
    TEXTS = padding.MaskedTexts(
        torch.randint(5, 31, (6, 9), generator=torch.Generator().manual_seed(0)),
        torch.arange(10, 16),
        place=4,
    )

    def model(self):
        model = BertForPreTraining(SMALL)
        bert_page.draw_all(model, seed=3)
        return model

    def test_with_the_mask_padding_moves_nothing_and_without_it_does(self):
        masked, forgotten = (
            padding.padding_effect(self.model(), self.TEXTS, [1, 8], with_mask)
            for with_mask in (True, False)
        )
        for effect in masked:
            assert effect.moved == pytest.approx([0] * 6, abs=1e-6)
            assert effect.changed == effect.gained == [0] * 6
        few, many = (sum(effect.moved) / 6 for effect in forgotten)
        assert 0.001 < few < many

    def test_moves_are_shares_of_a_state_and_changes_and_gains_are_counted(self):
        """Padding that turns states to their opposites moves them by twice their
        length; the head then predicts 12 and not 10, right for the third text, where it
        was right for the first."""
        model = self.model()

        def turned(ids, attention_mask=None):
            sign = 1 if ids.shape[1] == 9 else -1
            states = sign * torch.arange(1, 10)[:, None].repeat(2, 12)[: ids.shape[1]]
            return BertOutput(states.float().expand(len(ids), -1, -1), None)

        model.bert.forward = turned
        scores = torch.zeros(12, 31)
        scores[0, 10], scores[0, 12] = 1, -1
        model.mlm_head.forward = lambda hidden: hidden @ scores
        (effect,) = padding.padding_effect(model, self.TEXTS, [2], with_mask=False)
        assert effect.moved == pytest.approx([2.0] * 6)
        assert effect.changed == [1] * 6
        assert effect.gained == [-1, 0, 1, 0, 0, 0]

    def test_texts_end_in_sep_have_one_mask_and_short_ones_are_passed_over(self):
        texts = ["it", "it is cut cut cut", "is it cuts ."]
        found = padding.mask_texts(texts, TOKENIZER, number=2, length=6)
        pieces = [TOKENIZER.pieces[i] for i in found.ids[1].tolist()]
        assert pieces == ["[CLS]", "is", "it", "[MASK]", "##s", "[SEP]"]
        assert [TOKENIZER.pieces[i] for i in found.masked.tolist()] == ["cut", "cut"]
        with pytest.raises(ValueError, match="2 texts have 6 tokens or more, but 3"):
            padding.mask_texts(texts, TOKENIZER, number=3, length=6)
