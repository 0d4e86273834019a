"""The same layers in torch.nn, with the same weights: what ours are compared with, in
tests and in benchmarks.

`peer` builds torch's module for one of ours and copies its weights. `parameter_pairs`
lists which parameter stands for which, so that gradients can be compared too. This is
the only place that knows how torch names things.
"""

from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Any, cast

import torch
from torch import Tensor, nn

from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.transformer.blocks import EncoderBlock, NoSkip
from course_lib.transformer.decoder import DecoderBlock
from course_lib.transformer.model import Transformer, TransformerEncoder

Pairs = Iterator[tuple[str, Tensor, Tensor]]

#: Our parameter, torch's, and which of its rows ours stands for: torch keeps the
#: projections of queries, keys and values in one matrix.
Parts = Iterator[tuple[str, nn.Parameter, nn.Parameter, slice]]
ALL = slice(None)


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
    """Yield name, our parameter and torch's parameter (or its rows) for each that both
    have, and refuse to leave one of torch's out."""
    for name, mine, its, rows in _all_parts(ours, theirs):
        yield name, mine, its[rows]


def gradient_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Yield what `parameter_pairs` does of the gradients."""
    for name, mine, its, rows in _all_parts(ours, theirs):
        if its.grad is None:
            raise ValueError(f"no gradient reached torch's parameter for {name}")
        yield name, cast(Tensor, mine.grad), its.grad[rows]


def _all_parts(ours: nn.Module, theirs: nn.Module) -> Parts:
    parts = list(_pairs(ours, theirs))
    paired = {id(its) for _, _, its, _ in parts}
    left_out = [
        name for name, its in theirs.named_parameters() if id(its) not in paired
    ]
    if left_out:
        raise ValueError(
            f"torch's {type(theirs).__name__} has parameters that ours lacks:"
            f" {', '.join(left_out)}"
        )
    yield from parts


@singledispatch
def _build(ours: nn.Module) -> Any:
    raise TypeError(f"torch.nn has no module for {type(ours).__name__}")


@_build.register
def _(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    bias = ours.query.bias is not None
    return nn.MultiheadAttention(
        ours.dim, ours.num_heads, ours.dropout.p, bias, batch_first=True
    )


@_build.register
def _(ours: EncoderBlock) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(**_layer_options(ours))
    # torch's signature knows one share of dropout, its layer four
    theirs.dropout.p = ours.feed_forward.dropout.p
    theirs.dropout1.p = theirs.dropout2.p = ours.dropout.p
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
    if not isinstance(ours.norm1, nn.LayerNorm) or isinstance(ours.skip, NoSkip):
        raise ValueError(
            "torch's layers always have layer norm and residual connections, but this"
            f" block has norm1={ours.norm1} and skip={ours.skip}"
        )
    return {
        "d_model": ours.attention.dim,
        "nhead": ours.attention.num_heads,
        "dim_feedforward": ours.feed_forward.expand.out_features,
        "dropout": ours.attention.dropout.p,
        "layer_norm_eps": ours.norm1.eps,
        "activation": ours.feed_forward.activation,
        "norm_first": ours.pre_norm,
        "batch_first": True,
    }


@singledispatch
def _pairs(ours: nn.Module, theirs: Any) -> Parts:
    """A module of torch that both have, a linear layer say: the names are the same."""
    its = dict(theirs.named_parameters())
    for name, mine in ours.named_parameters():
        yield name, mine, its[name], ALL


@_pairs.register
def _(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Parts:
    for number, name in enumerate(("query", "key", "value")):
        rows = slice(number * ours.dim, (number + 1) * ours.dim)
        layer = getattr(ours, name)
        yield f"{name}.weight", layer.weight, theirs.in_proj_weight, rows
        if layer.bias is not None:
            yield f"{name}.bias", layer.bias, theirs.in_proj_bias, rows
    yield from _within("output", ours.output, theirs.out_proj)


#: What torch calls the parts of a block.
ENCODER_NAMES = {
    "attention": "self_attn",
    "feed_forward.expand": "linear1",
    "feed_forward.contract": "linear2",
    "norm1": "norm1",
    "norm2": "norm2",
}
DECODER_NAMES = {**ENCODER_NAMES, "cross_attention": "multihead_attn", "norm3": "norm3"}


@_pairs.register(EncoderBlock)
@_pairs.register(DecoderBlock)
def _(ours: EncoderBlock | DecoderBlock, theirs: nn.Module) -> Parts:
    for name, its in (
        ENCODER_NAMES if isinstance(ours, EncoderBlock) else DECODER_NAMES
    ).items():
        yield from _within(name, ours.get_submodule(name), theirs.get_submodule(its))


@_pairs.register
def _(ours: TransformerEncoder, theirs: nn.TransformerEncoder) -> Parts:
    yield from _stack("blocks", ours.blocks, theirs.layers)
    if theirs.norm is not None:
        yield from _within("final_norm", ours.final_norm, theirs.norm)


@_pairs.register
def _(ours: Transformer, theirs: nn.Transformer) -> Parts:
    yield from _within("encoder", ours.encoder, theirs.encoder)
    yield from _stack("blocks", ours.blocks, theirs.decoder.layers)
    if theirs.decoder.norm is not None:
        yield from _within("final_norm", ours.final_norm, theirs.decoder.norm)


def _stack(
    prefix: str, ours: Iterable[nn.Module], theirs: Iterable[nn.Module]
) -> Parts:
    for number, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
        yield from _within(f"{prefix}.{number}", mine, its)


def _within(prefix: str, ours: nn.Module, theirs: nn.Module) -> Parts:
    for name, mine, its, rows in _pairs(ours, theirs):
        yield f"{prefix}.{name}", mine, its, rows
