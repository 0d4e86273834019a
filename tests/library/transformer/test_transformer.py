"""The whole Transformer: against torch.nn with the same weights, and blind to padding
and to words not yet written."""

import math

import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from expect import assert_near, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from course_lab.peers import gradient_pairs, peer
from course_lib.attention.masks import causal_mask, padding_mask
from course_lib.attention.weights import watch_attention
from course_lib.transformer.model import Transformer, TransformerConfig
from course_lib.transformer.positions import sinusoidal_positions

# All different: both vocabularies, width, heads, layers, hidden layer, batch, source
# length, target length.
SIZES = {
    "source_vocab": 13,
    "target_vocab": 11,
    "dim": 12,
    "num_heads": 3,
    "num_layers": 2,
    "hidden_dim": 17,
}
B, S, T, H = 4, 7, 5, 3
PRECISIONS = [(torch.float64, 1e-10), (torch.float32, 1e-5)]
precisions = pytest.mark.parametrize(
    ("dtype", "tolerance"), PRECISIONS, ids=["float64", "float32"]
)
norms = pytest.mark.parametrize("norm", ["post", "pre"])
VARIANTS = [
    {},
    {"norm": "pre"},
    {"norm": "none", "residual": False},
    {"positions": "learned"},
    {"positions": "none"},
    {"share_embeddings": True, "target_vocab": 13},
    {"tie_output": False},
]
variants = pytest.mark.parametrize(
    "changes",
    VARIANTS,
    ids=lambda changes: ",".join(map(str, changes.values())) or "paper",
)


def make(dtype: torch.dtype = torch.float64, **changes) -> Transformer:
    """A model in which every parameter is random: an initialisation to 0 or 1 would
    hide what is left out."""
    torch.manual_seed(1)
    model = Transformer(TransformerConfig(**{**SIZES, **changes})).to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


@pytest.fixture
def batch():
    """Sentences of unequal length; what stands in the padding is a word like
    any other."""
    generator = torch.Generator().manual_seed(0)
    return {
        "source_ids": torch.randint(1, 13, (B, S), generator=generator),
        "source_lengths": torch.tensor([4, 7, 1, 6]),
        "target_ids": torch.randint(1, 11, (B, T), generator=generator),
    }


def embedded(embedding: nn.Embedding, ids: Tensor) -> Tensor:
    """Vaswani et al. 2017, sections 3.4 and 3.5: rows times the root of the width, plus
    positions."""
    positions = sinusoidal_positions(ids.shape[1], embedding.embedding_dim).to(
        embedding.weight.dtype
    )
    return embedding(ids) * math.sqrt(embedding.embedding_dim) + positions


