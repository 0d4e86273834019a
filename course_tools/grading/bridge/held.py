"""What stands, in one process, for an object of the other.

What of it is numbers is here; what it does is asked where it is
(:mod:`course_tools.grading.bridge.modules`).

From a class of modules that a notebook declares the referee makes one of its own: the
same parts with the same names, made by the instructor's ``__init__`` from the referee's
own torch, and methods that ask the student's process. What a call changed in lists,
dicts and sets that were its arguments is carried home by :func:`transplant`.
"""

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from course_tools.grading.bridge.codec import raw_bytes
from course_tools.grading.bridge.torch_here import torch

if TYPE_CHECKING:
    from course_tools.grading.bridge.modules import Modules
    from course_tools.grading.bridge.peer import Peer


class RemoteFunction:
    """A function of the other side, of which one knows how to call it."""

    def __init__(self, peer: "Peer", key: str, name: str) -> None:
        self._peer, self._key, self.__name__ = peer, key, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._peer.call(self._key, args, kwargs)


class Held(torch.nn.Module):
    """A module of the other side: its numbers are here, what it does is asked there."""

    across: "Modules"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.across.ask("forward", self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name not in vars(self).get("_course_methods", ()):
                raise
        return lambda *args, **kwargs: self.across.ask(name, self, args, kwargs)


class HeldOptimizer(torch.optim.Optimizer):
    """The other side's optimizer: it clears gradients here, and steps there."""

    def __init__(
        self, across: "Modules", key: str, groups: list[dict[str, Any]]
    ) -> None:
        self.across, self.key = across, key
        super().__init__(groups, {})

    def step(self, closure: Any = None) -> Any:
        loss = None if closure is None else closure()
        self.across.ask("step", self, (), {})
        return loss


class HeldObject:
    """An object of the grader's that is no module: its methods are asked there."""

    def __init__(
        self, across: "Modules", key: str, name: str, methods: list[str]
    ) -> None:
        self._across, self._key, self._methods = across, key, methods
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._across.call(self._key, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name not in vars(self).get("_methods", ()):
            raise AttributeError(name)
        return lambda *args, **kwargs: self._across.ask(name, self, args, kwargs)


def put(held: torch.Tensor, value: torch.Tensor) -> None:
    """Write values into a tensor of a graph, unless they are there already."""
    if held is value:
        return
    if (held.shape, held.dtype) != (value.shape, value.dtype):
        held.data = value.detach().clone()
    elif raw_bytes(held) != raw_bytes(value):
        with torch.no_grad():
            held.copy_(value)


def places_of_tensors(
    value: Any, found: list[Any] | None = None, depth: int = 0
) -> list[Any]:
    """Say which tensors stand in modules, to see whether a call puts others."""
    found = [] if found is None else found
    if isinstance(value, torch.nn.Module):
        for part in value.modules():
            tables = [*part._parameters.items(), *part._buffers.items()]
            found += [(name, id(tensor)) for name, tensor in tables]
    elif isinstance(value, tuple | list | dict) and depth < 3:
        for item in value.values() if isinstance(value, dict) else value:
            places_of_tensors(item, found, depth + 1)
    return found


def methods_of(module: Any) -> list[str]:
    """Name the methods that a test wrote for an object: no others may cross."""
    written: dict[str, Any] = {}
    for kind in reversed(type(module).__mro__):
        written.update(vars(kind))
    return [
        name
        for name, value in written.items()
        if type(value) is FunctionType and value.__module__ == "__main__"
        if not name.startswith("_")
    ]


def declare(made: type[torch.nn.Module], ask: Callable[..., Any]) -> None:
    """Let a class of the instructor's ask for what its methods do."""
    for method, function in list(vars(made).items()):
        if callable(function) and not method.startswith("__"):
            setattr(made, method, _asking(ask, method))
    given = made.__init__

    def begin(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        given(self, *args, **kwargs)
        if type(self) is made:
            self.__dict__["_course_begin"] = (args, kwargs)
            self.__dict__["_course_fields"] = simple_fields(self)

    made.__init__ = begin  # type: ignore[method-assign]


def _asking(ask: Callable[..., Any], method: str) -> Callable[..., Any]:
    def asking(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        return ask(method, self, args, kwargs)

    asking.__name__ = asking.__qualname__ = method
    return asking


#: What every module has: none of it is a field of its own.
BARE = frozenset(vars(torch.nn.Module()))
PLAIN = (int, float, bool, str, type(None), tuple)


def simple_fields(module: torch.nn.Module) -> dict[str, Any]:
    """The plain values among the fields of a module."""
    return {
        name: value
        for name, value in vars(module).items()
        if name not in BARE and not name.startswith("_") and type(value) in PLAIN
    }


def transplant(mine: Any, theirs: Any, depth: int = 0) -> None:
    """Make the containers of ``mine`` hold what those of ``theirs`` hold."""
    if depth > 40 or type(mine) is not type(theirs):
        return
    if isinstance(mine, tuple):
        for one, other in zip(mine, theirs, strict=False):
            transplant(one, other, depth + 1)
    elif isinstance(mine, list):
        old = dict(enumerate(mine))
        mine[:] = [_kept(old.get(i), new, depth) for i, new in enumerate(theirs)]
    elif isinstance(mine, dict):
        before = dict(mine)
        mine.clear()
        mine.update(
            {key: _kept(before.get(key), new, depth) for key, new in theirs.items()}
        )
    elif isinstance(mine, set):
        mine.clear()
        mine.update(theirs)


def _kept(mine: Any, theirs: Any, depth: int) -> Any:
    """The old object with its new content if it is a container, else the new; a tuple
    is new, and the containers in it are the old ones."""
    if type(mine) is tuple is type(theirs) and len(mine) == len(theirs) and depth <= 40:
        pairs = zip(mine, theirs, strict=True)
        return tuple(_kept(old, new, depth + 1) for old, new in pairs)
    if isinstance(mine, list | dict | set) and type(mine) is type(theirs):
        transplant(mine, theirs, depth + 1)
        return mine
    return theirs
