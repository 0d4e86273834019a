"""What a layer costs as sentences grow: time, memory, kernel launches, and the way of a
gradient.

Everything here runs on one thread of the CPU, wherever the rest of a page runs: the
question is how cost grows with length, and one thread answers it without the noise of
many.

Dimension letters::

    B  sentences in a batch     T  positions     D  features     X  lengths or distances
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import process_time
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_lab.ch02_self_attention.self_attention import Recurrent
from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.training.cpu import speed_up
from course_lib.training.loop import set_seed


def make_layers(dim: int, seed: int = 0) -> dict[str, nn.Module]:
    """Return the three layers that are compared, untrained, all from D features to D
    features."""
    set_seed(seed)
    return {
        "explicit attention": MultiHeadAttention(dim, num_heads=1),
        "fused attention": speed_up(MultiHeadAttention(dim, num_heads=1), linear=False),
        "GRU": Recurrent(dim),
    }


class AllocationCounter(TorchDispatchMode):
    """Count the bytes of all tensors that live at once, and the kernel launches, while
    it is entered. A launch is a call of one of torch's operators that computes; a view
    of a tensor computes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = self.launches = 0
        self._alive: dict[int, weakref.ref] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run one operation and count what it makes."""
        result = func(*args, **(kwargs or {}))
        self.launches += not func.is_view
        for part in result if isinstance(result, tuple | list) else (result,):
            if isinstance(part, Tensor):
                self._count(part.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        place, size = storage._cdata, storage.nbytes()
        if place in self._alive:  # a view, or a change in place: nothing new
            return

        def gone(_: weakref.ref) -> None:
            self.now -= size
            del self._alive[place]

        self._alive[place] = weakref.ref(storage, gone)
        self.now += size
        self.peak = max(self.peak, self.now)


def training_step(layer: nn.Module, hidden: Float[Tensor, "B T D"]) -> None:
    """Run a layer forward and backward, down to its input."""
    hidden.grad = None
    layer.zero_grad(set_to_none=True)
    layer(hidden).sum().backward()


def measure_seconds(
    layers: dict[str, nn.Module], dim: int, lengths: Sequence[int], repetitions: int
) -> dict[str, list[list[float]]]:
    """Time a training step of each layer at each length, in CPU seconds."""
    inputs = _inputs(dim, lengths)
    seconds: dict[str, list[list[float]]] = {name: [] for name in layers}
    with one_thread():
        for repetition in range(-1, repetitions):
            rows: dict[str, list[float]] = {name: [] for name in layers}
            for hidden in inputs[: None if repetition >= 0 else 2]:
                for name, layer in layers.items():
                    started = process_time()
                    training_step(layer, hidden)
                    rows[name].append(process_time() - started)
            if repetition >= 0:
                for name, row in rows.items():
                    seconds[name].append(row)
    return seconds


def measure_allocations(
    layers: dict[str, nn.Module], dim: int, lengths: Sequence[int]
) -> dict[str, list[AllocationCounter]]:
    """Count memory and kernel launches of a training step of each layer at each
    length."""
    counted: dict[str, list[AllocationCounter]] = {name: [] for name in layers}
    with one_thread():
        for hidden in _inputs(dim, lengths):
            for name, layer in layers.items():
                with AllocationCounter() as counter:
                    training_step(layer, hidden)
                counted[name].append(counter)
    return counted


def fitted_exponent(
    lengths: Sequence[float | int], costs: Sequence[float | int]
) -> float:
    """Return p of the power law cost = c · length^p that fits best: the slope of a line
    through the logarithms."""
    if len(lengths) < 2 or min(*lengths, *costs) <= 0:
        raise ValueError(
            "a power law needs two or more positive points; got"
            f" {list(zip(lengths, costs, strict=True))}"
        )
    slope, _ = np.polyfit(np.log(lengths), np.log(costs), deg=1)
    return float(slope)


def gradient_by_distance(
    layer: nn.Module, dim: int, distances: Sequence[int], seed: int
) -> list[float]:
    """Measure how much the output at the last position depends on inputs before it."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(
        1, max(distances) + 1, dim, generator=generator
    ).requires_grad_()
    direction = torch.randn(dim, generator=generator)
    with one_thread():
        (gradient,) = torch.autograd.grad(layer(hidden)[0, -1] @ direction, hidden)
    norms = gradient[0].norm(dim=-1).flip(0)
    return [norms[distance].item() for distance in distances]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread, and give it back the rest afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def compare_seconds(
    ways: dict[str, Callable[[], object]], repetitions: int
) -> dict[str, list[float]]:
    """Time several ways to compute the same thing, in CPU seconds on one thread; they
    take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with one_thread():
        for _ in range(repetitions):
            for name, way in ways.items():
                way()
                started = process_time()
                way()
                seconds[name].append(process_time() - started)
    return seconds


def _inputs(dim: int, lengths: Sequence[int]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(1, length, dim, generator=generator).requires_grad_()
        for length in lengths
    ]