class TestAgainstTorch:
    @precisions
    @norms
    @pytest.mark.parametrize("activation", ["relu", "gelu"])
    @pytest.mark.parametrize("padded", [True, False], ids=["padding", "no padding"])
    def test_logits_and_every_gradient_are_those_of_torch(
        self, norm, activation, padded, dtype, tolerance, batch
    ):
        """torch's module stays in training mode (without dropout), or its fast path
        would have no gradients."""
        ours = make(dtype, norm=norm, activation=activation).train()
        theirs = peer(ours)
        lengths = batch["source_lengths"] if padded else torch.full((B,), S)
        forbidden = ~padding_mask(lengths, max_length=S)
        logits = ours(batch["source_ids"], lengths, batch["target_ids"])
        direction = torch.randn(
            logits.shape, dtype=dtype, generator=torch.Generator().manual_seed(2)
        )
        (logits * direction).sum().backward()
        gradients = {
            name: parameter.grad.clone() for name, parameter in ours.named_parameters()
        }

        ours.zero_grad()
        hidden = theirs(
            embedded(ours.encoder.embed.embedding, batch["source_ids"]),
            embedded(ours.embed.embedding, batch["target_ids"]),
            tgt_mask=~causal_mask(T, logits.device),
            src_key_padding_mask=forbidden if padded else None,
            memory_key_padding_mask=forbidden if padded else None,
        )
        expected = hidden @ ours.embed.embedding.weight.T + ours.output.bias
        assert_near(logits, expected, tolerance, tolerance)
        (expected * direction).sum().backward()

        compared = set()
        if logits.is_cuda:  # which adds in another order in float32
            tolerance = max(tolerance, 1e-4 * (dtype == torch.float32))
        for name, _, its in gradient_pairs(ours, theirs):
            torch.testing.assert_close(
                gradients[name],
                its,
                rtol=tolerance,
                atol=tolerance,
                msg=lambda m, n=name: n + m,
            )
            compared.add(name)
        for name, parameter in ours.named_parameters():
            # embeddings and output: torch has none, so ours took part in its graph
            if name not in compared:
                assert_near(gradients[name], parameter.grad, tolerance, tolerance)
                compared.add(name)
        assert compared == gradients.keys()

    @precisions
    @norms
    @pytest.mark.parametrize("causal", [False, True])
    def test_the_encoder_alone_is_torch_s_stack(
        self, norm, causal, dtype, tolerance, batch
    ):
        ours = make(dtype, norm=norm).encoder.train()
        theirs = peer(ours)
        mask = padding_mask(batch["source_lengths"])
        output = ours(batch["source_ids"], mask[:, None], causal=causal)
        expected = theirs(
            embedded(ours.embed.embedding, batch["source_ids"]),
            mask=~causal_mask(S, mask.device) if causal else None,
            src_key_padding_mask=~mask,
        )
        assert_near(output, expected, tolerance, tolerance)

    @pytest.mark.cpu  # --device computes through Python, where torch leaves it
    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
    def test_torch_s_fast_path_for_inference_gives_the_same(self, batch, monkeypatch):
        """It leaves out the padding and runs each layer as one kernel, if the number of
        heads is even."""
        calls, kernel = [], torch._transformer_encoder_layer_fwd
        monkeypatch.setattr(
            torch,
            "_transformer_encoder_layer_fwd",
            lambda *args: (calls.append(1), kernel(*args))[1],
        )
        ours = make(num_heads=4).encoder
        theirs, mask = peer(ours), padding_mask(batch["source_lengths"])
        with torch.inference_mode():
            hidden = embedded(ours.embed.embedding, batch["source_ids"])
            expected = theirs(hidden, src_key_padding_mask=~mask)
            output = ours(batch["source_ids"], mask[:, None])
        assert len(calls) == SIZES["num_layers"]
        assert_near(output[mask], expected[mask], 1e-10)

    @norms
    def test_dropout_falls_where_torch_lets_it_fall(self, norm):
        """One sentence: of several, torch lays out the words in another order in
        memory, and draws in that order."""
        ours = make(norm=norm, dropout=0.3).encoder.train()
        theirs, ids = peer(ours), torch.tensor([[3, 1, 12, 4, 4]])
        torch.manual_seed(8)
        output = ours(ids)
        torch.manual_seed(8)
        expected = theirs(F.dropout(embedded(ours.embed.embedding, ids), 0.3))
        assert_near(output, expected, 1e-12)


class TestWords:
    @variants
    def test_a_later_word_cannot_change_an_earlier_prediction(self, changes, batch):
        """Bit for bit: same shapes, so the same sums in the same order, in which a
        masked weight is exactly 0."""
        model = make(**changes)
        before = model(**batch)
        changed = batch["target_ids"].clone()
        changed[:, 3:] = (changed[:, 3:] + 1) % 11
        after = model(**{**batch, "target_ids": changed})
        assert torch.equal(after[:, :3], before[:, :3])
        moved = (after[:, 3:] != before[:, 3:]).any(dim=-1)
        # Without residual connections all that passes cross-attention to a single
        # source word is that word.
        blind = (batch["source_lengths"] == 1) & (changes.get("residual") is False)
        assert torch.equal(moved, ~blind[:, None].expand_as(moved))

    @variants
    def test_padding_changes_nothing_whatever_it_holds(self, changes, batch):
        model = make(**changes)
        logits = model(**batch)
        padding = torch.arange(S) >= batch["source_lengths"][:, None]
        poisoned = {**batch, "source_ids": batch["source_ids"].masked_fill(padding, 12)}
        assert not torch.equal(poisoned["source_ids"], batch["source_ids"])
        assert torch.equal(model(**poisoned), logits)
        longer = {**batch, "source_ids": F.pad(batch["source_ids"], (0, 6), value=3)}
        assert_near(model(**longer), logits, 1e-12)

    @variants
    def test_a_sentence_is_translated_the_same_alone_and_in_a_batch(
        self, changes, batch
    ):
        model = make(**changes)
        together = model(**batch)
        for row, length in enumerate(batch["source_lengths"]):
            alone = model(
                batch["source_ids"][row : row + 1, :length],
                length[None],
                batch["target_ids"][row : row + 1],
            )
            assert_near(alone[0], together[row], 1e-12)

    @pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned"])
    def test_the_order_of_words_counts_exactly_where_there_are_positions(
        self, positions, batch
    ):
        encoder = make(positions=positions).encoder
        order = torch.tensor([3, 0, 6, 4, 1, 2, 5])
        before = encoder(batch["source_ids"])
        after = encoder(batch["source_ids"][:, order])
        if positions == "none":
            assert_near(after, before[:, order], 1e-12)
        else:
            assert (after - before[:, order]).abs().amax(-1).min() > 1e-3

    @settings(max_examples=25, deadline=None)
    @given(
        seed=st.integers(0, 9999), length=st.integers(1, S), cut=st.integers(0, T - 1)
    )
    def test_whatever_the_words_neither_padding_nor_future_is_read(
        self, seed, length, cut
    ):
        generator = torch.Generator().manual_seed(seed)
        draw = lambda *shape: torch.randint(0, 11, shape, generator=generator)
        model, lengths = make(), torch.tensor([length, S])
        source, target, other = draw(2, S), draw(2, T), draw(2, T)
        before = model(source, lengths, target)
        padded = torch.where(padding_mask(lengths), source, draw(2, S))
        mixed = torch.cat([target[:, :cut], other[:, cut:]], dim=1)
        assert torch.equal(model(padded, lengths, mixed)[:, :cut], before[:, :cut])


