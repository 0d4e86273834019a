"""Probes: a recorded variant, trained for a few steps on little data, as a fingerprint
of what its code computes.

A probe runs the function that was recorded, training to scoring. Inside `probing`
nothing depends on the machine or on the order in which weights are drawn: one thread,
no dropout, and each model that is handed to `start` gets weights that depend on shapes
alone. So new names, moves and speed-ups leave its figures as they are, while another
loss, mask or default changes them.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

#: Relative difference at which a repeated figure is still the same: float32 sums in
#: another order on another processor differ by less after a few steps.
TOLERANCE = 1e-3
SMALL = 1e-5  # below this, figures are compared as they are
LONG = 8  # lists of more numbers are told by three
TIMES = ("seconds",)  # figures of speed, which no probe has
Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Probe:
    """What a variant's code computed when its probe was taken."""

    figures: dict[str, float]  # by name, the loss of each step first
    taken_at: str  # the commit
    tolerance: float = TOLERANCE  # relative, of each figure
    reason: str | None = None  # why the tolerance is another than `TOLERANCE`

    def differences(self, figures: Mapping[str, float]) -> dict[str, str]:
        """Name the figures that a repeated probe has otherwise, and how."""
        names = [*self.figures, *(name for name in figures if name not in self.figures)]
        return {
            name: f"{self.figures.get(name)} -> {figures.get(name)}"
            for name in names
            if not _alike(self.figures.get(name), figures.get(name), self.tolerance)
        }


def _alike(old: float | None, new: float | None, tolerance: float) -> bool:
    if old is None or new is None:
        return False
    return math.isclose(old, new, rel_tol=tolerance, abs_tol=SMALL)


_losses: ContextVar[list[float] | None] = ContextVar("losses", default=None)


@contextmanager
def probing() -> Iterator[list[float]]:
    """Fix what is random, compute with one thread, and collect the losses whose
    gradients are taken."""
    threads, backward, losses = torch.get_num_threads(), torch.Tensor.backward, []

    def heard(loss: Tensor, *words: Any, **named: Any) -> None:
        losses.append(float(loss.detach()))
        backward(loss, *words, **named)

    token = _losses.set(losses)
    torch.set_num_threads(1)
    try:
        with patch.object(torch.Tensor, "backward", heard):
            yield losses
    finally:
        torch.set_num_threads(threads)
        _losses.reset(token)


def start(model: Module, but: nn.Module | None = None) -> Module:
    """Give a model that is about to be used its first weights if a probe is being
    taken, all but those of a part; elsewhere it is left as it is."""
    if _losses.get() is not None:
        fill(model, but)
    return model


@torch.no_grad()
def fill(model: nn.Module, but: nn.Module | None = None, salt: str = "") -> None:
    """Fill a model with weights that depend on their shapes, not on their names or on
    the order of drawing.

    Weights of one shape are told apart by their rank among those of the same kind; a
    matrix with three times as many rows as columns counts as three, as query, key and
    value do wherever they stand.
    """
    kept = set() if but is None else {id(x) for x in but.parameters()}
    ranks: dict[str, int] = {}
    for module in model.modules():
        for share in ("p", "dropout"):
            if isinstance(getattr(module, share, None), float):
                setattr(module, share, 0.0)
        weights = dict(module.named_parameters(recurse=False))
        matrices = any(weight.dim() > 1 for weight in weights.values())
        packed = any(
            weight.dim() == 2 and weight.shape[0] == 3 * weight.shape[1]
            for weight in weights.values()
        )
        for name, weight in weights.items():
            if id(weight) in kept:
                continue
            kept.add(id(weight))  # a weight in two places is one
            gain = not matrices and "bias" not in name
            kind = "bias" if "bias" in name else "gain" if gain else "weight"
            for part in weight.chunk(3) if packed else (weight,):
                of = f"{kind} {matrices} {tuple(part.shape)}"
                ranks[of] = ranks.get(of, 0) + 1
                part.copy_(_drawn(f"{salt}{of} {ranks[of]}", part.shape, kind))


def _drawn(key: str, shape: Sequence[int], kind: str) -> Tensor:
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
    values = np.random.default_rng(seed).standard_normal(tuple(shape))
    if kind == "weight":
        return torch.from_numpy(values * shape[-1] ** -0.5)
    return torch.from_numpy(0.1 * values + (kind == "gain"))


def figures(
    found: Mapping[str, Any], losses: Sequence[float], but: Sequence[str] = ()
) -> dict[str, float]:
    """Return the losses and what a run found as figures by name, `but` some and its
    speed; a long list as its mean, size and trend."""
    flat = {f"loss {step}": loss for step, loss in enumerate(losses, 1)}
    flat |= _flat("", found, (*TIMES, *but))
    return {name: float(f"{value:.7g}") for name, value in flat.items()}


def _flat(name: str, found: Any, but: Sequence[str]) -> dict[str, float]:
    if isinstance(found, Mapping):
        return {
            inner: value
            for key, part in found.items()
            if key not in but
            for inner, value in _flat(f"{name}/{key}".lstrip("/"), part, but).items()
        }
    if isinstance(found, Sequence) and not isinstance(found, str):
        values = list(_flat("", dict(enumerate(found)), but).values())
        if len(values) <= LONG:
            return {f"{name}/{i}": value for i, value in enumerate(values)}
        table = np.array(values)
        trend = float((table * np.linspace(-1, 1, len(table))).mean())
        size = float(np.sqrt((table**2).mean()))
        return {
            f"{name}/mean": float(table.mean()),
            f"{name}/size": size,
            f"{name}/trend": trend,
        }
    if isinstance(found, bool | int | float | np.number):
        return {name: float(found)}
    return {}
