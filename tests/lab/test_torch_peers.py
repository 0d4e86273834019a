"""torch's modules with our weights: all weights, in the same mode, and nothing that
torch cannot do."""

import pytest
import torch
from expect import refusal
from torch import nn

from course_lab.peers import parameter_pairs, peer
from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.transformer.blocks import EncoderBlock, FeedForward
from course_lib.transformer.decoder import DecoderBlock
from course_lib.transformer.model import Transformer, TransformerConfig


@pytest.mark.parametrize("bias", [True, False])
def test_the_peer_has_every_weight_and_its_own_copy(bias):
    ours = MultiHeadAttention(12, 3, bias=bias).double().eval()
    theirs = peer(ours)
    assert type(theirs) is nn.MultiheadAttention
    assert not theirs.training
    pairs = list(parameter_pairs(ours, theirs))
    assert [name for name, _, _ in pairs] == [
        name for name, _ in ours.named_parameters()
    ]
    for _, mine, its in pairs:
        assert torch.equal(mine, its)
        assert mine.data_ptr() != its.data_ptr()
        assert its.requires_grad


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_pairs_of_a_transformer_are_all_that_is_not_embedding_or_output(norm):
    ours = Transformer(
        TransformerConfig(
            13, 11, dim=12, num_heads=3, num_layers=2, hidden_dim=17, norm=norm
        )
    )
    named = {name for name, _, _ in parameter_pairs(ours, peer(ours))}
    left = {name for name, _ in ours.named_parameters()} - named
    assert left == {
        "encoder.embed.embedding.weight",
        "embed.embedding.weight",
        "output.bias",
    }


def test_a_parameter_that_is_not_ours_is_not_passed_over():
    ours = MultiHeadAttention(12, 3)
    theirs = peer(ours)
    theirs.bias_k = nn.Parameter(torch.zeros(1, 1, 12))
    with refusal("MultiheadAttention has parameters that ours lacks: bias_k"):
        list(parameter_pairs(ours, theirs))


@pytest.mark.parametrize(
    "block",
    [EncoderBlock(12, 3, 17, norm="none"), DecoderBlock(12, 3, 17, residual=False)],
    ids=["no norm", "no residual"],
)
def test_an_ablated_block_has_no_peer(block):
    with refusal("torch's layers always have layer norm and residual connections"):
        peer(block)


def test_a_module_that_torch_lacks_is_refused_in_words():
    with refusal(r"torch\.nn has no module for FeedForward", TypeError):
        peer(FeedForward(12, 17))
