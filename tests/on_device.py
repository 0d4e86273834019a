"""Run tests that name no device on one: `pytest tests/library --device cuda`.

The library's tests make tensors and models where torch puts them, on the CPU.
`OnDevice` puts both on a device, and nothing else: what the library makes stays where
the library puts it, so that a `device=` which it forgot is an error. A test itself may
compute with tensors of both, give them to a model and compare them. Numbers that are
drawn without a generator of the device are drawn on the CPU: a test sees those that it
sees there.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_forward_pre_hook,
    register_module_parameter_registration_hook,
)
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

TESTS = str(Path(__file__).parent)
FACTORIES = {*_device_constructors(), torch.from_numpy}
INITIALISERS = {Tensor.normal_, Tensor.uniform_}
READERS = {Tensor.numpy, Tensor.__array__}
#: What stands between who calls a function or a module of torch, and the mode or hook.
BETWEEN = {torch.nn.functional.__file__, torch.overrides.__file__}
BETWEEN.add(nn.modules.module.__file__)


def _is_called_by_a_test() -> bool:
    """Whether a test calls what calls this, and torch alone is between them."""
    caller = sys._getframe(2)
    while caller.f_code.co_filename in BETWEEN:
        caller = caller.f_back
    return caller.f_code.co_filename.startswith(TESTS)


class OnDevice(TorchFunctionMode):
    """Put what tests make, and all parameters and buffers, on a device, and count what
    is computed there.

    Parameters
    ----------
    device
        Where.
    """

    def __init__(self, device: str):
        super().__init__()
        self.device = torch.device(device)
        self.computed = 0  # calls of torch whose result lies there
        self._hooks: list[Any] = []
        self._owned = WeakIdKeyDictionary()  # a parameter of two modules stays one
        self._assert_close = torch.testing.assert_close

    def __enter__(self) -> "OnDevice":
        self._hooks = [
            register_module_parameter_registration_hook(
                lambda module, name, parameter: self._own(parameter)
            ),
            register_module_buffer_registration_hook(
                lambda module, name, buffer: self._own(buffer)
            ),
            register_module_forward_pre_hook(self._bring_inputs),
        ]
        torch.testing.assert_close = partial(self._assert_close, check_device=False)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.testing.assert_close = self._assert_close
        for hook in self._hooks:
            hook.remove()

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        by_a_test = _is_called_by_a_test()
        if function in FACTORIES:
            if self._is_given_another_s_generator(kwargs):
                return function(
                    *args, **{**kwargs, "device": kwargs["generator"].device}
                ).to(self.device)
            made = function(*args, **kwargs)
            return (
                self._move(made) if by_a_test and kwargs.get("device") is None else made
            )
        if function in READERS and by_a_test:
            return function(args[0].cpu(), *args[1:], **kwargs)
        # torch.nn.init passes it by name
        first = args[0] if args else kwargs.get("tensor")
        if self._is_here(first) and self._draws_on_the_cpu(function, kwargs):
            words = {name: value for name, value in kwargs.items() if name != "tensor"}
            if not function.__name__.endswith("_"):
                return function(first.cpu(), *args[1:], **words).to(self.device)
            drawn = function(
                torch.empty_like(first, device="cpu", requires_grad=False),
                *args[1:],
                **words,
            )
            with torch.no_grad():
                return first.copy_(drawn)
        if by_a_test and any(
            self._is_here(leaf) for leaf in tree_leaves((args, kwargs))
        ):
            args, kwargs = tree_map_only(Tensor, self._bring, (args, kwargs))
        found = function(*args, **kwargs)
        self.computed += self._is_here(found)
        return found

    def _is_here(self, what: Any) -> bool:
        return isinstance(what, Tensor) and what.device.type == self.device.type

    def _bring(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device) if tensor.device.type == "cpu" else tensor

    def _bring_inputs(self, module: nn.Module, inputs: tuple[Any, ...]) -> Any:
        """What a test gives a model by position."""
        if _is_called_by_a_test():
            return tree_map_only(Tensor, self._bring, inputs)
        return None

    def _is_given_another_s_generator(self, kwargs: Mapping[str, Any]) -> bool:
        generator, device = kwargs.get("generator"), kwargs.get("device")
        return (
            generator is not None
            and device is not None
            and torch.device(device).type == self.device.type != generator.device.type
        )

    def _draws_on_the_cpu(
        self, function: Callable[..., Any], kwargs: Mapping[str, Any]
    ) -> bool:
        """Whether a tensor of the device is asked for numbers of the CPU's generator,
        or for its first ones."""
        generator = kwargs.get("generator")
        if generator is None:
            return (
                function in INITIALISERS
                or getattr(function, "__module__", "") == "torch.nn.init"
            )
        return generator.device.type != self.device.type

    def _move(self, tensor: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():  # not to be counted
            return tensor.detach().to(self.device).requires_grad_(tensor.requires_grad)

    def _own(self, tensor: Tensor | None) -> Tensor | None:
        """A parameter or a buffer of a module as it shall be kept; one without values
        stays as it is."""
        if tensor is None or tensor.device.type in (self.device.type, "meta"):
            return tensor
        if tensor not in self._owned:
            moved = self._move(tensor)
            self._owned[tensor] = (
                nn.Parameter(moved, tensor.requires_grad)
                if isinstance(tensor, nn.Parameter)
                else moved
            )
            # transformers notes there which parameters a file has filled
            vars(self._owned[tensor]).update(vars(tensor))
        return self._owned[tensor]
