"""Function modes on both sides: tests that watch what torch makes, and the guard.

A test can put a ``TorchFunctionMode`` around a call, e.g. to refuse a matrix that must
not exist; it is told of what the other process made, by its sizes. Here the student's
process is taken at its word, as nowhere else: this finds mistakes, and no liar.

The guard of an assignment is such a mode, in the student's process. It sees what the
student's code does, and nothing of what the bridge does: to see a call of torch costs
more than most calls do.
"""

import functools
from collections.abc import Callable
from typing import Any

from course_tools.grading.bridge.codec import DTYPES, Refused
from course_tools.grading.bridge.torch_here import torch

#: Different sizes that one call may tell.
SIZES = 10_000


def unwatched(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of the bridge call torch past all function modes."""

    @functools.wraps(method)
    def carry(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return method(*args, **kwargs)

    return carry


def as_usual(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call what is no part of the bridge: function modes see what it does."""
    with torch._C._EnableTorchFunction():
        return function(*args, **kwargs)


class Noting(torch.overrides.TorchFunctionMode):
    """Notes of what sizes and types the tensors are that calls of torch give."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[tuple[tuple[int, ...], str], None] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, tuple | list) else [result]:
            if isinstance(part, torch.Tensor) and len(self.sizes) < SIZES:
                dtype = str(part.dtype).removeprefix("torch.")
                self.sizes[tuple(part.shape), dtype] = None
        return result


def watching() -> bool:
    """Whether a test watches what is called now."""
    return torch.overrides._get_current_function_mode() is not None


def show(sizes: Any) -> None:
    """Show tensors of these sizes, without numbers, to the test that watches."""
    if type(sizes) is not list or len(sizes) > SIZES:
        raise Refused("an answer of a form that no answer has")
    for size in sizes:
        if type(size) is not tuple or len(size) != 2 or type(size[0]) is not tuple:
            raise Refused("a size of a form that no size has")
        whole = all(type(n) is int and 0 <= n < 2**40 for n in size[0])
        if not whole or size[1] not in DTYPES:
            raise Refused("a size of a form that no size has")
        torch.empty(size[0], dtype=DTYPES[size[1]], device="meta")
