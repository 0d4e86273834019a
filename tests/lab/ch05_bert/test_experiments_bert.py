"""Chapter 5's experiments: a pair for the figure, parameters by part, an old
checkpoint, and what padding does."""

import math
import re

import pytest
import torch
from safetensors import safe_open
from torch import nn

from course_lab.ch05_bert import bert_page, padding
from course_lab.records import Record
from course_lib.bert.files import load_bert, save_bert
from course_lib.bert.model import BertConfig, BertForPreTraining, BertModel
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

TOKENIZER = FastWordPiece([*SPECIAL_TOKENS, "it", "is", "##s", "cut", "."])
SMALL = BertConfig(
    vocab_size=31,
    hidden_size=12,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=20,
    max_position_embeddings=17,
)


class TestPair:
    def test_neighbours_of_one_paragraph_with_a_cut_word_are_found(self):
        documents = [["It is cut. It is cut."], ["It.", "Cuts. It is cut. It cuts."]]
        assert bert_page.short_pair(documents, TOKENIZER, 11, 12) == (
            "It is cut.",
            "It cuts.",
        )

    def test_a_pair_of_more_pieces_does_not_fit(self):
        assert bert_page.short_pair(
            [["It is cut. It cuts. Cuts."]], TOKENIZER, 9, 10
        ) == ("It cuts.", "Cuts.")

    def test_a_corpus_without_one_is_told_of(self):
        with pytest.raises(
            LookupError, match="have 5 to 9 pieces together, one of them a ##piece"
        ):
            bert_page.short_pair([["It is cut."], ["Cuts."]], TOKENIZER, 5, 9)


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

    def test_a_parameter_that_belongs_nowhere_is_refused(self):
        with pytest.raises(
            ValueError, match=r"decoder\.weight is no parameter of a BertForPreTraining"
        ):
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
        with pytest.raises(
            LookupError, match="benchmark-bert holds no ladder of the device 'cuda'"
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
    IDS = torch.randint(5, 31, (6, 9), generator=torch.Generator().manual_seed(0))

    def reader(self):
        model = padding.PlotReader(SMALL, num_plots=4)
        bert_page.draw_all(model, seed=3)
        return model

    def test_with_the_mask_padding_moves_nothing_and_without_it_does(self):
        model = self.reader()
        masked, forgotten = (
            padding.padding_effect(model, self.IDS, [1, 8], with_mask)
            for with_mask in (True, False)
        )
        assert [effect.moved for effect in masked] == pytest.approx([0, 0], abs=1e-6)
        assert [effect.answers for effect in masked] == [0, 0]
        assert 0.001 < forgotten[0].moved < forgotten[1].moved

    def test_a_move_is_measured_against_the_length_of_the_state(self):
        """Padding that turns states to their opposites moves them by twice their
        length, and changes every answer."""
        model = self.reader()

        def turned(ids, attention_mask=None):
            hidden = (
                torch.ones(*ids.shape, 3)
                * torch.arange(1, 10)[:, None].repeat(2, 1)[: ids.shape[1]]
            )
            sign = 1 if ids.shape[1] == 9 else -1
            return sign * hidden, sign * torch.tensor([[2.0, 1.0]]).repeat(len(ids), 1)

        model.forward = turned
        (effect,) = padding.padding_effect(model, self.IDS, [2], with_mask=False)
        assert (effect.moved, effect.answers) == pytest.approx((2.0, 1.0))

    def test_a_cut_sequence_ends_in_sep(self):
        assert padding.cut(torch.tensor([[2, 8, 9, 7, 6]]), 4, sep_id=3).tolist() == [
            [2, 8, 9, 3]
        ]

    @pytest.mark.slow
    def test_a_reader_learns_the_plots_of_stories(self):
        from course_lib.data import load

        stories = padding.prepare(
            load("stories", source="embedded"), number=1000, vocab_size=1500
        )
        assert stories.train_ids.shape == (1000, padding.LONGEST)
        assert stories.test_ids.shape == (500, padding.LONGEST)
        assert stories.vocab_size == 1500
        reader = padding.train_reader(stories, seed=0, steps=60)
        right = padding.accuracy(
            reader,
            padding.cut(stories.test_ids, 24, stories.sep_id),
            stories.test_plots,
        )
        share = stories.test_plots.bincount().max().item() / len(stories.test_plots)
        assert right > share + 0.2

    def test_stories_too_short_to_cut_are_refused(self):
        from datasets import Dataset, DatasetDict

        rows = {"paragraphs": [["It is."]], "module": ["gift"]}
        stories = DatasetDict(
            train=Dataset.from_dict(rows), test=Dataset.from_dict(rows)
        )
        with pytest.raises(
            ValueError, match=r"1 stories have fewer than 48 pieces, e\.g\. 'It is\.'"
        ):
            padding.prepare(stories, vocab_size=30)

    def test_the_head_reads_cls(self):
        model = self.reader()
        hidden, logits = model(self.IDS)
        torch.testing.assert_close(
            logits, nn.functional.linear(hidden[:, 0], *model.head.output.parameters())
        )
