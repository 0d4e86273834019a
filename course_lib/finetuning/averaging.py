"""A moving average of a model's weights, kept beside an optimizer.

Late in training the weights wander about a good place, pushed by whichever batch came
last. Their average lies nearer to the middle, and often guesses better than any of
them. It costs one copy of the weights, and no step more.
"""

from typing import Any

import torch

AVERAGE, STEPS = "average", "averaged_steps"


def keep_average(optimizer: torch.optim.Optimizer, decay: float) -> None:
    """Keep an average of what an optimizer trains: after each step a little of the new
    weights goes in.

    Parameters
    ----------
    optimizer
        New. The average is part of its state, so a checkpoint of it holds the average
        too.
    decay
        How much of the average stays at each step, e.g. 0.999: then it reaches about
        1,000 steps back. At the beginning it reaches back less, as the first steps are
        worth forgetting: in step k at most (1 + k) / (10 + k).

    Raises
    ------
    ValueError
        If the decay is no share.

    Notes
    -----
    Polyak and Juditsky 1992; with a decay, and its beginning: Tarvainen and Valpola
    2017, section 3.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.tensor([0.0]))
    >>> optimizer = torch.optim.SGD([weight], lr=1.0)
    >>> keep_average(optimizer, decay=0.25)
    >>> for gradient in (-4.0, -4.0):
    ...     weight.grad = torch.tensor([gradient])
    ...     optimizer.step()
    >>> exchange(optimizer)
    >>> weight.item()
    7.0
    """
    if not 0 < decay < 1:
        raise ValueError(f"decay is {decay}; it is a share between 0 and 1, e.g. 0.999")

    def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for weight in _weights(optimizer):
            state = optimizer.state[weight]
            if AVERAGE not in state:
                state[AVERAGE], state[STEPS] = weight.detach().clone(), torch.tensor(1)
                continue
            state[STEPS] += 1
            steps = int(state[STEPS])
            state[AVERAGE].lerp_(
                weight.detach(), 1 - min(decay, (1 + steps) / (10 + steps))
            )

    optimizer.register_step_post_hook(after)


def exchange(optimizer: torch.optim.Optimizer) -> None:
    """Put the average in the place of the weights and the weights in its place; a
    second call puts both back."""
    weights = _weights(optimizer)
    if any(AVERAGE not in optimizer.state[weight] for weight in weights):
        raise ValueError(
            "there is no average to exchange: call keep_average before the first step"
        )
    with torch.no_grad():
        for weight in weights:
            kept = weight.clone()
            weight.copy_(optimizer.state[weight][AVERAGE])
            optimizer.state[weight][AVERAGE].copy_(kept)


def _weights(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]
