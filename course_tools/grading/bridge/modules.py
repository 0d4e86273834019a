"""Modules and optimizers of two processes: each stays where it was made.

With every call that concerns a module go its parameters, buffers and mode, as data. The
side that gets it keeps one object for it: of the student's class for a module that the
student wrote, of torch's for a layer of torch, and else one of
:mod:`course_tools.grading.bridge.held`, whose ``forward`` and methods are calls back to
the side where it is. A tensor that stands in two places crosses as one tensor, so
shared parameters stay shared; gradients run as through any argument.

What the grader's process takes over: while the student's ``forward`` runs, nothing.
While a function of the student's runs that was handed a module (``load_published(model,
...)``, ``training_step(model, optimizer, ...)``), the values and the mode that it
leaves, for that is what it was to change.
"""

import random
import weakref
from collections.abc import Callable
from typing import Any

from course_tools.grading.bridge.codec import Reader, Refused, Writer
from course_tools.grading.bridge.gradients import like
from course_tools.grading.bridge.held import (
    BARE,
    Held,
    HeldOptimizer,
    methods_of,
    put,
    simple_fields,
)
from course_tools.grading.bridge.torch_here import torch
from course_tools.grading.bridge.watched import as_usual

#: Tensors whose numbers are remembered, and parts that one module may have.
KEPT = 20_000
PARTS = 2000


