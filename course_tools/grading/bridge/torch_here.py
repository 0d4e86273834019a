"""torch, or where it is not installed something of which nobody has anything.

A course without tensors needs none of it. The names that this package looks up are then
classes that nothing is an instance of, and the few that it calls do nothing.
"""

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
else:
    try:
        import torch
    except ImportError:
        torch = None


class Absent(type):
    """A class whose attributes are such classes, too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(cls, name, Absent(name, (), {}))
        return getattr(cls, name)


class _NoState:
    """The state of a generator that is not there."""

    def numpy(self) -> memoryview:
        return memoryview(b"")


def without_torch() -> Any:
    """Make what stands in torch's place."""
    made: Any = Absent("torch", (), {})
    made.is_grad_enabled = lambda: False
    made.set_grad_enabled = made.no_grad = lambda *_: contextlib.nullcontext()
    made.get_rng_state = _NoState
    made.manual_seed = made.random.manual_seed = made.set_rng_state = lambda *_: None
    made.frombuffer = lambda *_, **__: None
    made.autograd.function.once_differentiable = lambda function: function
    made._C.DisableTorchFunction = contextlib.nullcontext
    made._C._EnableTorchFunction = contextlib.nullcontext
    made.overrides._get_current_function_mode = lambda: None
    return made


HAS_TORCH = torch is not None
if not HAS_TORCH:
    torch = without_torch()
__all__ = ["HAS_TORCH", "torch"]
