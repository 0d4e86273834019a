"""Hidden tests that compare: an answer and an independent reference on many inputs.

``solutions/<name>/hidden.py`` states a :class:`Comparison` for each function that a
student writes: a generator of legal inputs, drawn from one seed, and a reference. A
line ``# {compare:function}`` in a hidden test stands for it
(:mod:`course_tools.grading.assignments.comparisons`): the text of this module and of
``hidden.py`` goes into the cell, and runs there. So it uses torch and Python alone.

Compared are outputs (types, dtypes, shapes, values, errors), gradients with respect to
every float input, that inputs stay as they were, and that a second call, in another
order and without gradients, gives the same. Inputs of one kind come after each other;
the refusal names the first kind that parts, in words, without its values.

What a function does is written down here, as plain data; what parts, and in which
words, is in :mod:`course_tools.grading.assignments.parting`.
"""

import functools
import hashlib
import inspect
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

#: Sizes that are no squares and no powers of two, and differ from each other.
SIZES = (3, 5, 6, 7, 10, 11, 12, 13)
#: Of these is what is compared; lists and dicts hold it.
LEAVES = {str, bool, int, float, type(None)}
COMPARISONS: dict[str, "Comparison"] = {}


class Misuse(AssertionError):
    """What a student's function did to something that it was handed."""


@dataclass
class Case:
    """One legal input: of what kind it is, in words, and what to do where it parts."""

    kind: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    hint: str = ""
    gradients: bool = True
    tolerance: float = 0.0  # 0: that of the least precise float among the inputs


@dataclass
class Comparison:
    """A student's function, its legal inputs and what it must give for them."""

    label: str  # what the line ``# {compare:label}`` says
    cases: Callable[["Draw"], Iterator[Case]]
    #: Where the text leaves something open there are several: each output must agree
    #: with one of them.
    references: tuple[Callable[..., Any], ...]
    outputs: tuple[str, ...]  # what it returns, in words: one, or one for each part
    name: str = ""  # of the student's function, where the label is another
    #: Of a class: what is done with it. It gets the class, a reference or a student's.
    use: Callable[..., Any] | None = None
    #: What ``use`` gets besides, by keyword: the notebook's, or ``hidden.py``'s.
    given: tuple[str, ...] = ()
    exact_zeros: bool = False  # where the reference gives 0, nothing else will do

    def __post_init__(self) -> None:
        COMPARISONS[self.label] = self
        self.name = self.name or self.label


class Draw(random.Random):
    """All chance of a generator of inputs, from one seed."""

    def __init__(self, seed: int, device: str = "cpu") -> None:
        super().__init__(seed)
        self.tensors, self.device = torch.Generator().manual_seed(seed), device

    def sizes(self, count: int) -> list[int]:
        """Sizes that all differ."""
        return self.sample(SIZES[: count + 2], count)

    def normal(
        self, *shape: int, dtype: torch.dtype = torch.float64, scale: float = 1.0
    ) -> torch.Tensor:
        """Random numbers, the same on every machine."""
        made = torch.randn(shape, generator=self.tensors, dtype=torch.float64)
        return (made * scale).to(self.device, dtype)

    def mask(self, *shape: int, share: float = 0.6) -> torch.Tensor:
        """True for a share of the positions, and for one of each row at least."""
        made = torch.rand(shape, generator=self.tensors) < share
        one = torch.randint(shape[-1], (*shape[:-1], 1), generator=self.tensors)
        return made.scatter(-1, one, torch.ones_like(one, dtype=torch.bool)).to(
            self.device
        )


def filled(module: Any, seed: int, dtype: torch.dtype, device: str) -> Any:
    """A module with random weights, by their names, the same on every machine."""
    chance = torch.Generator().manual_seed(seed)
    with torch.no_grad(), torch._C.DisableTorchFunction():
        for _, parameter in sorted(module.named_parameters()):
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=chance))
        return module.to(device=device, dtype=dtype)


