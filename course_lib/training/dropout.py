"""Dropout that draws sixteen bits for a feature, where torch on a CPU draws a whole
number.

On a CPU torch draws dropout's places one after the other. Here one draw of 64 bits
decides four places; what that saves is a rung of the ladder of ``benchmarks/bert.py``.
Everywhere else (small tensors, accelerators, compiled models) the layer is
``torch.nn.Dropout`` itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

__all__ = ["Dropout", "dropout", "plain_dropout"]

SMALLEST = 2**15  # features; below, torch's own is as fast
CHANCES = 2**16  # values of sixteen bits

#: Whether features may be decided on in words at all.
WORDS = True


@contextmanager
def plain_dropout() -> Iterator[None]:
    """While it is entered, torch draws: to measure what words of sixteen bits save."""
    global WORDS
    there, WORDS = WORDS, False
    try:
        yield
    finally:
        WORDS = there


class Dropout(nn.Dropout):
    """``torch.nn.Dropout``, by `dropout`."""

    def forward(self, input: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return the features, some of them 0 while the layer trains."""
        return dropout(input, self.p) if self.training else input


def dropout(input: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """Set each feature to 0 with probability p, and divide the others by 1 - p."""
    if not _in_words(input, p):
        return F.dropout(input, p)
    dropped: Tensor = _WordDropout.apply(input, round(p * CHANCES))
    return dropped


def _in_words(input: Tensor, p: float) -> bool:
    return (
        # first: the compiler draws by itself, and shall not ask about sizes
        not torch.compiler.is_compiling()
        and WORDS
        and input.device.type == "cpu"
        and input.numel() >= SMALLEST
        and 1 <= round(p * CHANCES) < CHANCES
    )


class _WordDropout(torch.autograd.Function):
    """Features times what was drawn for them: 0, or one over the share that stays."""

    @staticmethod
    def forward(ctx: FunctionCtx, input: Tensor, chances: int) -> Tensor:
        count = input.numel()
        words = torch.empty(-(-count // 4), dtype=torch.int64).random_(
            -(2**63), None
        )  # all 64 bits
        numbers = words.view(torch.int16)[:count].view(
            input.shape
        )  # from -32,768, each as likely as any other
        factors = (
            (numbers >= chances - CHANCES // 2)
            .to(input.dtype)
            .mul_(CHANCES / (CHANCES - chances))
        )
        ctx.save_for_backward(factors)
        return input * factors

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        (factors,) = ctx.saved_tensors
        return slope * factors, None