class TestAttentionWeights:
    def test_every_layer_and_kind_of_attention_comes_back_and_sums_to_one(self, batch):
        model = make()
        with watch_attention(model) as weights:
            logits = model(**batch)
        assert_near(logits, model(**batch), 1e-12)
        layers = range(SIZES["num_layers"])
        shapes = {f"encoder.blocks.{n}.attention": (B, H, S, S) for n in layers}
        shapes |= {f"blocks.{n}.attention": (B, H, T, T) for n in layers}
        shapes |= {f"blocks.{n}.cross_attention": (B, H, T, S) for n in layers}
        assert weights.keys() == shapes.keys()
        padding = ~padding_mask(batch["source_lengths"])[:, None, None]
        for name, shape in shapes.items():
            (found,) = weights[name]
            assert found.shape == shape
            assert (found.sum(-1) - 1).abs().max() < 1e-12
            if shape == (B, H, T, T):
                assert (found.triu(1) == 0).all()
            else:
                assert (found[padding.expand(shape)] == 0).all()
                assert (found[~padding.expand(shape)] > 0).all()

    def test_each_block_s_weights_are_its_own(self, batch):
        model = make()
        with watch_attention(model) as weights:
            model(**batch)
        mask = padding_mask(batch["source_lengths"])[:, None]
        hidden = model.embed(batch["target_ids"])
        memory = model.encoder(batch["source_ids"], mask)
        for number, block in enumerate(model.blocks):
            with watch_attention(block) as expected:
                hidden = block(hidden, memory, mask)
            for name, (found,) in expected.items():
                assert_near(weights[f"blocks.{number}.{name}"][0], found, 1e-12)


class TestParameters:
    def test_their_number_is_the_sum_of_the_layers_by_hand(self):
        source, target, dim, _, layers, hidden = SIZES.values()
        attention = 4 * dim * dim + 4 * dim
        feed_forward = 2 * dim * hidden + hidden + dim
        encoder = attention + feed_forward + 4 * dim
        decoder = 2 * attention + feed_forward + 6 * dim
        expected = {
            "post": source * dim + target * dim + target + layers * (encoder + decoder),
            "none": (
                source * dim
                + target * dim
                + target
                + layers * (encoder + decoder - 10 * dim)
            ),
        }
        expected["pre"] = expected["post"] + 4 * dim  # a last norm on each side
        for norm, count in expected.items():
            assert (
                sum(parameter.numel() for parameter in make(norm=norm).parameters())
                == count
            )
        untied = sum(
            parameter.numel() for parameter in make(tie_output=False).parameters()
        )
        assert untied == expected["post"] + target * dim
        shared = sum(
            parameter.numel()
            for parameter in make(
                share_embeddings=True, target_vocab=source
            ).parameters()
        )
        assert shared == expected["post"] - target * dim + (source - target)

    def test_the_published_base_model_has_63_million(self):
        """Vaswani et al. 2017, table 3, says 65 million for "about 37,000" shared
        tokens."""
        with torch.device("meta"):
            config = TransformerConfig(
                37_000, 37_000, 512, 8, 6, 2048, share_embeddings=True
            )
            count = sum(
                parameter.numel() for parameter in Transformer(config).parameters()
            )
        assert round(count / 1e6, 1) == 63.1

    def test_words_begin_as_large_as_positions(self):
        """Times √D, an embedding has variance 1; sines and cosines have 1/2."""
        torch.manual_seed(0)
        model = Transformer(
            TransformerConfig(400, 300, dim=50, num_heads=1, tie_output=False)
        )
        for embedding in (model.encoder.embed.embedding, model.embed.embedding):
            assert (50**0.5 * embedding.weight).std().item() == pytest.approx(
                1, rel=0.03
            )

    @pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned"])
    def test_both_sides_have_the_positions_that_were_chosen(self, positions):
        model = make(positions=positions)
        for embed in (model.encoder.embed, model.embed):
            assert (embed.table is not None, embed.learned is not None) == (
                positions == "sinusoidal",
                positions == "learned",
            )

    def test_layers_do_not_share_weights(self):
        model = make()
        for blocks in (model.encoder.blocks, model.blocks):
            first, second = (dict(block.named_parameters()) for block in blocks)
            assert all(first[name] is not second[name] for name in first)

    def test_tied_and_shared_embeddings_are_one_parameter_with_the_sum_of_gradients(
        self, batch
    ):
        model = make(share_embeddings=True, target_vocab=13)
        assert (
            model.encoder.embed.embedding.weight
            is model.embed.embedding.weight
            is model.output.weight
        )
        apart = make(share_embeddings=False, target_vocab=13, tie_output=False)
        apart.load_state_dict(model.state_dict())
        for each in (model, apart):
            each(**batch).square().sum().backward()
        parts = [
            apart.encoder.embed.embedding.weight,
            apart.embed.embedding.weight,
            apart.output.weight,
        ]
        assert all(part.grad.abs().max() > 0 for part in parts)
        assert_near(
            model.output.weight.grad, sum(part.grad for part in parts), 1e-10, 1e-10
        )

    def test_every_parameter_gets_a_gradient(self, batch):
        for changes in VARIANTS:
            model = make(**changes)
            model(**batch).square().sum().backward()
            silent = [
                name
                for name, parameter in model.named_parameters()
                if parameter.grad is None or not parameter.grad.any()
            ]
            assert silent == []

    def test_dropout_is_active_in_training_and_only_there(self, batch):
        model = make(dropout=0.5)
        assert torch.equal(model(**batch), model(**batch))
        model.train()
        assert not torch.equal(model(**batch), model(**batch))
        for embed, ids in (
            (model.encoder.embed, batch["source_ids"]),
            (model.embed, batch["target_ids"]),
        ):
            assert (embed(ids) == 0).any(), (
                "on the sum of word and position too (Vaswani et al. 2017, section 5.4)"
            )


