"""The same layers in torch.nn, with the same weights: what ours are compared with, in
tests and in benchmarks.

`peer` builds torch's module for one of ours and copies its weights. `parameter_pairs`
lists which parameter stands for which, so that gradients can be compared too. This is
the only place that knows how torch names things.
"""

from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.transformer.blocks import EncoderBlock
from course_lib.transformer.decoder import DecoderBlock
from course_lib.transformer.model import Transformer, TransformerEncoder

Pairs = Iterator[tuple[str, Tensor, Tensor]]


@torch.no_grad()
def peer(ours: nn.Module) -> nn.Module:
    """Return torch's module for one of ours, with its weights, dtype, device and
    mode."""
    theirs = _build(ours)
    example = next(ours.parameters())
    theirs = theirs.to(example.device, example.dtype).train(ours.training)
    for _, mine, its in parameter_pairs(ours, theirs):
        its.copy_(mine)
    return theirs


def parameter_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Yield name, our parameter and torch's parameter for each that both have, and
    refuse to leave one of torch's out."""
    pairs = list(_pairs(ours, theirs))
    paired = {id(its) for _, _, its in pairs}
    left_out = [
        name for name, its in theirs.named_parameters() if id(its) not in paired
    ]
    if left_out:
        raise ValueError(
            f"torch's {type(theirs).__name__} has parameters that ours lacks:"
            f" {', '.join(left_out)}"
        )
    yield from pairs


@singledispatch
def _build(ours: nn.Module) -> Any:
    raise TypeError(f"torch.nn has no module for {type(ours).__name__}")


@_build.register
def _(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    bias = ours.in_proj.bias is not None
    return nn.MultiheadAttention(
        ours.dim, ours.num_heads, ours.dropout, bias, batch_first=True
    )


@_build.register
def _(ours: EncoderBlock) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(**_layer_options(ours))
    theirs.dropout.p = (
        ours.feed_forward.dropout.p
    )  # torch's signature knows one share of dropout, its layer four
    theirs.dropout1.p, theirs.dropout2.p = (
        ours.around_attention.dropout.p,
        ours.around_feed_forward.dropout.p,
    )
    return theirs


@_build.register
def _(ours: DecoderBlock) -> nn.TransformerDecoderLayer:
    return nn.TransformerDecoderLayer(**_layer_options(ours))


@_build.register
def _(ours: TransformerEncoder) -> nn.TransformerEncoder:
    block, norm = _build(ours.blocks[0]), _final_norm(ours.final_norm)
    # torch warns where its fast path for inference could not drop padding: these are
    # its conditions.
    nested = not block.norm_first and block.self_attn.num_heads % 2 == 0
    return nn.TransformerEncoder(
        block, len(ours.blocks), norm, enable_nested_tensor=nested
    )


@_build.register
def _(ours: Transformer) -> nn.Transformer:
    """torch's own default would put a layer norm behind post-norm stacks too, where the
    paper has none."""
    decoder = nn.TransformerDecoder(
        _build(ours.blocks[0]), len(ours.blocks), _final_norm(ours.final_norm)
    )
    dim, heads = ours.config.dim, ours.config.num_heads
    return nn.Transformer(
        dim,
        heads,
        custom_encoder=_build(ours.encoder),
        custom_decoder=decoder,
        batch_first=True,
    )


def _final_norm(ours: nn.Module) -> nn.LayerNorm | None:
    return (
        nn.LayerNorm(ours.normalized_shape) if isinstance(ours, nn.LayerNorm) else None
    )


def _layer_options(ours: EncoderBlock | DecoderBlock) -> dict[str, Any]:
    around = ours.around_attention
    if around.place == "none" or not around.residual:
        raise ValueError(
            "torch's layers always have layer norm and residual connections, but this"
            f" block has norm={around.place!r} and residual={around.residual}"
        )
    return {
        "d_model": ours.attention.dim,
        "nhead": ours.attention.num_heads,
        "dim_feedforward": ours.feed_forward.expand.out_features,
        "dropout": ours.attention.dropout,
        "layer_norm_eps": around.norm.eps,
        "activation": ours.feed_forward.activation,
        "norm_first": around.place == "pre",
        "batch_first": True,
    }


@singledispatch
def _pairs(ours: nn.Module, theirs: Any) -> Pairs:
    """A module of torch that both have, a linear layer say: the names are the same."""
    its = dict(theirs.named_parameters())
    for name, mine in ours.named_parameters():
        yield name, mine, its[name]


@_pairs.register
def _(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Pairs:
    yield "in_proj.weight", ours.in_proj.weight, theirs.in_proj_weight
    if ours.in_proj.bias is not None:
        yield "in_proj.bias", ours.in_proj.bias, theirs.in_proj_bias
    yield from _within("out_proj", ours.out_proj, theirs.out_proj)


#: What torch calls the parts of a block.
ENCODER_NAMES = {
    "attention": "self_attn",
    "feed_forward.expand": "linear1",
    "feed_forward.contract": "linear2",
    "around_attention.norm": "norm1",
    "around_feed_forward.norm": "norm2",
}
DECODER_NAMES = {
    **ENCODER_NAMES,
    "cross_attention": "multihead_attn",
    "around_cross_attention.norm": "norm2",
    "around_feed_forward.norm": "norm3",
}


@_pairs.register(EncoderBlock)
@_pairs.register(DecoderBlock)
def _(ours: EncoderBlock | DecoderBlock, theirs: nn.Module) -> Pairs:
    for name, its in (
        ENCODER_NAMES if isinstance(ours, EncoderBlock) else DECODER_NAMES
    ).items():
        yield from _within(name, ours.get_submodule(name), theirs.get_submodule(its))


@_pairs.register
def _(ours: TransformerEncoder, theirs: nn.TransformerEncoder) -> Pairs:
    yield from _stack("blocks", ours.blocks, theirs.layers)
    if theirs.norm is not None:
        yield from _within("final_norm", ours.final_norm, theirs.norm)


@_pairs.register
def _(ours: Transformer, theirs: nn.Transformer) -> Pairs:
    yield from _within("encoder", ours.encoder, theirs.encoder)
    yield from _stack("blocks", ours.blocks, theirs.decoder.layers)
    if theirs.decoder.norm is not None:
        yield from _within("final_norm", ours.final_norm, theirs.decoder.norm)


def _stack(
    prefix: str, ours: Iterable[nn.Module], theirs: Iterable[nn.Module]
) -> Pairs:
    for number, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
        yield from _within(f"{prefix}.{number}", mine, its)


def _within(prefix: str, ours: nn.Module, theirs: nn.Module) -> Pairs:
    for name, mine, its in _pairs(ours, theirs):
        yield f"{prefix}.{name}", mine, its
