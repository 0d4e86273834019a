"""Gradients that run through a call, and memory that a call made shared."""

from typing import Any

from course_tools.grading.bridge.codec import NEW, Reader, Refused, raw_bytes
from course_tools.grading.bridge.torch_here import torch


class _Elsewhere(torch.autograd.Function):
    """Results that the other process computed, as it will their gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        peer: Any,
        call: int,
        results: list[torch.Tensor],
        anchor: torch.Tensor,
        *inputs: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        ctx.peer = peer
        ctx.call = call
        ctx.like = [(tensor.shape, tensor.dtype) for tensor in inputs]
        return tuple(results)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        answer = ctx.peer.ask(("backward", ctx.call, list(gradients)))
        if type(answer) is not list or len(answer) != len(ctx.like):
            raise Refused("gradients that do not belong to the arguments")
        for gradient, (shape, dtype) in zip(answer, ctx.like, strict=True):
            told = type(gradient), *like(gradient)
            if gradient is not None and told != (torch.Tensor, shape, dtype):
                raise Refused("a gradient that is not of its argument's shape and type")
        return None, None, None, None, *answer


def like(value: Any) -> tuple[Any, Any]:
    """The shape and the type of a tensor."""
    return getattr(value, "shape", None), getattr(value, "dtype", None)


def hang_in(peer: Any, reader: Reader, call: int, inputs: list[torch.Tensor]) -> None:
    """Give results that have gradients a place in this side's graph."""
    rows = [
        (index, entry.value)
        for index, entry in enumerate(reader.entries)
        if entry.requires_grad and entry.same_as == NEW
    ]
    if not all(value.is_floating_point() or value.is_complex() for _, value in rows):
        raise Refused("a gradient of whole numbers")
    if rows and torch.is_grad_enabled():
        anchor = torch.zeros((), requires_grad=True)
        raw = [reader.tensors[index] for index, _ in rows]
        hung = _Elsewhere.apply(peer, call, raw, anchor, *inputs)
        for (index, _), tensor in zip(rows, hung, strict=True):
            # what a custom function returns may not be changed in place
            reader.tensors[index] = tensor.clone()


def content(tensor: torch.Tensor) -> Any:
    """What a tensor holds: equal for the same numbers, to the last bit, NaN too."""
    return tensor.shape, tensor.dtype, raw_bytes(tensor)


def place(tensor: torch.Tensor) -> Any:
    """Where and how a tensor's numbers lie: the same place, the same numbers."""
    if not tensor.numel():
        return None
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def now_shared(
    sent: list[torch.Tensor], before: list[Any], after: list[torch.Tensor]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Find tensors that a call put onto others, as ``parameter.data = value``."""
    spots = list(zip(before, sent, strict=True))
    old = {spot: tensor for spot, tensor in spots if spot is not None}
    was = {id(tensor): spot for spot, tensor in spots}
    found = []
    for tensor in {id(t): t for t in [*sent, *after]}.values():
        owner = old.get(spot := place(tensor))
        if owner is None or owner is tensor:
            continue
        if was.get(id(tensor)) != spot and place(owner) == spot:
            found.append((tensor, owner))
    return found


def share(pairs: Any, sent: list[torch.Tensor]) -> None:
    """Let tensors that were sent lie where a call has put the other side's."""
    if type(pairs) is not list:
        raise Refused("an answer of a form that no answer has")
    allowed = {id(tensor) for tensor in sent}
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2 or set(map(id, pair)) - allowed:
            raise Refused("memory of what was not handed over")
        if like(pair[0]) != like(pair[1]):
            raise Refused("memory that cannot be shared")
        pair[0].data = pair[1].detach()
