"""BERT beside its paper: sizes, input, masks, heads, initialisation; what it equals is
in test_bert_agreement.py."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from bert_peer import lively
from cases import for_each
from expect import assert_near, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_bert
from torch import Tensor, nn

from course_lib.attention.weights import watch_attention
from course_lib.bert.config import BertConfig
from course_lib.bert.layers import (
    BertEmbeddings,
    BertPooler,
    MaskedLanguageModelHead,
    check_inputs,
    initialise,
)
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.transformer.blocks import EncoderBlock, layer_norm

# All sizes differ, so that a transposed pair shows.
B, T, V, D, H = 3, 7, 31, 12, 3
CONFIG = tiny_bert(
    vocab_size=V,
    hidden_size=D,
    num_attention_heads=H,
    intermediate_size=17,
    max_position_embeddings=11,
    type_vocab_size=4,
    dropout=0.1,
)


def ids(*shape: int, high: int = V, seed: int = 0) -> Tensor:
    return torch.randint(1, high, shape, generator=torch.Generator().manual_seed(seed))


def padding(lengths: list[int], length: int = T) -> Tensor:
    return torch.arange(length) < torch.tensor(lengths)[:, None]


class TestSizes:
    @for_each(
        ("size", "layers", "width", "heads", "with_pooler", "with_heads"),
        [
            # Turc et al. 2019, table 1, say 4.4, 11.3, 29.1, 41.7 and 110.1 million,
            # the output layer's bias included.
            ("tiny", 2, 128, 2, 4_385_920, 4_433_468),
            ("mini", 4, 256, 4, 11_170_560, 11_267_900),
            ("small", 4, 512, 8, 28_763_648, 29_058_876),
            ("medium", 8, 512, 8, 41_373_184, 41_668_412),
            (
                "base",
                12,
                768,
                12,
                109_482_240,
                110_106_428,
            ),  # Devlin et al. 2019, section 3: 110M
            ("large", 24, 1024, 16, 335_141_888, 336_226_108),  # there: 340M
        ],
    )
    def test_the_published_sizes_have_exactly_these_parameters(
        self, size, layers, width, heads, with_pooler, with_heads
    ):
        config = getattr(BertConfig, size)()
        assert (
            config.num_hidden_layers,
            config.hidden_size,
            config.num_attention_heads,
        ) == (layers, width, heads)
        with torch.device("meta"):
            model = BertForPreTraining(config)
        assert (
            sum(parameter.numel() for parameter in model.bert.parameters())
            == with_pooler
        )
        assert sum(parameter.numel() for parameter in model.parameters()) == with_heads

    def test_a_size_takes_changes(self):
        config = BertConfig.mini(vocab_size=8192, hidden_dropout_prob=0.0)
        assert (
            config.vocab_size,
            config.hidden_dropout_prob,
            config.intermediate_size,
        ) == (8192, 0.0, 1024)
        assert BertConfig.mini(intermediate_size=300).intermediate_size == 300

    @for_each(
        ("change", "message"),
        [
            ({"num_hidden_layers": 0}, "num_hidden_layers is 0; it must be at least 1"),
            ({"type_vocab_size": -2}, "type_vocab_size is -2; it must be at least 1"),
            (
                {"num_attention_heads": 5},
                "hidden_size 768 does not divide into num_attention_heads=5",
            ),
            (
                {"hidden_act": "gelu_new"},
                "hidden_act is 'gelu_new'; choose one of relu, gelu",
            ),
            (
                {"hidden_dropout_prob": 1.0},
                r"hidden_dropout_prob is 1\.0; it is a share",
            ),
            (
                {"attention_probs_dropout_prob": -0.1},
                r"attention_probs_dropout_prob is -0\.1; it is a share",
            ),
            (
                {"layer_norm_eps": 0.0},
                r"layer_norm_eps is 0\.0; it must be a number above 0",
            ),
            (
                {"initializer_range": float("nan")},
                "initializer_range is nan; it must be a number above 0",
            ),
            (
                {"pad_token_id": 30_522},
                "pad_token_id is 30522, but the vocabulary has ids 0 to 30521",
            ),
        ],
    )
    def test_a_setting_that_cannot_be_is_refused_in_words(self, change, message):
        with refusal(message):
            BertConfig(**change)


class TestInput:
    """Devlin et al. 2019, figure 2: the sum of three embeddings."""

    def test_is_the_normed_sum_of_token_position_and_segment(self):
        model = lively(CONFIG, BertModel).eval().embeddings
        tokens, segments = torch.tensor([[5, 30, 5]]), torch.tensor([[0, 3, 1]])
        token, position, segment = (
            layer.weight for layer in (model.token, model.position, model.segment)
        )
        summed = torch.stack(
            [
                token[5] + position[0] + segment[0],
                token[30] + position[1] + segment[3],
                token[5] + position[2] + segment[1],
            ]
        )
        expected = layer_norm(
            summed[None], model.norm.weight, model.norm.bias, eps=1e-12
        )
        assert_near(model(tokens, segments), expected, 1e-12)

    def test_without_segments_all_tokens_are_of_the_first(self):
        model, tokens = lively(CONFIG, BertModel).eval(), ids(B, T)
        zeros = torch.zeros_like(tokens)
        assert torch.equal(
            model(tokens).last_hidden_state,
            model(tokens, None, zeros).last_hidden_state,
        )
        others = model(tokens, None, zeros + 1).last_hidden_state
        assert (model(tokens).last_hidden_state - others).abs().max() > 0.1

    def test_every_position_and_every_token_counts(self):
        """Two sequences of the same tokens in another order differ at every position,
        and so do two of other tokens."""
        model, tokens = lively(CONFIG, BertModel).eval(), ids(1, T)
        first = model(tokens).last_hidden_state
        for other in (
            tokens.flip(1),
            torch.cat([tokens[:, :-1], tokens[:, -1:] % (V - 1) + 1], dim=1),
        ):
            assert (
                (model(other).last_hidden_state - first).abs().amax(dim=-1) > 1e-3
            ).all()

    def test_the_embedding_of_padding_is_zero_and_learns_nothing_from_the_input(self):
        layer = BertEmbeddings(BertConfig.tiny(vocab_size=V, pad_token_id=4))
        layer.apply(lambda module: initialise(module, std=0.02))
        assert layer.token.weight[4].abs().max() == 0
        layer(torch.tensor([[4, 3]])).square().sum().backward()
        assert layer.token.weight.grad[4].abs().max() == 0
        assert layer.token.weight.grad[3].abs().max() > 0

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"input_ids": ids(B, 12)},
                "the sequences are 12 tokens long, but this BERT has 11 positions",
            ),
            (
                {"attention_mask": torch.zeros(B, T).bool()},
                "the mask forbids every key for 3 of the queries",
            ),
        ],
    )
    def test_an_input_that_cannot_be_is_refused_in_words(self, changes, message):
        with refusal(message):
            BertForPreTraining(CONFIG)(**{"input_ids": ids(B, T), **changes})

    # on a GPU no id is looked at, and one that is in no table ends all computing in the
    # process
    @pytest.mark.cpu
    @for_each(
        ("changes", "message"),
        [
            (
                {"input_ids": ids(B, T) + V},
                r"input_ids holds \d+, but goes from 0 to 30; take the tokenizer",
            ),
            ({"input_ids": -ids(B, T)}, r"input_ids holds -\d+, but goes from 0 to 30"),
            (
                {"token_type_ids": torch.full((B, T), 4)},
                "token_type_ids holds 4, but goes from 0 to 3; number the seg",
            ),
            (
                {"masked_positions": torch.tensor([0, B * T])},
                "masked_positions holds 21, but goes from 0 to 20",
            ),
            (
                {"masked_positions": torch.tensor([-1])},
                "masked_positions holds -1, but goes from 0 to 20",
            ),
        ],
    )
    def test_an_id_that_is_in_no_table_is_refused_in_words(self, changes, message):
        with refusal(message):
            BertForPreTraining(CONFIG)(**{"input_ids": ids(B, T), **changes})

    @pytest.mark.parametrize("name", ["attention_mask", "token_type_ids"])
    def test_a_mask_or_segments_of_another_shape_are_refused_in_words(self, name):
        """Without the tests' checker of shapes too: torch would stretch one row over
        all."""
        given = {"attention_mask": None, "token_type_ids": None, name: ids(1, T)}
        with refusal(rf"{name} is \(1, 7\), but input_ids is \(3, 7\)"):
            check_inputs(CONFIG, ids(B, T), **given)

    def test_segments_that_are_no_whole_numbers_are_refused_in_words(self):
        with refusal(r"token_type_ids is torch\.float32; pass whole numbers"):
            check_inputs(CONFIG, ids(B, T), None, torch.zeros(B, T))


class TestMask:
    @settings(max_examples=25, deadline=None)
    @given(
        lengths=st.lists(st.integers(1, T), min_size=B, max_size=B),
        extra=st.integers(0, 4),
        seed=st.integers(0, 99),
    )
    def test_padding_changes_nothing(self, lengths, extra, seed):
        """Neither which ids stand there nor how many: states of tokens, pooled states
        and logits stay as they are."""
        model = lively(CONFIG).eval()
        tokens, mask = ids(B, T, seed=seed), padding(lengths)
        expected = model.bert(tokens, mask)
        longer = ids(B, T + extra, seed=seed + 1)
        longer[:, :T] = tokens.where(mask, longer[:, :T])
        found = model.bert(longer, padding(lengths, T + extra))
        torch.testing.assert_close(
            found.last_hidden_state[:, :T][mask], expected.last_hidden_state[mask]
        )
        torch.testing.assert_close(found.pooler_output, expected.pooler_output)

    def test_a_sequence_alone_gives_what_it_gives_padded_beside_others(self):
        model = lively(CONFIG, BertModel).eval()
        tokens = ids(B, T)
        mask = padding([7, 3, 1])
        together = model(tokens, mask, tokens % 4).last_hidden_state
        for row, length in enumerate([7, 3, 1]):
            alone = model(
                tokens[row : row + 1, :length], None, tokens[row : row + 1, :length] % 4
            ).last_hidden_state
            assert_near(together[row, :length], alone[0], 1e-12)

    def test_no_mask_is_a_mask_of_ones(self):
        model = lively(CONFIG, BertModel).eval()
        tokens = ids(B, T)
        mask = padding([7, 3, 1])
        expected = model(tokens, mask).last_hidden_state
        unpadded = model(tokens).last_hidden_state
        assert_near(
            model(tokens, torch.ones_like(mask)).last_hidden_state, unpadded, 1e-12
        )
        assert (unpadded - expected).abs().max() > 0.05

    def test_weights_show_both_directions_and_no_padding(self):
        mask = padding([7, 3, 1])
        model = lively(CONFIG, BertModel).eval()
        with watch_attention(model) as kept:
            model(ids(B, T), mask)
        assert list(kept) == ["blocks.0.attention", "blocks.1.attention"]
        for (weights,) in kept.values():
            assert weights.shape == (B, H, T, T)
            torch.testing.assert_close(
                weights.sum(-1), torch.ones(B, H, T, dtype=weights.dtype)
            )
            assert (weights.transpose(1, 3)[~mask] == 0).all()  # (B, keys, queries, H)
            assert (weights[0] > 0).all(), (
                "every token sees every token, before and after it"
            )


class TestStates:
    def test_hidden_states_begin_with_the_embeddings_and_end_with_the_last(self):
        model, tokens = lively(CONFIG, BertModel).eval(), ids(B, T)
        output = model(tokens, return_hidden_states=True)
        assert len(output.hidden_states) == 1 + CONFIG.num_hidden_layers
        assert torch.equal(output.hidden_states[0], model.embeddings(tokens))
        assert torch.equal(
            output.hidden_states[1], model.blocks[0](output.hidden_states[0])
        )
        assert torch.equal(output.hidden_states[-1], output.last_hidden_state)
        assert model(tokens).hidden_states is None

    def test_the_encoder_is_the_transformer_s_post_norm_and_gelu(self):
        """Devlin et al. 2019, appendix A.2; no dropout between the feed-forward's
        layers, as in their code."""
        for block in BertModel(
            dataclasses.replace(CONFIG, attention_probs_dropout_prob=0.2)
        ).blocks:
            assert type(block) is EncoderBlock
            assert not block.pre_norm
            assert block.feed_forward.activation is F.gelu
            dropouts = (
                block.attention.dropout.p,
                block.feed_forward.dropout.p,
                block.dropout.p,
            )
            assert dropouts == (0.2, 0.0, 0.1)
            assert block.norm2.eps == 1e-12

    def test_layers_share_nothing(self):
        first, second = BertModel(CONFIG).blocks
        assert not {id(x) for x in first.parameters()} & {
            id(x) for x in second.parameters()
        }
        assert not torch.equal(
            first.attention.query.weight, second.attention.query.weight
        )

    def test_the_pooler_reads_the_first_position_through_tanh(self):
        pooler = BertPooler(CONFIG)
        hidden = torch.randn(B, T, D, generator=torch.Generator().manual_seed(1))
        expected = torch.tanh(hidden[:, 0] @ pooler.dense.weight.T + pooler.dense.bias)
        torch.testing.assert_close(pooler(hidden), expected)


class TestHeads:
    def test_the_token_head_is_written_out_in_the_paper_s_order(self):
        """Phuong and Hutter 2022, algorithm 9, lines 10 to 12: GELU, layer norm, the
        embedding, an offset."""
        model = lively(CONFIG).eval()
        head, hidden = model.mlm_head, model.bert(ids(1, T)).last_hidden_state[0]
        inner = hidden @ head.dense.weight.T + head.dense.bias
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
        inner = layer_norm(inner, head.norm.weight, head.norm.bias, eps=1e-12)
        expected = inner @ model.bert.embeddings.token.weight.T + head.output.bias
        assert_near(head(hidden), expected, 1e-12)

    def test_the_output_layer_is_the_token_embedding_itself(self):
        model = BertForPreTraining(CONFIG)
        assert model.mlm_head.output.weight is model.bert.embeddings.token.weight
        embedding = nn.Embedding(V, D)
        assert (
            MaskedLanguageModelHead(CONFIG, embedding).output.weight is embedding.weight
        )

    @for_each("positions", [[0], [20, 3, 3, 8], list(range(21)), []])
    def test_logits_at_chosen_positions_are_those_of_all_positions(self, positions):
        """With their gradients: the logits elsewhere, which nobody asks for, are the
        only difference."""
        model, tokens, mask = lively(CONFIG).eval(), ids(B, T), padding([7, 3, 7])
        chosen, results = torch.tensor(positions, dtype=torch.long), []
        for masked_positions in (None, chosen):
            model.zero_grad()
            output = model(tokens, mask, masked_positions=masked_positions)
            logits = output.prediction_logits
            if masked_positions is None:
                assert logits.shape == (B, T, V)
                logits = logits.flatten(0, 1)[chosen]
            assert logits.shape == (len(positions), V)
            (
                logits.square().sum() + output.seq_relationship_logits.square().sum()
            ).backward()
            results.append(
                [
                    logits,
                    output.seq_relationship_logits,
                    *(x.grad for x in model.parameters()),
                ]
            )
        for at_all, at_chosen in zip(*results, strict=True):
            assert_near(at_chosen, at_all, 1e-10)

    def test_the_next_sentence_is_guessed_from_the_pooled_state(self):
        model, tokens = lively(CONFIG).eval(), ids(B, T)
        pooled = model.bert(tokens).pooler_output
        expected = pooled @ model.nsp_head.output.weight.T + model.nsp_head.output.bias
        assert_near(model(tokens).seq_relationship_logits, expected, 1e-12)


class TestInitialisation:
    def test_weights_are_normal_and_cut_off_at_two_deviations(self):
        """Devlin et al.'s code: tf.truncated_normal_initializer(0.02); what is left
        deviates by 0.8796 of that."""
        torch.manual_seed(3)
        model = BertForPreTraining(
            BertConfig.tiny(vocab_size=2000, initializer_range=0.3)
        )
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                assert (module.weight == 1).all()
                assert (module.bias == 0).all()
            if isinstance(module, nn.Linear | nn.Embedding):
                weight = (
                    module.weight[1:]
                    if module is model.bert.embeddings.token
                    else module.weight
                )
                assert weight.abs().max() <= 0.6
                if weight.numel() > 10_000:
                    assert weight.std().item() == pytest.approx(0.3 * 0.8796, rel=0.02)
                    assert abs(weight.mean().item()) < 0.01
            if isinstance(module, nn.Linear):
                assert (module.bias == 0).all()
        assert (model.mlm_head.output.bias == 0).all()

    @for_each("seed", range(3))
    @for_each("size", ["tiny", "mini"])
    def test_at_the_start_the_loss_is_that_of_not_knowing(self, size, seed):
        """ln|V| + ln 2: each token as likely as any, either guess about the next
        sentence as likely.

        Above it by half the variance of the logits (a softmax of normal numbers), D ·
        (0.8796 · 0.02)² / 2, which is 0.020 at D = 128 and 0.040 at D = 256. Over ten
        seeds the rest has a mean of -0.004 and a standard deviation of 0.016.
        """
        torch.manual_seed(seed)
        config = getattr(BertConfig, size)(vocab_size=8192)
        model = BertForPreTraining(config)
        tokens = ids(60, 10, high=8192, seed=seed)
        with torch.no_grad():
            output = model(tokens, None, (torch.arange(10) > 5).long().expand(60, 10))
            token_loss = F.cross_entropy(
                output.prediction_logits.flatten(0, 1),
                ids(600, high=8192, seed=seed + 9),
            )
            pair_loss = F.cross_entropy(
                output.seq_relationship_logits, torch.tensor([0, 1] * 30)
            )
        above = config.hidden_size * (0.8796 * 0.02) ** 2 / 2
        assert token_loss.item() == pytest.approx(math.log(8192) + above, abs=0.035)
        assert pair_loss.item() == pytest.approx(math.log(2), abs=0.03)
        assert (token_loss + pair_loss).item() == pytest.approx(
            math.log(8192) + math.log(2), rel=0.01
        )

    def test_the_same_seed_gives_the_same_weights(self):
        models = []
        for _ in range(2):
            torch.manual_seed(5)
            models.append(BertForPreTraining(CONFIG).state_dict())
        assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_a_step_on_one_batch_lowers_its_loss():
    """Everything is connected: the whole of pre-training in miniature, both losses
    down."""
    torch.manual_seed(0)
    model = BertForPreTraining(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    tokens = ids(B, T)
    positions = torch.tensor([1, 9, 16])
    labels = torch.tensor([30, 7, 2])
    losses = []
    for _ in range(60):
        output = model(tokens, padding([7, 5, 3]), masked_positions=positions)
        parts = (
            F.cross_entropy(output.prediction_logits, labels),
            F.cross_entropy(output.seq_relationship_logits, torch.tensor([0, 1, 1])),
        )
        losses.append([part.item() for part in parts])
        optimizer.zero_grad()
        sum(parts).backward()
        optimizer.step()
    assert losses[0][0] == pytest.approx(math.log(V), abs=0.15)
    assert max(losses[-1]) < 0.3
