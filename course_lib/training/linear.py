"""A linear layer in single precision that oneDNN multiplies on a CPU.

torch hands single-precision matrices on a CPU to MKL, which on AMD's processors uses
half the width of their registers: oneDNN, which every torch for x86 brings along and
uses for bfloat16, multiplies the same matrices twice as fast there
(``benchmarks/bert.py``, its ladder). The numbers differ in the last digits only, as
sums are added up in another order. Everywhere else, and for small products, the layer
is ``torch.nn.Linear`` itself.

Dimension letters, everywhere in this module::

    I  features in     O  features out
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

__all__ = ["Linear", "linear", "plain_products"]

#: Whether oneDNN may be used at all.
ONEDNN = torch.backends.mkldnn.is_available() and hasattr(
    torch.ops.mkldnn, "_linear_pointwise"
)

SMALLEST = (
    2**21
)  # products of two numbers; below, calling oneDNN costs more than it saves


@contextmanager
def plain_products() -> Iterator[None]:
    """While it is entered, torch chooses who multiplies: to measure what oneDNN saves,
    or to count operations."""
    global ONEDNN
    there, ONEDNN = ONEDNN, False
    try:
        yield
    finally:
        ONEDNN = there


class Linear(nn.Linear):
    """``torch.nn.Linear``, by `linear`."""

    def forward(self, input: Float[Tensor, "*shape I"]) -> Float[Tensor, "*shape O"]:
        """Return the transformed features."""
        return linear(input, self.weight, self.bias)


def linear(
    input: Float[Tensor, "*shape I"],
    weight: Float[Tensor, "O I"],
    bias: Float[Tensor, "O"] | None = None,
) -> Float[Tensor, "*shape O"]:
    """Compute ``torch.nn.functional.linear`` the faster way."""
    if _by_onednn(input, weight):
        rows = _OneDnnLinear.apply(input.reshape(-1, input.shape[-1]), weight, bias)
        return rows.view(*input.shape[:-1], len(weight))  # (rows, O) -> (*shape, O)
    return F.linear(input, weight, bias)


def _by_onednn(input: Tensor, weight: Tensor) -> bool:
    return (
        # first: the compiler chooses by itself, and shall not ask about sizes
        not torch.compiler.is_compiling()
        and ONEDNN
        and input.device.type == weight.device.type == "cpu"
        and input.dtype == weight.dtype == torch.float32
        and not torch.is_autocast_enabled(
            "cpu"
        )  # which makes the product one in bfloat16
        and input.shape[:-1].numel() * weight.numel() >= SMALLEST
    )


class _OneDnnLinear(torch.autograd.Function):
    """The three products of a linear layer: y = x Wᵀ + b; dx = dy W; dW = dyᵀ x."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, input: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        input = input.contiguous()
        ctx.save_for_backward(input, weight)
        return _product(input, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, slope: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        input, weight = ctx.saved_tensors
        slope = slope.contiguous()
        of_input, of_weight, of_bias = ctx.needs_input_grad
        return (
            _product(slope, weight.t()) if of_input else None,  # (rows, O) @ (O, I)
            (
                _product(slope.t(), input.t()) if of_weight else None
            ),  # (O, rows) @ (rows, I)
            slope.sum(0) if of_bias else None,
        )


def _product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """``left @ right.T + bias``; the other three arguments would fuse an activation
    into it."""
    return torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
