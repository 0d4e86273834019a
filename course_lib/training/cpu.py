"""What is only fast: layers that take the place of a finished model's own, and an
allocator that keeps what a training step frees.

Models are written with `torch.nn.Linear`, `torch.nn.Dropout` and attention as its
formula says. `speed_up` puts into their places

* products that oneDNN multiplies: torch hands single-precision matrices on a CPU to
  MKL, which on AMD's processors uses half the width of their registers;
* dropout that draws sixteen bits for a feature, where torch on a CPU draws a whole
  number for each, one after the other;
* torch's fused attention, which never stores the T × S weights.

Numbers differ in their last digits, and dropout draws others. What each saves is a rung
of the ladder of ``benchmarks/bert.py``. Where one does not pay (small tensors, other
devices, compiled models) the layer does what it did.

Other letters: I, features in; O, features out.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

Model = TypeVar("Model", bound=nn.Module)

SMALLEST_PRODUCT = 2**21  # of two numbers each; below, calling oneDNN costs more
SMALLEST_DROPOUT = 2**15  # features; below, torch's own is as fast
CHANCES = 2**16  # values of sixteen bits


def speed_up(
    model: Model, linear: bool = True, dropout: bool = True, attention: bool = True
) -> Model:
    """Swap a finished model's layers for faster ones, in place; parameters, names and
    hooks stay."""
    for module in model.modules():
        if linear and type(module).forward is nn.Linear.forward:
            module.__class__ = FastLinear
        if dropout and type(module) is nn.Dropout:
            module.__class__ = FastDropout
        written_out = getattr(module, "kernel", None)
        if attention and written_out and not isinstance(written_out, FusedAttention):
            setattr(module, "kernel", FusedAttention(written_out))  # noqa: B010
    return model


class FastLinear(nn.Linear):
    """``torch.nn.Linear``, of which oneDNN multiplies the large products."""

    def forward(self, input: Float[Tensor, "*shape I"]) -> Float[Tensor, "*shape O"]:
        """Return the transformed features."""
        if not self._pays(input):
            return F.linear(input, self.weight, self.bias)
        rows = input.reshape(-1, input.shape[-1])
        rows = _OneDnnLinear.apply(rows, self.weight, self.bias)
        return rows.view(*input.shape[:-1], -1)  # (rows, O) -> (*shape, O)

    def _pays(self, input: Tensor) -> bool:
        return (
            # first: the compiler chooses by itself, and shall not ask about sizes
            not torch.compiler.is_compiling()
            and input.device.type == self.weight.device.type == "cpu"
            and input.dtype == self.weight.dtype == torch.float32
            # which makes the product one in bfloat16
            and not torch.is_autocast_enabled("cpu")
            and input.shape[:-1].numel() * self.weight.numel() >= SMALLEST_PRODUCT
            and _has_onednn()
        )


@cache
def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(
        torch.ops.mkldnn, "_linear_pointwise"
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
            # (O, rows) @ (rows, I)
            _product(slope.t(), input.t()) if of_weight else None,
            slope.sum(0) if of_bias else None,
        )


def _product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """``left @ right.T + bias``; the other three arguments would fuse an activation
    into it."""
    return torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")


class FastDropout(nn.Dropout):
    """``torch.nn.Dropout``, of which one draw of 64 bits decides four features."""

    def forward(self, input: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return the features, some of them 0 while the layer trains."""
        if not self.training or not self._pays(input):
            return F.dropout(input, self.p, self.training)
        dropped: Tensor = _WordDropout.apply(input, round(self.p * CHANCES))
        return dropped

    def _pays(self, input: Tensor) -> bool:
        return (
            # first: the compiler draws by itself, and shall not ask about sizes
            not torch.compiler.is_compiling()
            and input.device.type == "cpu"
            and input.numel() >= SMALLEST_DROPOUT
            and 1 <= round(self.p * CHANCES) < CHANCES
        )


class _WordDropout(torch.autograd.Function):
    """Features times what was drawn for them: 0, or one over the share that stays."""

    @staticmethod
    def forward(ctx: FunctionCtx, input: Tensor, chances: int) -> Tensor:
        count = input.numel()
        words = torch.empty(-(-count // 4), dtype=torch.int64)
        words.random_(-(2**63), None)  # all 64 bits
        # from -32,768, each as likely as any other
        numbers = words.view(torch.int16)[:count].view(input.shape)
        kept = (numbers >= chances - CHANCES // 2).to(input.dtype)
        factors = kept.mul_(CHANCES / (CHANCES - chances))
        ctx.save_for_backward(factors)
        return input * factors

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        (factors,) = ctx.saved_tensors
        return slope * factors, None


class FusedAttention:
    """Softmax(QKᵀ/√d)V in torch's fused kernel, without weights; on a CPU as it is
    written out in bfloat16, where the kernel's backward pass takes three times as long,
    and with dropout, with which torch stores the weights all the same."""

    def __init__(self, written_out: Callable[..., tuple[Tensor, Tensor]]):
        self.written_out = written_out

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        dropout: nn.Dropout | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output, and None for the weights."""
        share = dropout.p if dropout is not None and dropout.training else 0.0
        if query.device.type == "cpu" and (share or query.dtype == torch.bfloat16):
            return self.written_out(query, key, value, mask, dropout)
        output = F.scaled_dot_product_attention(query, key, value, mask, share)
        return output, None


# <malloc.h>: free memory at the top of the heap that stays, and the size from which a
# block is one of its own.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGE = 1 << 30  # bytes
LARGEST_OLD = 1 << 25  # the most that older versions take for the second


@cache
def keep_freed_memory() -> bool:
    """Tell glibc's allocator to keep up to a GiB that was freed, from now on and in
    this whole process; say whether it does.

    It hands large blocks back to the system when they are freed. The next step asks for
    the same blocks, and the system clears each page of them before it is touched: at
    BERT-tiny that takes 11 of 74 milliseconds of two cores. Results do not change by a
    bit.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not (hasattr(library, "gnu_get_libc_version") and hasattr(library, "mallopt")):
        return False
    kept = library.mallopt(M_TRIM_THRESHOLD, LARGE)
    return bool(
        kept
        and (
            library.mallopt(M_MMAP_THRESHOLD, LARGE)
            or library.mallopt(M_MMAP_THRESHOLD, LARGEST_OLD)
        )
    )