class TestErrors:
    @for_each(
        ("change", "message"),
        [
            (
                {"num_heads": 5},
                r"12, do not divide into num_heads=5; choose one of 1, 2, 3, 4, 6, 12",
            ),
            (
                {"dim": 9},
                (
                    "dim is 9, but sines and cosines come in pairs; choose an even"
                    " number, e.g. 10"
                ),
            ),
            *(
                ({name: 0}, f"{name} is 0; it must be at least 1")
                for name in (
                    "source_vocab",
                    "target_vocab",
                    "dim",
                    "num_heads",
                    "num_layers",
                    "hidden_dim",
                    "max_length",
                )
            ),
            (
                {"dropout": 1.0},
                r"dropout is 1\.0; it is a share, at least 0 and below 1",
            ),
            (
                {"positions": "rotary"},
                "positions is 'rotary'; choose one of sinusoidal, learned, none",
            ),
            ({"norm": "batch"}, "norm is 'batch'; choose one of post, pre, none"),
            ({"activation": "tanh"}, "activation is 'tanh'; choose one of relu, gelu"),
            (
                {"share_embeddings": True},
                (
                    "one vocabulary for both sides, but source_vocab is 13 and"
                    " target_vocab 11"
                ),
            ),
        ],
    )
    def test_a_model_that_cannot_be_is_refused_in_words(self, change, message):
        with refusal(message):
            Transformer(TransformerConfig(**{**SIZES, **change}))

    def test_an_empty_sentence_is_refused_in_words(self, batch):
        batch["source_lengths"][1] = 0
        with refusal("sentence 1 has length 0; every sentence needs at least one word"):
            make()(**batch)

    @pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
    def test_a_sentence_longer_than_the_table_is_refused_in_words(
        self, positions, batch
    ):
        model = make(positions=positions, max_length=6)
        with refusal(r"7 words long, but max_length is 6"):
            model(**batch)
        short = {
            **batch,
            "source_ids": batch["source_ids"][:, :6],
            "source_lengths": torch.tensor([4, 6, 1, 6]),
        }
        model(**short)
        with refusal(r"7 words long, but max_length is 6"):
            model(
                **{**short, "target_ids": batch["target_ids"][:, [0, 1, 2, 3, 4, 0, 1]]}
            )

    def test_decoding_beyond_the_table_is_refused_in_words(self, batch):
        model = make(max_length=7)
        state = model.start(batch["source_ids"], batch["source_lengths"])
        for _ in range(7):
            _, state = model.step(state, batch["target_ids"][:, 0])
        with refusal(r"8 words long, but max_length is 7"):
            model.step(state, batch["target_ids"][:, 0])

    def test_a_mask_that_forbids_everything_is_refused_by_the_encoder(self, batch):
        mask = torch.ones(B, 1, S, dtype=torch.bool)
        mask[2] = False
        with refusal("forbids every key for 1 of the queries"):
            make().encoder(batch["source_ids"], mask)