def with_gradients(module: Any, call: Callable[..., Any], *inputs: Any) -> Any:
    """What a call gives, and gradients with respect to inputs, then parameters."""
    with torch.enable_grad():
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
        outputs = call(*leaves)
        wanted: list[Any] = [
            *leaves,
            *(p for _, p in sorted(module.named_parameters())),
        ]
        loss: Any = 0.0
        chance = torch.Generator().manual_seed(1)
        for output in tensors(outputs):
            weights = torch.randn(output.shape, generator=chance).to(output)
            loss = loss + (output * weights).sum()
        found = torch.autograd.grad(loss, wanted, allow_unused=True)
    pairs = zip(found, wanted, strict=True)
    return outputs, [torch.zeros_like(w) if f is None else f for f, w in pairs]


def told(value: Any) -> Any:
    """Write a value as what JSON knows: its kind, and what it holds."""
    if type(value) in LEAVES:  # most are: no need to ask what they are instances of
        return [type(value).__name__, value]
    if isinstance(value, torch.Tensor):
        value = torch.Tensor.detach(value)
        numbers = value.double() if value.is_floating_point() else value
        dtype = str(value.dtype).removeprefix("torch.")
        return ["tensor", dtype, list(value.shape), numbers.flatten().tolist()]
    if isinstance(value, int):
        return ["int", int.__add__(value, 0)]
    if isinstance(value, float):
        return ["float", float.__add__(value, 0.0)]
    if isinstance(value, str):
        return ["str", str.__str__(value)]
    if isinstance(value, list | tuple):
        kind: Any = list if isinstance(value, list) else tuple
        return [kind.__name__, [told(part) for part in kind.__iter__(value)]]
    if isinstance(value, set | frozenset):
        return ["set", sorted((told(part) for part in value), key=str)]
    if isinstance(value, dict):
        return ["dict", [[told(key), told(value[key])] for key in dict.__iter__(value)]]
    return ["function" if callable(value) else type(value).__name__, None]


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of numbers that have gradients in a value, in order."""
    if type(value) in LEAVES:
        return []
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    parts = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, list | tuple | dict)
    return [tensor for part in parts for tensor in tensors(part)] if nested else []


def each(function: Callable[..., Any], calls: list[Any]) -> list[Any]:
    """Call a function that is in this process on one input after the other."""
    results: list[Any] = []
    for args, kwargs in calls:
        try:
            results.append(("returned", function(*args, **kwargs)))
        except Misuse:
            raise
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            results.append(("raised", kinds, str(error)))
    return results


def using(one: Comparison, function: Any, names: dict[str, Any]) -> Any:
    """What is called on an input: the function, or what uses the class."""
    if one.use is None:
        return function
    given = {name: names[name] for name in one.given}
    return functools.partial(one.use, function, **given)


def observe(
    one: Comparison, function: Any, seed: int, device: str, names: dict[str, Any]
) -> list[Any]:
    """Call a function on all inputs, and write down what it does.

    In another order it is called again, on inputs that have gradients and on the first
    of each kind of the others.
    """
    function = using(one, function, names)
    # The guard of an assignment looks at what the student's function calls, and at
    # nothing else: to see a call of torch costs more than most calls do.
    with torch._C.DisableTorchFunction():
        cases, again = (list(one.cases(Draw(seed, device))) for _ in range(2))
        before = [told([case.args, case.kwargs]) for case in cases]
    many = getattr(function, "many", lambda calls: each(function, calls))
    with torch.no_grad():
        results = many([(case.args, case.kwargs) for case in cases])
    with torch._C.DisableTorchFunction():
        after = [told([case.args, case.kwargs]) for case in cases]
        leaves, kinds = leaves_of(one, again), [case.kind for case in again]
    twice = [n for n, kind in enumerate(kinds) if leaves[n] or kind not in kinds[:n]]
    calls = [(again[n].args, again[n].kwargs) for n in reversed(twice)]
    with torch.enable_grad():
        seconds = dict(zip(reversed(twice), many(calls), strict=True))
    gradients = iter(_gradients(seconds, leaves, seed))
    rows = enumerate(zip(leaves, results, before, after, strict=True))
    with torch._C.DisableTorchFunction():
        return [
            {
                "result": _row(result),
                "second": _row(seconds[n]) if n in seconds else None,
                "devices": sorted({str(t.device) for t in tensors([result[1:]])}),
                "gradients": [next(gradients) for _ in own],
                # nan is nan where it is written down
                "changed": old != new and json.dumps(old) != json.dumps(new),
            }
            for n, (own, result, old, new) in rows
        ]


def _row(result: Any) -> list[Any]:
    return [result[0], *map(told, result[1:])]


def leaves_of(one: Comparison, cases: list[Case]) -> list[list[torch.Tensor]]:
    """By input, its tensors that are to have gradients."""
    wanted = [one.use is None and case.gradients for case in cases]
    pairs = zip(cases, wanted, strict=True)
    leaves = [tensors([c.args, c.kwargs]) if want else [] for c, want in pairs]
    for leaf in (leaf for row in leaves for leaf in row):
        leaf.requires_grad_()
    return leaves


def _gradients(results: dict[int, Any], leaves: list[Any], seed: int) -> list[Any]:
    """Gradients of a random sum of all outputs, by input."""
    total = torch.zeros((), dtype=torch.float64)
    for number, result in sorted(results.items()):
        chance = torch.Generator().manual_seed(seed + number)
        for output in tensors(list(result[1:2])):
            weights = torch.randn(output.shape, generator=chance, dtype=torch.float64)
            if output.requires_grad:
                total = total + (output.cpu().double() * weights).sum()
    flat = [leaf for row in leaves for leaf in row]
    if not (flat and total.requires_grad):
        return [None for _ in flat]
    found = torch.autograd.grad(total, flat, allow_unused=True)
    return [None if gradient is None else told(gradient) for gradient in found]


def references(label: str, seed: int) -> list[Any]:
    """What is said of each input, and what the references give for it: asked where no
    student's code runs."""
    one = COMPARISONS[label]
    about = [_about(one, case) for case in one.cases(Draw(seed))]
    given = [_given_by(one, ours, seed) for ours in one.references]
    return [list(row) for row in zip(about, *given, strict=True)]


