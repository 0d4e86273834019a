"""Batches: a data set in a random order that depends on nothing but a seed and the
epoch.

Sentences of similar length share a batch, so that little of it is padding. The batches
themselves come in random order, so that the model does not see all short sentences
first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor


@runtime_checkable
class Rows(Protocol):
    """Anything with a length and integer indexing: a list, a `datasets.Dataset`, a
    `torch.utils.data.Dataset`."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


def batches(
    dataset: Rows,
    batch_size: int,
    seed: int,
    epoch: int,
    collate: Callable[[list[Any]], Any] = list,
    length: Callable[[Any], int] | None = None,
    pool: int = 50,
) -> Iterator[Any]:
    """Yield every row of a data set once, in shuffled batches of rows that have similar
    lengths.

    The rows are shuffled, cut into pools of `pool * batch_size`, sorted by length
    within each pool and cut into batches, which are shuffled again. The last batch may
    be smaller."""
    if len(dataset) == 0:
        raise ValueError(
            "the data set has no rows; check the split, or the filter that made it"
        )
    if batch_size < 1 or pool < 1:
        raise ValueError(
            f"batch_size is {batch_size} and pool is {pool}; both must be at least 1"
        )
    random_order = np.random.default_rng([seed, epoch])

    def cut() -> Iterator[Any]:
        order = random_order.permutation(len(dataset)).tolist()
        if length is not None:
            lengths = [length(dataset[row]) for row in range(len(dataset))]
            pools = _parts(order, pool * batch_size)
            order = [i for rows in pools for i in sorted(rows, key=lengths.__getitem__)]
        parts = _parts(order, batch_size)
        for index in random_order.permutation(len(parts)).tolist():
            yield collate([dataset[row] for row in parts[index]])

    return cut()


def _parts(rows: list[int], size: int) -> list[list[int]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def set_seed(seed: int) -> torch.Generator:
    """Seed Python, NumPy and torch (all devices), and return a generator of its own
    with the same seed.

    Call it before you build a model, so that its first weights are the same in every
    run.

    Parameters
    ----------
    seed
        A whole number from 0 to 2^32 - 1, the range of NumPy's global seed.

    Returns
    -------
    torch.Generator
        A CPU generator for explicit draws, independent of what else draws.

    Raises
    ------
    ValueError
        The seed is out of range.

    Examples
    --------
    >>> generator = set_seed(3)
    >>> first = torch.rand(1), torch.rand(1, generator=generator)
    >>> generator = set_seed(3)
    >>> first == (torch.rand(1), torch.rand(1, generator=generator))
    True
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; choose a whole number from 0 to 4294967295")
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (libraries that still draw from the global state)
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


def to_device(batch: Any, device: torch.device) -> Any:
    """Move the tensors of a nested batch to a device and leave everything else as it
    is."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, tuple | list):
        return type(batch)(to_device(value, device) for value in batch)
    return batch


def stream(
    epochs: Callable[[int], Any], epoch: int = 0, skip: int = 0
) -> Iterator[tuple[int, int, Any]]:
    """Chain epochs without end, and begin anywhere: this is how a resumed run finds its
    place in the data."""
    while True:
        used, made = 0, epochs(epoch)
        if isinstance(made, Sequence):  # what was used before need not be made again
            used = min(skip, len(made))
            made = map(made.__getitem__, range(used, len(made)))
        for batch in made:
            used += 1
            if used > skip:
                yield epoch, used, batch
        if used == 0:
            raise ValueError(
                f"epoch {epoch} has no batches; check the data set and the batch size"
            )
        if used < skip:
            raise ValueError(
                f"epoch {epoch} has {used} batches, but the checkpoint has used {skip}"
                " of it; resume with the data and the batch size that it was trained"
                " with"
            )
        epoch, skip = epoch + 1, 0
