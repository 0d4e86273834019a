"""The state of a decoder: any nest of tensors with the batch first, so that a search
can drop and copy its rows."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

State: TypeAlias = Any
"""Nested tuples, lists, dicts and dataclasses of tensors with the batch first; None is
allowed anywhere."""


def reorder_state(state: State, index: Int[Tensor, "N"]) -> State:
    """Pick rows of every tensor in a nested state, as a beam does when hypotheses are
    dropped and copied."""
    return _map_state(
        lambda tensor: tensor.index_select(0, index.to(tensor.device)), state
    )


def _map_state(function: Callable[[Tensor], Any], state: State) -> State:
    if state is None:
        return None
    if isinstance(state, Tensor):
        return function(state)
    if isinstance(state, dict):
        return {key: _map_state(function, value) for key, value in state.items()}
    if isinstance(state, tuple) and hasattr(
        state, "_fields"
    ):  # a named tuple takes its fields one by one
        return type(state)(*(_map_state(function, value) for value in state))
    if isinstance(state, tuple | list):
        return type(state)(_map_state(function, value) for value in state)
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        fields = {
            field.name: getattr(state, field.name)
            for field in dataclasses.fields(state)
        }
        return dataclasses.replace(
            state,
            **{name: _map_state(function, value) for name, value in fields.items()},
        )
    raise TypeError(
        f"the state holds a {type(state).__name__}; build it of tensors, tuples, lists,"
        " dicts, dataclasses and None"
    )


def _tensors(state: State) -> list[Tensor]:
    found: list[Tensor] = []

    def keep(
        tensor: Tensor,
    ) -> Tensor:  # and hand it back: a dataclass may insist on tensors
        found.append(tensor)
        return tensor

    _map_state(keep, state)
    return found


def device_of(state: State) -> torch.device:
    """Return the device of a state's first tensor, or the CPU if it has none."""
    tensors = _tensors(state)
    return tensors[0].device if tensors else torch.device("cpu")


def check_state(state: State, batch_size: int) -> None:
    """Refuse a state whose tensors do not have the batch first."""
    for tensor in _tensors(state):
        if tensor.dim() == 0 or tensor.shape[0] != batch_size:
            raise ValueError(
                f"a tensor of the state has shape {tuple(tensor.shape)}, but batch_size"
                f" is {batch_size}; put the batch first in every tensor (a GRU's hidden"
                " state comes as [layers, batch, hidden])"
            )


def checked_log_probs(
    log_probs: Tensor, rows: int, eos: int, alive: Bool[Tensor, "B"]
) -> Float[Tensor, "B V"]:
    """Return a step function's answer in float32 or better, or refuse what would
    otherwise pass unseen."""
    if log_probs.dim() != 2 or log_probs.shape[0] != rows:
        raise ValueError(
            "the step function returned log-probabilities of shape"
            f" {tuple(log_probs.shape)}; expected ({rows}, V)"
        )
    if not 0 <= eos < log_probs.shape[1] or log_probs.shape[1] < 2:
        raise ValueError(
            f"eos is {eos}, but the step function scores {log_probs.shape[1]} words; "
            "the vocabulary needs <eos> and at least one other word"
        )
    if log_probs.dtype in (torch.float16, torch.bfloat16):
        log_probs = log_probs.float()
    total = log_probs.logsumexp(dim=-1).masked_fill(~alive, 0.0)  # 0 for a distribution
    invalid, impossible, too_much = (
        torch.stack([total.isnan(), total == -math.inf, total > 0.1])
        .any(dim=1)
        .tolist()
    )
    if invalid:
        raise ValueError(
            "the step function returned NaN; check the model's weights and masks before"
            " decoding"
        )
    if impossible:
        raise ValueError(
            "the step function gives every next word the log-probability -inf; allow at"
            " least one"
        )
    if too_much:
        raise ValueError(
            "the step function returned scores whose exponentials sum to more than 1; "
            "apply log_softmax(dim=-1) to logits first"
        )
    return log_probs