def _about(one: Comparison, case: Case) -> dict[str, Any]:
    names = []
    if one.use is None and case.gradients:
        how = inspect.signature(one.references[0]).bind(*case.args, **case.kwargs)
        names = [
            name for name, value in how.arguments.items() for _ in tensors([value])
        ]
    dtypes = {str(tensor.dtype)[6:] for tensor in tensors([case.args, case.kwargs])}
    said = {"kind": case.kind, "hint": case.hint, "tolerance": case.tolerance}
    return {**said, "names": names, "dtypes": sorted(dtypes)}


def _given_by(one: Comparison, reference: Any, seed: int) -> list[Any]:
    """What a reference gives, and its gradients: it keeps nothing, so one call does."""
    cases = list(one.cases(Draw(seed)))
    leaves = leaves_of(one, cases)
    calls = [(case.args, case.kwargs) for case in cases]
    with torch.set_grad_enabled(any(leaves)):
        results = each(using(one, reference, globals()), calls)
    gradients = iter(_gradients(dict(enumerate(results)), leaves, seed))
    return [
        {"result": _row(result), "gradients": [next(gradients) for _ in own]}
        for own, result in zip(leaves, results, strict=True)
    ]


def key(text: str, label: str, seed: int) -> str:
    """Under which name it is told."""
    return hashlib.sha256(f"{text}\0{label}\0{seed}".encode()).hexdigest()
