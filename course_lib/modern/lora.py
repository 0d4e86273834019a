"""LoRA: adapt a layer by two thin matrices, and leave its own weights alone (Hu et al.
2022).

Other letters: I, features that go into a layer; O, features that come out.
"""

from collections.abc import Collection

from jaxtyping import Float
from torch import Tensor, nn


class LoRALinear(nn.Module):
    r"""A linear layer whose matrix is frozen, with a trained one of low rank added.

    .. math:: x W^\top + b + \frac{\alpha}{r} \, x A^\top B^\top

    Parameters
    ----------
    linear
        The layer; it is not copied, and no longer trained.
    rank
        The r: rows of A and columns of B.
    alpha
        The α, which keeps the size of a step when r changes; r if not given.

    Raises
    ------
    ValueError
        If `rank` is below 1 or above what the matrix can have.

    Notes
    -----
    Hu et al. 2022, section 4.1, equation 3: B starts as 0, so that nothing changes yet.

    Examples
    --------
    >>> layer = LoRALinear(nn.Linear(768, 768), rank=8)
    >>> sum(x.numel() for x in layer.parameters() if x.requires_grad)
    12288
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float | None = None):
        super().__init__()
        if not 1 <= rank <= min(linear.weight.shape):
            raise ValueError(
                f"rank is {rank}; a matrix of {tuple(linear.weight.shape)} has at least"
                f" 1 and at most {min(linear.weight.shape)}"
            )
        self.linear = linear.requires_grad_(False)
        self.down = nn.Parameter(linear.weight.new_empty(rank, linear.in_features))
        self.up = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        nn.init.normal_(self.down, std=linear.in_features**-0.5)
        self.scale = (rank if alpha is None else alpha) / rank

    def forward(self, hidden: Float[Tensor, "*shape I"]) -> Float[Tensor, "*shape O"]:
        """Return the transformed features."""
        thin = hidden @ self.down.T  # (*shape, I) @ (I, r)
        return self.linear(hidden) + self.scale * thin @ self.up.T

    def merge(self) -> nn.Linear:
        """Return the layer with the product added to its matrix: as fast as before."""
        self.linear.weight.data += self.scale * self.up.data @ self.down.data
        return self.linear.requires_grad_(True)


def add_lora(
    model: nn.Module, rank: int, layers: Collection[str], alpha: float | None = None
) -> None:
    """Freeze a model, and put a `LoRALinear` in the place of each linear layer with one
    of these names, e.g. query and value (Hu et al. 2022, section 7.1)."""
    found = [
        (module, name)
        for module in model.modules()
        for name, layer in module.named_children()
        if name in layers and isinstance(layer, nn.Linear)
    ]
    if missing := set(layers) - {name for _, name in found}:
        raise ValueError(f"no linear layer is called {' or '.join(sorted(missing))}")
    model.requires_grad_(False)
    for module, name in found:
        setattr(module, name, LoRALinear(getattr(module, name), rank, alpha))


def merge_lora(model: nn.Module) -> None:
    """Merge all of a model's `LoRALinear`, and let all of its weights be trained."""
    for module in list(model.modules()):
        for name, layer in module.named_children():
            if isinstance(layer, LoRALinear):
                setattr(module, name, layer.merge())
    model.requires_grad_(True)