class Modules:
    """The modules that one side of the pipe has sent and got."""

    def __init__(
        self, strict: bool, call: Callable[..., Any], find: Callable[[str], Any]
    ) -> None:
        self.strict, self.call, self.find = strict, call, find
        self.frozen = 0
        self._mine = "g" if strict else "s"
        self._keys: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.own: dict[str, Any] = {}
        # those that the call which is under way has handed over
        self.offered: set[str] = set()
        self.theirs: dict[str, Any] = {}
        self._made = 0
        # by key, of what form a module was when it was sent last
        self._told: dict[str, Any] = {}
        # and of what form when it came last
        self._rows: dict[str, tuple[list[str], list[str], list[str]]] = {}
        self._numbers: dict[int, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}

    def ask(
        self, method: str, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call a method on the side where the module is."""
        return self.call(f"method:{method}", (module, *args), kwargs)

    def forget(self) -> None:
        """After a test, nothing that it handed over can be called any more."""
        self.own.clear()

    # ---- what is sent

    def _key(self, value: Any) -> str:
        key = vars(value).get("_course_theirs") if isinstance(value, Held) else None
        if key is None and (key := self._keys.get(value)) is None:
            self._made += 1
            key = self._keys[value] = f"{self._mine}{self._made}"
        if key.startswith(self._mine):
            self.own[key] = value
        return key

    def _open(self, key: str) -> bool:
        """Whether this side takes over what comes of a module."""
        if not self.strict or not key.startswith(self._mine):
            return True
        return not self.frozen and key in self.offered

    def fields_of(
        self, writer: Writer, value: Any
    ) -> tuple[str, dict[str, Any]] | None:
        """Say what a module or an optimizer is; None if it is neither."""
        if isinstance(value, torch.nn.Module):
            return "module", self._module(writer, value)
        if isinstance(value, HeldOptimizer):
            held = [p for group in value.param_groups for p in group["params"]]
            writer.leaves.update(map(id, held))
            told = {"key": value.key, "parameters": held}
            return "optimizer", {**told, "gradients": [p.grad for p in held]}
        if isinstance(value, torch.optim.Optimizer) and self.strict:
            groups = [{"params": g["params"], **_plain(g)} for g in value.param_groups]
            self.offered.add(self._key(value))
            return "optimizer", {"key": self._key(value), "groups": groups}
        return None

    def _module(self, writer: Writer, value: torch.nn.Module) -> dict[str, Any]:
        """All of a module or, if its form is known, its tensors and modes."""
        writer.has_modules = True
        parts = list(value.modules())
        tables = [
            table for part in parts for table in (part._parameters, part._buffers)
        ]
        held = [t for table in tables for t in table.values() if t is not None]
        writer.leaves.update(map(id, held))
        key, form = self._key(value), [self._form(part) for part in parts]
        self.offered.update(self._key(part) for part in parts)
        if self._told.get(key) == form:
            return {
                "key": key,
                "tensors": held,
                "wants": "".join("01"[t.requires_grad] for t in held),
                "modes": "".join("01"[part.training] for part in parts),
            }
        if writer.sends:
            self._told[key] = form
        return self._in_full(key, value)

    def _form(self, value: torch.nn.Module) -> Any:
        """What has to be told anew if it is another than before."""
        return (
            self._key(value),
            [(name, t is None) for name, t in value._parameters.items()],
            [(name, t is None) for name, t in value._buffers.items()],
            [(name, part and self._key(part)) for name, part in value._modules.items()],
            simple_fields(value),
        )

    def _in_full(self, key: str, value: torch.nn.Module) -> dict[str, Any]:
        parameters = value._parameters.items()
        told: dict[str, Any] = {
            "key": key,
            "kind": "held",
            "name": type(value).__name__,
            "training": value.training,
            "parameters": {
                n: p if p is None else (p, p.requires_grad) for n, p in parameters
            },
            "buffers": dict(value._buffers),
            "modules": dict(value._modules),
        }
        if not key.startswith(self._mine) or not self.strict:
            return told
        every, fields = vars(value), simple_fields(value)
        told |= {"methods": methods_of(value), "fields": fields}
        if "_course_begin" in every:
            first = every["_course_fields"]
            new = {n: v for n, v in fields.items() if n not in first or first[n] != v}
            told |= {"kind": "student", "begin": every["_course_begin"]}
            return told | {"fields": new}
        of_torch = getattr(torch.nn, type(value).__name__, None) is type(value)
        if of_torch and not value._forward_hooks:
            own = {n: v for n, v in every.items() if n not in BARE}
            every = {n: v for n, v in own.items() if not n.startswith("_course")}
            try:
                Writer().structure(every)
            except Refused:
                return told
            told |= {"kind": "torch", "fields": every}
        return told

    def note(self, tensor: torch.Tensor) -> None:
        """Remember that both sides have these numbers of a module's tensor."""
        if len(self._numbers) > KEPT:
            self._numbers.clear()
        self._numbers[id(tensor)] = (weakref.ref(tensor), tensor.detach().clone())

    def unchanged(self, tensor: torch.Tensor) -> bool:
        """Say whether the other side has these numbers; if not, it will."""
        held, then = self._numbers.get(id(tensor), (lambda: None, tensor))
        same = held() is tensor and then.dtype == tensor.dtype
        if same and torch.equal(then, tensor):
            return True
        self.note(tensor)
        return False

    def forget_numbers(self) -> None:
        """After an error it is not sure what the other side has."""
        self._numbers.clear()
        self._told.clear()

    # ---- what comes

    def rebuild(self, reader: Reader, name: str, fields: dict[str, Any]) -> Any:
        """Give the object that a message speaks of, with the values that it tells."""
        key = fields.get("key")
        if type(key) is not str or key[:1] not in ("g", "s"):
            raise Refused("a module that has no key")
        if name == "optimizer":
            return self._optimizer(reader, key, fields)
        if key.startswith(self._mine):
            if key not in self.own:
                raise Refused("a module that was never handed out")
            mine = self.own[key]
            if not isinstance(mine, torch.nn.Module):
                raise Refused("an object that is no module")
        else:
            mine = self.theirs.get(key)
        if "tensors" in fields:
            if mine is None:
                raise Refused("a module of which nothing is known")
            self._again(reader, key, mine, fields)
            return mine
        tables = [fields.get(part) for part in ("parameters", "buffers", "modules")]
        if type(fields.get("training")) is not bool or not all(map(_is_named, tables)):
            raise Refused("a module of a form that no module has")
        new = mine is None
        if mine is None:
            mine = self._make(fields)
            mine.__dict__["_course_theirs"] = key
            self._keys[mine] = key
            self.theirs[key] = mine
        self._take(reader, mine, fields, new)
        parts = [part for part in fields["modules"].values() if part is not None]
        self._rows[key] = (
            [name for name, pair in fields["parameters"].items() if pair is not None],
            [name for name, value in fields["buffers"].items() if value is not None],
            [self._key(part) for part in parts],
        )
        return mine

    def _again(
        self, reader: Reader, key: str, mine: torch.nn.Module, fields: dict[str, Any]
    ) -> None:
        """Take the tensors and modes of a module whose form came before."""
        keys = self._all_keys(key, {})
        parts = [
            (self.own if k[:1] == self._mine else self.theirs).get(k) for k in keys
        ]
        rows = [
            (part._parameters if number == 0 else part._buffers, name, self._open(k))
            for k, part in zip(keys, parts, strict=True)
            for number in (0, 1)
            for name in self._rows.get(k, ([], [], []))[number]
            if isinstance(part, torch.nn.Module)
        ]
        tensors, wants, modes = (fields.get(n) for n in ("tensors", "wants", "modes"))
        if type(tensors) is not list or type(wants) is not str:
            raise Refused("a module of a form that no module has")
        if type(modes) is not str or len(modes) != len(parts) or None in parts:
            raise Refused("a module of another form than before")
        if not len(tensors) == len(wants) == len(rows):
            raise Refused("a module of another form than before")
        for (table, name, open_), tensor, want in zip(
            rows, tensors, wants, strict=True
        ):
            if not isinstance(tensor, torch.Tensor):
                raise Refused("a parameter of a form that no parameter has")
            parameter = isinstance(table.get(name), torch.nn.Parameter)
            wish = want == "1" if parameter else None
            self._tensor(reader, table, name, tensor, wish, new=False, open_=open_)
        for k, part, mode in zip(keys, parts, modes, strict=True):
            if part is not None and self._open(k):
                part.training = mode == "1"

    def _all_keys(self, key: str, seen: dict[str, None]) -> dict[str, None]:
        """The keys of a module and its parts, once each, as ``modules()``."""
        if key not in seen:
            seen[key] = None
            for part in self._rows.get(key, ([], [], []))[2]:
                self._all_keys(part, seen)
        return seen

    def _make(self, fields: dict[str, Any]) -> torch.nn.Module:
        kind, name = fields.get("kind"), str(fields.get("name"))[:80]
        if not self.strict and kind == "student":
            states = torch.get_rng_state(), random.getstate()
            args, kwargs = fields["begin"]
            try:
                return as_usual(self.find(name), *args, **kwargs)
            finally:
                torch.set_rng_state(states[0])
                random.setstate(states[1])
        # a list or a dict holds modules, and does nothing of its own
        of_torch = not self.strict and kind == "torch"
        if of_torch or name in ("ModuleList", "ModuleDict"):
            made: torch.nn.Module = object.__new__(getattr(torch.nn, name))
            torch.nn.Module.__init__(made)
            return made
        name = name if name.isidentifier() else "Module"
        held = type(name, (Held,), {"across": self})()
        # the grader asks for what it knows of, never for what a student's process names
        if not self.strict:
            held.__dict__["_course_methods"] = fields["methods"]
        return held

    def _take(
        self, reader: Reader, mine: torch.nn.Module, fields: dict[str, Any], new: bool
    ) -> None:
        """Let a module hold the values that came, and the message its tensors."""
        open_ = self._open(fields["key"])
        for name, pair in fields["parameters"].items():
            if pair is None and (new or not self.strict):
                mine._parameters[name] = None
            elif pair is not None:
                two = type(pair) is tuple and len(pair) == 2
                if not two or not isinstance(pair[0], torch.Tensor):
                    raise Refused("a parameter of a form that no parameter has")
                table, wants = mine._parameters, pair[1] is True
                self._tensor(reader, table, name, pair[0], wants, new, open_)
        for name, value in fields["buffers"].items():
            if value is None and (new or not self.strict):
                mine._buffers[name] = None
            elif isinstance(value, torch.Tensor):
                self._tensor(reader, mine._buffers, name, value, None, new, open_)
        if open_:
            mine.training = fields["training"]
        if new or not self.strict:
            for name, part in fields["modules"].items():
                if part is not None and not isinstance(part, torch.nn.Module):
                    raise Refused("a part of a module that is no module")
                mine._modules[name] = part
        if not self.strict and type(fields.get("fields")) is dict:
            mine.__dict__.update(fields["fields"])

    def _tensor(
        self,
        reader: Reader,
        table: dict[str, Any],
        name: str,
        value: torch.Tensor,
        wants: bool | None,
        new: bool,
        open_: bool,
    ) -> None:
        index = reader.place_of(value)
        held = table.get(name)
        # it stands in another place, too
        if index is not None and index in reader.settled:
            if new or not self.strict:
                table[name] = value
            return
        if held is None and not (new or not self.strict):
            return
        if reader.is_here(index):
            if held is None:
                raise Refused("numbers that were never sent")
        elif new or held is None:
            if wants is None:
                held = value.detach()
            elif not (value.is_floating_point() or value.is_complex()):
                raise Refused("a parameter of whole numbers")
            elif isinstance(value, torch.nn.Parameter):
                held = value
            else:
                held = torch.nn.Parameter(value.detach(), wants)
            table[name] = held
            self.note(held)
        elif open_:
            put(held, value)
            self.note(held)
        if open_ and wants is not None and held.requires_grad != wants:
            held.requires_grad_(wants)
        if index is not None:
            reader.settle(index, held)

    def _optimizer(self, reader: Reader, key: str, fields: dict[str, Any]) -> Any:
        if self.strict:
            mine = self.own.get(key)
            if not isinstance(mine, torch.optim.Optimizer):
                raise Refused("an optimizer that was never handed out")
            held = [p for group in mine.param_groups for p in group["params"]]
            values, gradients = fields.get("parameters"), fields.get("gradients")
            if type(values) is not list or type(gradients) is not list:
                raise Refused("an optimizer of a form that no optimizer has")
            if not len(values) == len(gradients) == len(held):
                raise Refused(
                    "an optimizer with other parameters than it was handed out with"
                )
            for p, value, gradient in zip(held, values, gradients, strict=True):
                index = reader.place_of(value)
                for given in (None if reader.is_here(index) else value, gradient):
                    if given is not None and like(given) != like(p):
                        raise Refused(
                            "a gradient that is not of its parameter's shape and type"
                        )
                if self._open(key) and not reader.is_here(index):
                    put(p, value)
                    self.note(p)
                if self._open(key):
                    p.grad = None if gradient is None else gradient.detach().clone()
                if index is not None and index not in reader.settled:
                    reader.settle(index, p)
            return mine
        if key not in self.theirs:
            groups = fields["groups"]
            places = [[reader.place_of(p) for p in group["params"]] for group in groups]
            made: Any = object.__new__(HeldOptimizer)

            def settle() -> None:
                table = reader.tensors
                rows = [[table[i] for i in row if i is not None] for row in places]
                pairs = zip(groups, rows, strict=True)
                settled = [{**group, "params": row} for group, row in pairs]
                HeldOptimizer.__init__(made, self, key, settled)

            reader.later.append(settle)
            self.theirs[key] = made
        return self.theirs[key]

    # ---- what is asked

    def method(self, name: str) -> Callable[..., Any]:
        """Give the function that serves calls of this method."""

        def serve(module: Any, *args: Any, **kwargs: Any) -> Any:
            optimizer = isinstance(module, torch.optim.Optimizer)
            if self.strict and not any(module is own for own in self.own.values()):
                raise Refused("a method of an object that was never handed out")
            if self.strict and self.frozen and optimizer:
                raise Refused("a step of an optimizer where nothing is to be trained")
            if name == "forward" and isinstance(module, torch.nn.Module):
                return module(*args, **kwargs)
            step = optimizer and name == "step"
            if self.strict and not step and name not in methods_of(module):
                kind = type(module).__name__
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            return getattr(module, name)(*args, **kwargs)

        return serve


def _plain(group: dict[str, Any]) -> dict[str, Any]:
    plain = (int, float, bool, type(None), tuple)
    return {name: value for name, value in group.items() if type(value) in plain}


def _is_named(table: Any) -> bool:
    """Whether this is a dict by names, and not too large."""
    if type(table) is not dict or len(table) > PARTS:
        return False
    return all(type(name) is str for name in table)
