"""Rotary positions, local masks, GeGLU and the block, against loops, complex numbers
and torch's own."""

import math

import pytest
import torch
import torch.nn.functional as F
from expect import assert_near, refusal
from torch import nn

from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.modern.layers import (
    GeGLU,
    PreNormBlock,
    RotaryAttention,
    local_mask,
    rotate,
)
from course_lib.training.cpu import speed_up
from course_lib.transformer.positions import sinusoidal_positions


@pytest.fixture(autouse=True)
def _double():
    """Waves come in torch's default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_a_pair_of_features_is_a_complex_number_that_is_turned():
    """Su et al. 2021, section 3.2.1: times e^(ikθ), θ_i = n^(-2i/d)."""
    torch.manual_seed(1)
    heads = torch.randn(2, 3, 7, 10)
    found = rotate(heads, sinusoidal_positions(7, 10, base=50.0))
    for position in range(7):
        for pair in range(5):
            before = torch.complex(heads[..., pair], heads[..., pair + 5])
            angle = position * 50.0 ** (-2 * pair / 10)
            turned = before[..., position] * complex(math.cos(angle), math.sin(angle))
            assert_near(found[..., position, pair], turned.real, atol=1e-14)
            assert_near(found[..., position, pair + 5], turned.imag, atol=1e-14)


def test_a_product_of_query_and_key_depends_on_their_distance_alone():
    """Su et al. 2021, equation 11; learned and added positions lack it."""
    torch.manual_seed(2)
    query, key = torch.randn(1, 6), torch.randn(1, 6)
    waves = sinusoidal_positions(40, 6, base=100.0)

    def products(turn, distance):
        return torch.stack(
            [
                (turn(query, k) * turn(key, k + distance)).sum()
                for k in range(40 - distance)
            ]
        )

    def turned(vector, k):
        return rotate(vector, waves[k : k + 1])

    def added(vector, k):
        return vector + waves[k : k + 1]

    for distance in (0, 1, 5, 23):
        found = products(turned, distance)
        assert_near(found, found[:1].expand_as(found), atol=1e-13)
        assert products(added, distance).std() > 0.1
    assert abs(products(turned, 1)[0] - products(turned, 5)[0]) > 0.1


def test_turning_keeps_lengths_and_position_0_and_the_type_of_the_heads():
    torch.manual_seed(3)
    heads = torch.randn(2, 9, 8)
    found = rotate(heads, sinusoidal_positions(9, 8))
    assert_near(found.norm(dim=-1), heads.norm(dim=-1), atol=1e-14)
    assert torch.equal(found[:, 0], heads[:, 0])
    half = rotate(heads.bfloat16(), sinusoidal_positions(9, 8).float())
    assert half.dtype == torch.bfloat16
    assert_near(half.double(), found, atol=0.03)


def test_waves_of_another_width_are_refused():
    with refusal(r"a head has 8 features, but the waves have 6; .*dim=8"):
        rotate(torch.zeros(2, 5, 8), sinusoidal_positions(5, 6))


def test_a_local_mask_is_a_band_and_follows_the_positions_it_is_given():
    """Beltagy et al. 2020, figure 2b; half the window on either side, the middle one
    too (Warner et al. 2024: 128 tokens, 64 each side, as `transformers` counts)."""
    for window, reach in ((0, 0), (1, 0), (4, 2), (5, 2), (50, 25)):
        found = local_mask(torch.arange(11), window)
        for i in range(11):
            assert found[i].tolist() == [abs(i - j) <= reach for j in range(11)]
    restarted = local_mask(torch.tensor([[0, 1, 2, 0, 1]]), window=2)
    assert restarted[0, 2].tolist() == [False, True, True, False, True]


def test_geglu_is_its_equation():
    """Shazeer 2020, equation 6."""
    torch.manual_seed(4)
    layer = GeGLU(dim=5, hidden_dim=3)
    hidden = torch.randn(2, 7, 5)
    wide, gate = layer.expand.weight[:3], layer.expand.weight[3:]
    cdf = torch.distributions.Normal(0.0, 1.0).cdf
    x, y = hidden @ wide.T, hidden @ gate.T
    assert_near(layer(hidden), (x * cdf(x) * y) @ layer.contract.weight.T, atol=1e-14)
    assert [x.shape for x in layer.parameters()] == [(6, 5), (5, 3)]


def test_attention_without_turning_is_multi_head_attention():
    """With all tokens at position 0; Vaswani et al. 2017, section 3.2.2."""
    torch.manual_seed(5)
    ours, theirs = RotaryAttention(12, 3), MultiHeadAttention(12, 3, bias=False)
    parts = ours.qkv.weight.data.chunk(3)
    layers = (theirs.query, theirs.key, theirs.value)
    for layer, part in zip(layers, parts, strict=True):
        layer.weight.data = part
    theirs.output.weight.data = ours.output.weight.data
    hidden, mask = torch.randn(2, 5, 12), torch.rand(2, 5, 5) > 0.4
    mask |= torch.eye(5, dtype=torch.bool)
    at_0 = sinusoidal_positions(1, 4).expand(1, 5, 4)
    assert_near(ours(hidden, at_0, mask), theirs(hidden, mask=mask), atol=1e-14)
    waves = sinusoidal_positions(5, 4)[None]
    far = ours(hidden, waves, mask)
    assert (far - theirs(hidden, mask=mask)).abs().max() > 0.01
    # torch's fused kernel gets the turned queries and keys too
    assert_near(speed_up(ours)(hidden, waves, mask), far, atol=1e-13)


def test_a_block_adds_to_its_input_what_it_reads_normalised():
    """Xiong et al. 2020, figure 1b."""
    torch.manual_seed(6)
    hidden, waves = torch.randn(2, 5, 12), sinusoidal_positions(5, 4)[None]
    for first in (False, True):
        block = PreNormBlock(12, 3, 20, norm_eps=0.3, first=first)
        for norm in (block.norm1, block.norm2):
            for gain in norm.parameters():
                nn.init.normal_(gain, mean=1.0)

        def norm(x, layer):
            gain = getattr(layer, "weight", None)
            return x if gain is None else F.layer_norm(x, (12,), gain, None, 0.3)

        middle = hidden + block.attention(norm(hidden, block.norm1), waves)
        expected = middle + block.feed_forward(norm(middle, block.norm2))
        assert_near(block(hidden, waves), expected, atol=1e-13)
        assert [name for name, _ in block.named_parameters() if "bias" in name] == []
        assert isinstance(block.norm1, nn.Identity) == first


def test_dropout_acts_in_training_only_and_where_it_is_said_to():
    torch.manual_seed(7)
    hidden, waves = torch.randn(2, 5, 12), sinusoidal_positions(5, 4)[None]
    for dropouts in ((0.5, 0.0), (0.0, 0.5)):
        block = PreNormBlock(12, 3, 20, *dropouts)
        assert not torch.equal(block(hidden, waves), block(hidden, waves))
        block.eval()
        assert torch.equal(block(hidden, waves), block(hidden, waves))
    still = PreNormBlock(12, 3, 20)
    assert torch.equal(still(hidden, waves), still(hidden, waves))


def test_heads_that_do_not_divide_are_refused():
    with refusal("do not divide into num_heads=5"):
        PreNormBlock(12, 5, 20)
