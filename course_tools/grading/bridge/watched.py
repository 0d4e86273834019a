"""Tests that watch what a function does with torch: they see the sizes of what it makes
in the other process.

A test can put a ``TorchFunctionMode`` around a call, e.g. to refuse a matrix that must
not exist. Here the student's process is taken at its word, as nowhere else: this finds
mistakes, and no liar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode

from course_tools.grading.bridge.codec import DTYPES, Refused

#: Different sizes that one call may tell.
SIZES = 10_000


class Noting(TorchFunctionMode):
    """Notes of what sizes and types the tensors are that calls of torch give."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[tuple[tuple[int, ...], str], None] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, tuple | list) else [result]:
            if isinstance(part, torch.Tensor) and len(self.sizes) < SIZES:
                self.sizes[
                    tuple(part.shape), str(part.dtype).removeprefix("torch.")
                ] = None
        return result


def watching() -> bool:
    """Whether a test watches what is called now."""
    return _get_current_function_mode() is not None


def show(sizes: Any) -> None:
    """Let the test that watches see tensors of these sizes, which have no numbers and
    take no memory."""
    if type(sizes) is not list or len(sizes) > SIZES:
        raise Refused("an answer of a form that no answer has")
    for size in sizes:
        if (
            type(size) is not tuple
            or len(size) != 2
            or type(size[0]) is not tuple
            or size[1] not in DTYPES
        ):
            raise Refused("a size of a form that no size has")
        if any(
            type(length) is not int or not 0 <= length < 2**40 for length in size[0]
        ):
            raise Refused("a size of a form that no size has")
        torch.empty(size[0], dtype=DTYPES[size[1]], device="meta")
