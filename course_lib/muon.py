"""Muon: a step of equal length in every direction for the matrices inside a model, and AdamW for all else.

Adam divides each number's mean gradient by its size. Muon takes a matrix as a whole: it replaces the mean gradient by
the nearest matrix whose columns (or rows) are orthonormal, so that directions whose gradient is still small move as far
as those that are already learnt (Jordan et al. 2024).

Letters of this module: N matrices of one shape, R rows, C columns.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.training_config import TrainingConfig

__all__ = ["MuonAdamW", "muon", "orthonormal"]

SMALLEST = 16  # rows and columns of a matrix; a head of two classes has two rows, and no directions worth speaking of
MOMENTUM = 0.95
# Jordan et al. 2024: a polynomial that, applied five times, takes a singular value near 1 from almost all of (0, 1].
ITERATIONS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)


def orthonormal(matrices: Float[Tensor, "N R C"]) -> Float[Tensor, "N R C"]:
    """Return, roughly, the nearest matrices with orthonormal rows or columns: all singular values near 1.

    Parameters
    ----------
    matrices
        Any but zero; a matrix of zeros stays one.

    Returns
    -------
    Tensor
        In bfloat16. The singular vectors stay; the values are from about 0.7 to 1.2 unless they were tiny.

    Notes
    -----
    Jordan et al. 2024: Newton-Schulz iterations, which need matrix products alone. Matrices of one shape go through
    them together, which takes less time than one after the other.

    Chapter: pretraining

    Examples
    --------
    >>> stretched = torch.diag(torch.tensor([5.0, 1.0, 0.5])).unsqueeze(0)
    >>> bool(torch.linalg.svdvals(orthonormal(stretched).float()).sub(1).abs().max() < 0.35)
    True
    """
    a, b, c = COEFFICIENTS
    x = matrices.bfloat16()
    wide = x.shape[1] <= x.shape[2]
    x = x if wide else x.mT
    x = x / x.flatten(1).norm(dim=1).clamp(min=1e-7)[:, None, None]
    for _ in range(ITERATIONS):
        squared = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(squared, squared, squared, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT


class MuonAdamW(torch.optim.Optimizer):
    """Muon for some parameters and ``torch.optim.AdamW`` for the others, as one optimizer.

    Parameters
    ----------
    matrices
        Parameters of two dimensions, for Muon.
    others
        Groups of parameters, for AdamW.
    lr, weight_decay
        Of both.
    ratio
        How far Muon moves a number of a matrix, in learning rates, over the 0.2 that AdamW typically does (Liu et al.
        2025, section 2.2).
    betas, eps
        Of AdamW.

    Raises
    ------
    ValueError
        If one of the matrices is none.

    Notes
    -----
    Jordan et al. 2024; Liu et al. 2025. The steps are those of ``torch.optim.Muon`` with ``match_rms_adamw``, which
    takes one matrix after the other.

    Chapter: pretraining

    Examples
    --------
    >>> layer = nn.Linear(30, 20)
    >>> optimizer = MuonAdamW([layer.weight], [{"params": [layer.bias]}], lr=0.01, weight_decay=0.0)
    >>> layer(torch.ones(30)).sum().backward()
    >>> optimizer.step()
    >>> [group["rule"] for group in optimizer.param_groups]
    ['muon', 'adamw']
    """

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
        matrices = list(matrices)
        for matrix in matrices:
            if matrix.dim() != 2:
                raise ValueError(f"Muon moves matrices; a parameter of shape {tuple(matrix.shape)} is none")
        self.ratio = ratio
        self._adamw = torch.optim.AdamW(others, lr, betas, eps, weight_decay)
        groups = [{"params": matrices, "lr": lr, "weight_decay": weight_decay, "rule": "muon"}]
        groups += [{**group, "rule": "adamw"} for group in self._adamw.param_groups]
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move all parameters that have a gradient.

        Parameters
        ----------
        closure
            Computes the loss and its gradients anew, as in torch.

        Returns
        -------
        Any
            What the closure returned.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group["rule"] == "muon":
                self._move(group)
        # It works on our state and on copies of our groups: what was loaded, and the rates of now, are here.
        self._adamw.state = self.state
        self._adamw.param_groups = [{**group} for group in self.param_groups if group["rule"] == "adamw"]
        self._adamw.step()
        return loss

    def _move(self, group: dict[str, Any]) -> None:
        """Let Muon move the matrices of a group."""
        of_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for parameter in group["params"]:
            if parameter.grad is not None:
                of_shape[parameter.shape].append((parameter, self._direction(parameter, parameter.grad)))
        rate = group["lr"] * self.ratio
        for (rows, columns), moves in of_shape.items():
            directions = orthonormal(torch.stack([direction for _, direction in moves]))
            for (parameter, _), direction in zip(moves, directions, strict=True):
                parameter.mul_(1 - rate * group["weight_decay"])
                parameter.add_(direction, alpha=-rate * 0.2 * math.sqrt(max(rows, columns)))

    def _direction(self, parameter: Tensor, gradient: Tensor) -> Tensor:
        """The mean gradient, looking one step ahead (Nesterov)."""
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        mean: Tensor = state["momentum_buffer"]
        mean.lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(mean, MOMENTUM)


def muon(
    model: nn.Module,
    config: TrainingConfig,
    ratio: float = 4.0,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-6,
) -> torch.optim.Optimizer:
    """Muon for the weights of linear and recurrent layers; AdamW for embeddings, small heads, biases and gains.

    Parameters
    ----------
    model
        The model whose trainable parameters it moves. A matrix that an embedding shares is the embedding's. The gates
        of a recurrent layer, which torch keeps as one matrix, are one matrix here too.
    config
        For the learning rate, and for the weight decay, which biases and gains are spared.
    ratio
        As in `MuonAdamW`.
    betas, eps
        Of AdamW; see `course_lib.experiments.pretrain`.

    Returns
    -------
    torch.optim.Optimizer
        The optimizer.

    Notes
    -----
    Jordan et al. 2024: hidden matrices only.

    Chapter: pretraining

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 2))
    >>> [len(group["params"]) for group in muon(model, TrainingConfig(steps=1)).param_groups]
    [1, 2, 4]
    """
    shared = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    inside = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Linear | nn.RNNBase)
        for parameter in module.parameters(recurse=False)
        if parameter.dim() == 2 and min(parameter.shape) >= SMALLEST
    } - shared
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    others = [parameter for parameter in trainable if id(parameter) not in inside]
    groups = [
        {"params": [parameter for parameter in others if parameter.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [parameter for parameter in others if parameter.dim() < 2], "weight_decay": 0.0},
    ]
    return MuonAdamW(
        [parameter for parameter in trainable if id(parameter) in inside],
        [group for group in groups if group["params"]],
        config.learning_rate,
        config.weight_decay,
        ratio,
        betas,
        eps,
    )
