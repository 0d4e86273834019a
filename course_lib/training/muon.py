"""Muon: a step of equal length in every direction for the matrices inside a model, and
AdamW for all else.

Adam divides each number's mean gradient by its size. Muon takes a matrix as a whole: it
replaces the mean gradient by the nearest matrix whose columns (or rows) are
orthonormal, so that directions whose gradient is still small move as far as those that
are already learnt (Jordan et al. 2024).
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.training.config import TrainingConfig
from course_lib.training.loop import decayed

# rows and columns of a matrix; a head of two classes has two rows, and no directions
# worth speaking of
SMALLEST = 16


class MuonAdamW(torch.optim.Optimizer):
    """``torch.optim.Muon`` for some parameters and ``torch.optim.AdamW`` for the
    others, as one optimizer."""

    def __init__(
        self,
        matrices: Iterable[Tensor],
        others: Iterable[dict[str, Any]],
        lr: float,
        weight_decay: float,
        ratio: float = 1.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ):
        self.ratio = ratio
        self._muon = torch.optim.Muon(
            matrices, lr, weight_decay, adjust_lr_fn="match_rms_adamw"
        )
        self._adamw = torch.optim.AdamW(others, lr, betas, eps, weight_decay)
        groups = [{**group, "rule": "muon"} for group in self._muon.param_groups]
        groups += [{**group, "rule": "adamw"} for group in self._adamw.param_groups]
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move all parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        # Both work on our state and on copies of our groups: what was loaded, and the
        # rates of now, are here.
        for rule, inner in (("muon", self._muon), ("adamw", self._adamw)):
            inner.state = self.state
            inner.param_groups = [
                {**group} for group in self.param_groups if group["rule"] == rule
            ]
        for group in self._muon.param_groups:
            group["lr"] = group["lr"] * self.ratio
        self._muon.step()
        self._adamw.step()
        return loss


def muon(
    model: nn.Module,
    config: TrainingConfig,
    ratio: float = 4.0,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-6,
) -> torch.optim.Optimizer:
    """Muon for the weights of linear and recurrent layers; AdamW for embeddings, small
    heads, biases and gains."""
    modules = list(model.modules())
    shared = {id(x.weight) for x in modules if isinstance(x, nn.Embedding)}
    inside = {
        id(parameter)
        for module in modules
        if isinstance(module, nn.Linear | nn.RNNBase)
        for parameter in module.parameters(recurse=False)
        if parameter.dim() == 2 and min(parameter.shape) >= SMALLEST
    } - shared
    trainable = [each for each in model.parameters() if each.requires_grad]
    others = [each for each in trainable if id(each) not in inside]
    return MuonAdamW(
        [each for each in trainable if id(each) in inside],
        decayed(others, config.weight_decay),
        config.learning_rate,
        config.weight_decay,
        ratio,
        betas,
        eps,
    )
