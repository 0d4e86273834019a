"""Look at what a model attends to, whatever the model: hooks on its attention layers
ask for the weights and keep them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from course_lib.attention.multi_head import MultiHeadAttention


@contextmanager
def watch_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """While it is entered, keep the weights ``(B, H, T, S)`` of each call of each
    `MultiHeadAttention` of the model, by the layer's name."""
    weights: dict[str, list[Tensor]] = {}

    def ask(layer: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        return args, kwargs | {"return_weights": True}

    def keep(name: str) -> Any:
        def hook(layer: nn.Module, args: Any, answer: tuple[Tensor, Tensor]) -> Tensor:
            weights[name].append(answer[1])
            return answer[0]

        return hook

    handles = []
    for name, layer in model.named_modules():
        if isinstance(layer, MultiHeadAttention):
            weights[name] = []
            handles.append(layer.register_forward_pre_hook(ask, with_kwargs=True))
            handles.append(layer.register_forward_hook(keep(name)))
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()
