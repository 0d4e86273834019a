"""The parts of a Transformer: each against its formula, and the blocks against torch.nn
with the same weights."""

import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from expect import assert_near, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from torch import Tensor, nn

from course_lab.peers import gradient_pairs, peer
from course_lib.attention.masks import causal_mask, padding_mask
from course_lib.attention.weights import watch_attention
from course_lib.transformer.blocks import EncoderBlock, FeedForward, layer_norm
from course_lib.transformer.cache import BlockCache, project, step_block
from course_lib.transformer.decoder import DecoderBlock

# All different: 3 heads of 4 features, and a hidden layer that is no multiple of the
# width.
B, H, T, S, D, F_DIM = 2, 3, 5, 7, 12, 17
PRECISIONS = [(torch.float64, 1e-10), (torch.float32, 1e-5)]
precisions = pytest.mark.parametrize(
    ("dtype", "tolerance"), PRECISIONS, ids=["float64", "float32"]
)


def numbers(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(
        shape, dtype=dtype, generator=torch.Generator().manual_seed(seed)
    )


def randomise(module: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """Give every parameter, gains and biases too, a value that an initialisation to 0
    or 1 would hide."""
    module = module.to(dtype)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(
                0.3 * torch.randn(parameter.shape, dtype=dtype, generator=generator)
            )
            if parameter.dim() == 1:
                parameter.add_(0.8)
    return module


class TestLayerNorm:
    """Ba et al. 2016, equations 3 and 4: over the features of one token."""

    @precisions
    def test_equals_torch_with_gradients(self, dtype, tolerance):
        direction = numbers(B, T, D, dtype=dtype, seed=5)
        results = []
        for norm in (
            layer_norm,
            lambda x, gain, offset: F.layer_norm(x, (D,), gain, offset),
        ):
            leaves = [
                numbers(*shape, dtype=dtype, seed=n).requires_grad_()
                for n, shape in enumerate([(B, T, D), (D,), (D,)])
            ]
            output = norm(*leaves)
            (output * direction).sum().backward()
            results.append([output, *(leaf.grad for leaf in leaves)])
        for ours, theirs in zip(*results, strict=True):
            assert_near(ours, theirs, tolerance, tolerance)

    def test_eps_stands_inside_the_root_and_the_variance_is_biased(self):
        """Four features ±0.01: variance 1e-4, and with eps = 3e-4 the root is 0.02, so
        that ±0.01 becomes ±0.5."""
        hidden = torch.tensor([0.01, -0.01, 0.01, -0.01], dtype=torch.float64)
        ones = torch.ones(4, dtype=torch.float64)
        zeros = torch.zeros(4, dtype=torch.float64)
        expected = torch.tensor([0.5, -0.5, 0.5, -0.5], dtype=torch.float64)
        assert_near(layer_norm(hidden, ones, zeros, eps=3e-4), expected, 0, 1e-12)

    def test_equal_features_become_the_offset(self):
        gain, offset = numbers(D, seed=1), numbers(D, seed=2)
        assert torch.equal(
            layer_norm(torch.full((T, D), 3.25, dtype=torch.float64), gain, offset),
            offset.expand(T, D),
        )

    @settings(max_examples=40, deadline=None)
    @given(
        scale=st.floats(0.5, 1e4),
        shift=st.floats(-100, 100),
        rows=st.integers(1, 5),
        seed=st.integers(0, 999),
    )
    def test_each_token_gets_mean_0_and_variance_1_whatever_its_scale_and_shift(
        self, scale, shift, rows, seed
    ):
        hidden = numbers(rows, D, seed=seed)
        ones = torch.ones(D, dtype=torch.float64)
        zeros = torch.zeros(D, dtype=torch.float64)
        output = layer_norm(hidden, ones, zeros, eps=0.0)
        assert_near(output.mean(-1), zeros[0].expand(rows), 1e-13)
        assert_near(output.var(-1, correction=0), ones[0].expand(rows), 1e-12)
        moved = layer_norm(scale * hidden + shift, ones, zeros, eps=0.0)
        assert_near(moved, output, 1e-9)


class TestFeedForward:
    """Vaswani et al. 2017, equation 2."""

    @pytest.mark.parametrize(
        ("activation", "formula"), [("relu", F.relu), ("gelu", F.gelu)]
    )
    def test_is_two_linear_maps_with_a_bend_between(self, activation, formula):
        layer = randomise(FeedForward(D, F_DIM, activation=activation))
        hidden = numbers(B, T, D)
        shapes = sorted(tuple(parameter.shape) for parameter in layer.parameters())
        assert shapes == sorted([(F_DIM, D), (F_DIM,), (D, F_DIM), (D,)])
        by_shape = {
            tuple(parameter.shape): parameter for parameter in layer.parameters()
        }
        inner = formula(hidden @ by_shape[F_DIM, D].T + by_shape[F_DIM,])
        expected = inner @ by_shape[D, F_DIM].T + by_shape[D,]
        assert_near(layer(hidden), expected, 1e-12)

    def test_the_same_weights_act_at_every_position(self):
        layer = randomise(FeedForward(D, F_DIM))
        hidden = numbers(B, T, D)
        order = torch.tensor([3, 0, 4, 1, 2])
        assert_near(layer(hidden[:, order]), layer(hidden)[:, order], 1e-12)
        changed = hidden.clone()
        changed[:, 2] += 1
        moved = (layer(changed) != layer(hidden)).any(-1)
        assert moved.tolist() == [[False, False, True, False, False]] * B

    def test_it_begins_as_the_layers_of_torch_s_transformer_do(self):
        """torch.nn.Transformer draws all matrices as Glorot and Bengio (2010) do; here
        the biases begin at 0, too."""
        torch.manual_seed(0)
        ours = FeedForward(64, 200)
        theirs = nn.Transformer(
            64, 4, 1, 1, dim_feedforward=200, batch_first=True
        ).encoder.layers[0]
        for mine, its in (
            (ours.expand, theirs.linear1),
            (ours.contract, theirs.linear2),
        ):
            assert mine.weight.abs().max().item() == pytest.approx(
                its.weight.abs().max().item(), rel=0.01
            )
            assert mine.weight.norm().item() == pytest.approx(
                its.weight.norm().item(), rel=0.03
            )
            assert not mine.bias.any()

    def test_an_unknown_activation_is_refused_in_words(self):
        with refusal("activation is 'tanh'; choose one of relu, gelu"):
            FeedForward(D, F_DIM, activation="tanh")


ENCODER_MASKS = {
    "none": {},
    "padding": {"mask": padding_mask(torch.tensor([5, 3]))[:, None]},
    "causal": {"causal": True},
    "padding and causal": {
        "mask": padding_mask(torch.tensor([5, 3]))[:, None],
        "causal": True,
    },
}
variants = pytest.mark.parametrize(
    ("norm", "activation"),
    [("post", "relu"), ("post", "gelu"), ("pre", "relu"), ("pre", "gelu")],
)


def compare(ours, theirs, leaves, our_output, torch_output, tolerance):
    """Outputs, and the gradients of every input and every parameter, of our module and
    of torch's."""
    output, expected = our_output(), torch_output()
    assert_near(output, expected, tolerance, tolerance)
    # gradients of order 1
    direction = 0.3 * numbers(*output.shape, dtype=output.dtype, seed=20)
    gradients = torch.autograd.grad((output * direction).sum(), leaves)
    expected_gradients = torch.autograd.grad(
        (expected * direction).sum(), leaves, retain_graph=True
    )
    (our_output() * direction).sum().backward()
    (expected * direction).sum().backward()
    for got, want in zip(gradients, expected_gradients, strict=True):
        assert_near(got, want, tolerance, tolerance)
    for name, mine, its in gradient_pairs(ours, theirs):
        torch.testing.assert_close(
            mine, its, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


class TestEncoderBlock:
    @precisions
    @variants
    @for_each("mask_name", ENCODER_MASKS)
    def test_equals_torch_with_gradients(
        self, norm, activation, mask_name, dtype, tolerance
    ):
        """torch's module is in training mode, or its fast path would run a kernel
        without gradients."""
        ours = randomise(
            EncoderBlock(D, H, F_DIM, activation=activation, norm=norm), dtype
        )
        theirs, options = peer(ours), ENCODER_MASKS[mask_name]
        hidden = numbers(B, T, D, dtype=dtype).requires_grad_()
        forbidden = {}
        if "mask" in options:
            forbidden["src_key_padding_mask"] = ~options["mask"][:, 0]
        if "causal" in options:
            forbidden["src_mask"] = ~causal_mask(T, hidden.device)

        compare(
            ours,
            theirs,
            [hidden],
            lambda: ours(hidden, **options),
            lambda: theirs(hidden, **forbidden),
            tolerance,
        )

    def test_post_norm_is_the_lecture_s_six_lines(self):
        """T1 = SelfAttention(X), T2 = X + T1, T3 = LayerNorm(T2), T4 = FFN(T3), T5 = T4
        + T3, H = LayerNorm(T5)."""
        block, x = randomise(EncoderBlock(D, H, F_DIM)), numbers(B, T, D)
        t1 = block.attention(x)
        t2 = x + t1
        t3 = layer_norm(t2, block.norm1.weight, block.norm1.bias)
        t4 = block.feed_forward(t3)
        t5 = t4 + t3
        expected = layer_norm(t5, block.norm2.weight, block.norm2.bias)
        assert_near(block(x), expected, 1e-12)

    def test_without_norm_and_residual_only_the_two_layers_are_left(self):
        x = numbers(B, T, D)
        bare = randomise(EncoderBlock(D, H, F_DIM, norm="none", residual=False))
        assert_near(bare(x), bare.feed_forward(bare.attention(x)), 1e-12)
        assert not any(isinstance(module, nn.LayerNorm) for module in bare.modules())
        residual = randomise(EncoderBlock(D, H, F_DIM, norm="none"))
        middle = x + residual.attention(x)
        assert_near(residual(x), middle + residual.feed_forward(middle), 1e-12)
        normed = randomise(EncoderBlock(D, H, F_DIM, residual=False))
        expected = normed.norm2(normed.feed_forward(normed.norm1(normed.attention(x))))
        assert_near(normed(x), expected, 1e-12)

    @variants
    @for_each(
        "others",
        [
            {},
            {"attention_dropout": 0.2, "activation_dropout": 0.45},
            {"activation_dropout": 0.0},
        ],
    )
    def test_dropout_falls_where_torch_lets_it_fall(self, norm, activation, others):
        """Seeded alike, both draw alike: the same places in the same order (Vaswani et
        al. 2017, section 5.4).

        One sentence: of several, torch lays out the words in another order in memory,
        and draws in that order.
        """
        ours = randomise(
            EncoderBlock(
                D, H, F_DIM, dropout=0.3, activation=activation, norm=norm, **others
            )
        )
        theirs, hidden = peer(ours), numbers(1, T, D)
        torch.manual_seed(8)
        output = ours(hidden)
        torch.manual_seed(8)
        assert_near(output, theirs(hidden), 1e-12)
        assert not torch.allclose(output, ours.eval()(hidden), atol=0.1)

    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_both_norms_have_the_eps_that_is_asked_for(self, norm):
        block = randomise(EncoderBlock(D, H, F_DIM, norm=norm, norm_eps=0.5)).eval()
        hidden = 0.1 * numbers(B, T, D)
        assert_near(block(hidden), peer(block)(hidden), 1e-12)
        assert [
            part.eps for part in block.modules() if isinstance(part, nn.LayerNorm)
        ] == [0.5, 0.5]
        assert EncoderBlock(D, H, F_DIM).norm1.eps == 1e-5

    def test_weights_are_those_of_the_attention(self):
        block, hidden = randomise(EncoderBlock(D, H, F_DIM)), numbers(B, T, D)
        with watch_attention(block) as kept:
            block(hidden)
        (weights,) = kept["attention"]
        assert weights.shape == (B, H, T, T)
        torch.testing.assert_close(
            weights, block.attention(hidden, return_weights=True)[1]
        )

    @pytest.mark.parametrize("norm", ["post", "pre", "none"])
    def test_permuting_the_words_permutes_the_outputs(self, norm):
        block = randomise(EncoderBlock(D, H, F_DIM, norm=norm))
        hidden = numbers(B, T, D)
        order = torch.tensor([3, 0, 4, 1, 2])
        assert_near(block(hidden[:, order]), block(hidden)[:, order], 1e-12, 1e-12)

    @for_each(
        ("change", "message"),
        [
            ({"num_heads": 5}, r"num_heads=5; choose one of 1, 2, 3, 4, 6, 12"),
            ({"norm": "batch"}, "norm is 'batch'; choose one of post, pre, none"),
            ({"activation": "tanh"}, "activation is 'tanh'; choose one of relu, gelu"),
            (
                {"dropout": 1.0},
                r"dropout is 1\.0; it is a share, at least 0 and below 1",
            ),
        ],
    )
    def test_a_block_that_cannot_be_is_refused_in_words(self, change, message):
        with refusal(message):
            EncoderBlock(**{"dim": D, "num_heads": H, "hidden_dim": F_DIM, **change})

    @pytest.mark.cpu  # on a GPU no mask is looked at
    @pytest.mark.parametrize("causal", [False, True])
    def test_a_mask_that_leaves_a_word_nothing_is_refused_in_words(self, causal):
        """Padding on the left leaves the first words nothing once they may not look
        ahead."""
        mask = torch.ones(B, 1, T, dtype=torch.bool)
        mask[1, :, : T - causal] = False
        with refusal(r"forbids every key for \d of the queries"):
            EncoderBlock(D, H, F_DIM)(
                numbers(B, T, D, dtype=torch.float32), mask, causal=causal
            )


class TestDecoderBlock:
    MEMORY_MASK = padding_mask(torch.tensor([7, 4]))[:, None]
    TARGET_MASK = padding_mask(torch.tensor([3, 5]))[:, None]

    @precisions
    @variants
    @for_each("masked", [False, True])
    def test_equals_torch_with_gradients(
        self, norm, activation, masked, dtype, tolerance
    ):
        ours = randomise(
            DecoderBlock(D, H, F_DIM, activation=activation, norm=norm), dtype
        )
        theirs = peer(ours)
        hidden = numbers(B, T, D, dtype=dtype).requires_grad_()
        memory = numbers(B, S, D, dtype=dtype, seed=1).requires_grad_()
        options = (
            {"memory_mask": self.MEMORY_MASK, "mask": self.TARGET_MASK}
            if masked
            else {}
        )
        forbidden = {"tgt_mask": ~causal_mask(T, hidden.device)}
        if masked:
            forbidden["memory_key_padding_mask"] = ~self.MEMORY_MASK[:, 0]
            forbidden["tgt_key_padding_mask"] = ~self.TARGET_MASK[:, 0]

        compare(
            ours,
            theirs,
            [hidden, memory],
            lambda: ours(hidden, memory, **options),
            lambda: theirs(hidden, memory, **forbidden),
            tolerance,
        )

    @variants
    def test_dropout_falls_where_torch_lets_it_fall(self, norm, activation):
        ours = randomise(
            DecoderBlock(D, H, F_DIM, dropout=0.3, activation=activation, norm=norm)
        )
        theirs, hidden, memory = peer(ours), numbers(1, T, D), numbers(1, S, D, seed=1)
        torch.manual_seed(8)
        output = ours(hidden, memory)
        torch.manual_seed(8)
        expected = theirs(
            hidden, memory, tgt_mask=~causal_mask(T, hidden.device), tgt_is_causal=True
        )
        assert_near(output, expected, 1e-12)

    @for_each("norm", ["post", "pre", "none"])
    @for_each("residual", [True, False])
    def test_word_by_word_gives_what_all_at_once_gives(self, norm, residual):
        block = randomise(DecoderBlock(D, H, F_DIM, norm=norm, residual=residual))
        hidden, memory = numbers(B, T, D), numbers(B, S, D, seed=1)
        expected = block(hidden, memory, self.MEMORY_MASK)
        cache = BlockCache(None, project(block.cross_attention, memory))
        for t in range(T):
            word = hidden[:, t : t + 1]
            output, cache = step_block(block, word, cache, self.MEMORY_MASK)
            assert_near(output, expected[:, t : t + 1], 1e-12, 1e-12)

    def test_weights_of_both_attentions_come_back(self):
        block = randomise(DecoderBlock(D, H, F_DIM))
        hidden, memory = numbers(B, T, D), numbers(B, S, D, seed=1)
        with watch_attention(block) as kept:
            block(hidden, memory, self.MEMORY_MASK)
        (own,), (cross,) = kept["attention"], kept["cross_attention"]
        assert own.shape == (B, H, T, T)
        assert cross.shape == (B, H, T, S)
        assert (own.triu(1) == 0).all()
        assert (own.tril().sum(-1) - 1).abs().max() < 1e-12
        assert (cross[1, ..., 4:] == 0).all()
        assert (cross.sum(-1) - 1).abs().max() < 1e-12

    @pytest.mark.parametrize("norm", ["post", "pre", "none"])
    def test_a_later_word_cannot_change_an_earlier_output(self, norm):
        block = randomise(DecoderBlock(D, H, F_DIM, norm=norm))
        hidden, memory = numbers(B, T, D), numbers(B, S, D, seed=1)
        changed = hidden.clone()
        changed[:, 3] *= -7
        before, after = block(hidden, memory), block(changed, memory)
        assert torch.equal(after[:, :3], before[:, :3])
        assert (after[:, 3:] != before[:, 3:]).any(-1).all()

    def test_it_reads_the_memory_and_not_its_padding(self):
        block = randomise(DecoderBlock(D, H, F_DIM))
        hidden, memory = numbers(B, T, D), numbers(B, S, D, seed=1)
        before = block(hidden, memory, self.MEMORY_MASK)
        padding = ~self.MEMORY_MASK[:, 0, :, None]
        assert torch.equal(
            block(hidden, memory.masked_fill(padding, 1e30), self.MEMORY_MASK), before
        )
        assert not torch.allclose(block(hidden, -memory, self.MEMORY_MASK), before)

    def test_a_mask_of_another_shape_is_refused(self):
        hidden, memory = numbers(B, T, D), numbers(B, S, D, seed=1)
        block = randomise(DecoderBlock(D, H, F_DIM))
        with pytest.raises(TypeCheckError):
            # five keys, and the memory has seven
            block(hidden, memory, self.TARGET_MASK)
        with pytest.raises(TypeCheckError):
            block(hidden, memory, self.MEMORY_MASK[:, 0])

    @pytest.mark.cpu  # on a GPU no mask is looked at
    def test_a_mask_that_leaves_a_word_nothing_is_refused_in_words(self):
        hidden, memory = numbers(B, T, D), numbers(B, S, D, seed=1)
        block = randomise(DecoderBlock(D, H, F_DIM))
        nothing = self.MEMORY_MASK.clone()
        nothing[0] = False
        with refusal("forbids every key for 1 of the queries"):
            block(hidden, memory, nothing)
        # the first two words of sentence 0 may see themselves alone
        left_padded = self.TARGET_MASK.flip(-1)
        with refusal("forbids every key for 2 of the queries"):
            block(hidden, memory, mask=left_padded)
