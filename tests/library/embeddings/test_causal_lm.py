"""GPT: encoder blocks under a causal mask, and labels that are the next word (Radford
et al. 2018)."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from expect import refusal
from tiny import tiny_bert
from torch import nn

from course_lib.bert.model import BertConfig, BertModel
from course_lib.embeddings.gpt import (
    CausalLanguageModel,
    LanguageModelBatch,
    causal_loss_sum,
    cross_entropy_sum,
    neighbour_labels,
    unhidden,
)
from course_lib.pretraining.batches import PreTrainingBatches
from course_lib.pretraining.masking import MaskingConfig
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

CONFIG = tiny_bert(
    vocab_size=29,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=20,
    max_position_embeddings=9,
)
LENGTHS = [8, 5, 2]
IDS = torch.randint(1, 29, (3, 8), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(8) < torch.tensor(LENGTHS)[:, None]


def drawn(seed: int = 1) -> CausalLanguageModel:
    """A model in double precision whose parameters all differ from their start."""
    model = CausalLanguageModel(CONFIG).double().eval()
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        nn.init.normal_(
            parameter,
            mean=float(name.endswith("norm.weight")),
            std=0.3,
            generator=generator,
        )
    return model


class TestTheModel:
    def test_it_is_tokens_and_positions_through_our_encoder_blocks_under_a_triangle(
        self,
    ):
        """The blocks with a mask written out, where the model tells them `causal`; in
        BERT they have none."""
        model, triangle = drawn(), torch.ones(8, 8, dtype=torch.bool).tril()
        with torch.no_grad():
            output = model(IDS)
            hidden = model.token.weight[IDS] + model.position.weight[:8]
            torch.testing.assert_close(output.hidden_states[0], hidden)
            for block, found in zip(
                model.blocks, output.hidden_states[1:], strict=True
            ):
                hidden = block(hidden, mask=triangle)
                torch.testing.assert_close(found, hidden)
        assert torch.equal(output.last_hidden_state, output.hidden_states[-1])
        assert len(output.hidden_states) == 4

    @pytest.mark.parametrize("place", [0, 3, 7])
    def test_no_position_sees_a_later_one_and_all_later_ones_see_it(self, place):
        model, other = drawn(), IDS.clone()
        other[:, place] = IDS[:, place] % 28 + 1
        with torch.no_grad():
            one, two = model(IDS), model(other)
        for layer in (1, 2, 3):
            moved = (
                (one.hidden_states[layer] != two.hidden_states[layer])
                .any(dim=2)
                .any(dim=0)
            )
            assert moved.tolist() == [t >= place for t in range(8)]

    def test_padding_on_the_right_changes_nothing_for_the_words_before_it(self):
        model = drawn()
        with torch.no_grad():
            together = model(IDS, MASK).last_hidden_state[1, :5]
            alone = model(IDS[1:2, :5]).last_hidden_state[0]
        torch.testing.assert_close(together, alone)

    def test_it_is_as_large_as_a_bert_of_the_same_sizes_but_for_what_bert_adds(self):
        """BERT has segments, a norm at the input and a pooler; GPT an offset for each
        word of its output layer."""

        def count(model):
            return sum(parameter.numel() for parameter in model.parameters())

        bert = BertModel(CONFIG)
        extra = (
            count(bert.embeddings.segment)
            + count(bert.embeddings.norm)
            + count(bert.pooler)
        )
        assert (
            count(CausalLanguageModel(CONFIG))
            == count(bert) - extra + CONFIG.vocab_size
        )

    def test_what_does_not_fit_is_refused_in_words(self):
        model = CausalLanguageModel(CONFIG)
        with refusal("the sequences are 10 tokens long, but the model has 9 positions"):
            model(torch.ones(1, 10, dtype=torch.long))
        with refusal("wants its padding on the right"):
            model(IDS, MASK.flip(1))

    @pytest.mark.cpu  # on a GPU no id is looked at
    def test_an_id_that_is_in_no_table_is_refused_in_words(self):
        with refusal("input_ids holds 29"):
            CausalLanguageModel(CONFIG)(torch.tensor([[29]]))


class TestTheLoss:
    def test_it_is_minus_the_logarithm_of_the_next_words_probability_word_by_word(self):
        model, total = drawn(), 0.0
        with torch.no_grad():
            states = model(IDS, MASK).last_hidden_state
            for row, length in enumerate(LENGTHS):
                for t in range(length - 1):
                    logits = model.token.weight @ states[row, t] + model.output.bias
                    total -= logits.log_softmax(dim=0)[IDS[row, t + 1]].item()
            loss, count = causal_loss_sum(model, LanguageModelBatch(IDS, MASK))
        assert count == sum(length - 1 for length in LENGTHS)
        assert loss.item() == pytest.approx(total, rel=1e-12)

    def test_the_output_layer_is_asked_only_where_there_is_a_next_word(self):
        asked = []
        head = nn.Linear(12, 29)
        head.register_forward_hook(
            lambda module, inputs, output: asked.append(tuple(output.shape))
        )
        positions, labels = neighbour_labels(LanguageModelBatch(IDS, MASK))
        cross_entropy_sum(head, torch.zeros(3, 8, 12), positions, labels)
        assert asked == [(12, 29)]

    def test_padding_changes_no_gradient(self):
        model, gradients = drawn(), []
        for ids in (IDS, IDS.masked_fill(~MASK, 28)):
            model.zero_grad()
            causal_loss_sum(model, LanguageModelBatch(ids, MASK))[0].backward()
            gradients.append(
                [parameter.grad.clone() for parameter in model.parameters()]
            )
        assert all(map(torch.equal, *gradients))

    def test_before_training_a_guess_costs_the_logarithm_of_the_vocabulary(self):
        torch.manual_seed(0)
        model = CausalLanguageModel(BertConfig.tiny(vocab_size=700))
        loss, count = causal_loss_sum(
            model, LanguageModelBatch(torch.randint(700, (5, 33)))
        )
        assert loss.item() / count == pytest.approx(math.log(700), abs=0.15)


class TestLabels:
    @pytest.mark.parametrize("forward", [True, False])
    def test_each_real_position_asks_for_its_neighbour_if_that_is_real(self, forward):
        positions, labels = neighbour_labels(LanguageModelBatch(IDS, MASK), forward)
        step, expected = 1 if forward else -1, []
        for row, length in enumerate(LENGTHS):
            expected += [
                (row * 8 + t, IDS[row, t + step].item())
                for t in range(length)
                if 0 <= t + step < length
            ]
        assert list(zip(positions.tolist(), labels.tolist(), strict=True)) == expected

    def test_without_padding_only_the_edge_asks_nothing(self):
        assert neighbour_labels(LanguageModelBatch(IDS))[0].tolist() == [
            t for t in range(24) if t % 8 != 7
        ]
        assert neighbour_labels(LanguageModelBatch(IDS), False)[0].tolist() == [
            t for t in range(24) if t % 8 != 0
        ]

    def test_the_batches_are_those_of_the_masked_model_with_nothing_hidden(self):
        """Every token of the corpus comes once in an epoch, in its order, in the
        sequences that BERT reads."""
        vocab = {
            token: index
            for index, token in enumerate([*SPECIAL_TOKENS, *map(str, range(5, 93))])
        }
        corpus = SimpleNamespace(
            ids=np.arange(5, 93),
            sentence_starts=np.arange(0, 89, 4),
            document_starts=np.array([0, 9, 22]),
        )
        data = PreTrainingBatches(
            corpus,
            vocab,
            14,
            3,
            masking=MaskingConfig(rate=0.5),
            next_sentence=False,
            drop_last=False,
        )
        clean, hidden = list(unhidden(data)(2)), list(data(2))
        assert [batch.input_ids.shape for batch in clean] == [
            batch.input_ids.shape for batch in hidden
        ]
        assert sorted(
            i for batch in clean for i in batch.input_ids.flatten().tolist() if i >= 5
        ) == list(range(5, 93))
        assert any(
            (a.input_ids != b.input_ids).any()
            for a, b in zip(clean, hidden, strict=True)
        )
        for a, b in zip(clean, hidden, strict=True):
            assert (
                a.input_ids.flatten()[b.masked_positions].tolist()
                == b.masked_labels.tolist()
            )
