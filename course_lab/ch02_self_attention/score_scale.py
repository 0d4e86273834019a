"""Why scores are divided by the root of their width: what happens to the softmax as
queries and keys get wider.

Dimension letters::

    N  queries     S  keys     K  features of query and key     E  features of a value
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import torch

from course_lab.ch02_self_attention.self_attention import (
    LookBack,
    SingleHead,
    fit_seeds,
)

#: What scores are divided by, as a function of the width of query and key.
DIVISORS: dict[str, Callable[[int], float]] = {
    "unscaled": lambda dim: 1.0,
    "scaled": math.sqrt,
    "divided by d": float,
}


@dataclass(frozen=True)
class ScoreStatistics:
    """What one divisor does at one width, over many random queries."""

    spread: float  # standard deviation of the scores
    entropy: float  # of the weights, in nats, mean over queries
    score_gradient: (
        float  # norm of the gradient with respect to the scores, median over queries
    )
    query_gradient: float  # with respect to the query, median over queries
    query_gradient_mean: float  # the same, mean over queries


def score_statistics(
    dim: int, divisor: float, seed: int, queries: int = 256, keys: int = 64
) -> ScoreStatistics:
    """Attend with random queries and keys of unit variance, and send a gradient back
    through the softmax."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(queries, 1, dim, generator=generator).requires_grad_()
    key = torch.randn(queries, keys, dim, generator=generator)
    # One feature is enough for a value: the gradient reaches a score through one
    # number, output · value, in any case.
    value = torch.randn(queries, keys, 1, generator=generator)
    upstream = torch.randn(queries, 1, 1, generator=generator)
    scores = query @ key.mT / divisor  # (N, 1, K) @ (N, K, S) -> (N, 1, S)
    scores.retain_grad()
    weights = scores.softmax(dim=-1)
    ((weights @ value) * upstream).sum().backward()
    assert scores.grad is not None
    assert query.grad is not None
    score_gradient, query_gradient = scores.grad.norm(dim=-1), query.grad.norm(dim=-1)
    return ScoreStatistics(
        spread=scores.detach().std().item(),
        entropy=torch.special.entr(weights.detach()).sum(dim=-1).mean().item(),
        score_gradient=score_gradient.median().item(),
        query_gradient=query_gradient.median().item(),
        query_gradient_mean=query_gradient.mean().item(),
    )


def statistics_by_width(
    dims: Sequence[int], seeds: Sequence[int]
) -> dict[str, dict[str, np.ndarray]]:
    """Return each statistic of each divisor: one row for each seed, one column for each
    width."""
    found = {
        name: [
            [score_statistics(dim, divisor(dim), seed) for dim in dims]
            for seed in seeds
        ]
        for name, divisor in DIVISORS.items()
    }
    return {
        field.name: {
            name: np.array([[getattr(s, field.name) for s in row] for row in rows])
            for name, rows in found.items()
        }
        for field in fields(ScoreStatistics)
    }


def accuracy_after_training(
    dims: Sequence[int], learning_rate: float, seeds: Sequence[int], steps: int
) -> dict[str, list[list[float]]]:
    """Train a look-up with and without the divisor, and return the accuracy at each
    width."""
    task = LookBack(distances=(3,))
    found: dict[str, list[list[float]]] = {}
    for name in ("scaled", "unscaled"):
        columns = []
        for dim in dims:
            head = partial(SingleHead, key_dim=dim, divisor=DIVISORS[name](dim))
            columns.append(
                fit_seeds(task, head, seeds, steps, learning_rate, batch_size=32).right
            )
        found[name] = [list(row) for row in zip(*columns, strict=True)]
    return found
