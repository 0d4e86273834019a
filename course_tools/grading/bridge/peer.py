"""One process calls another's functions with data, gradients and randomness.

The grader's referee and the student's process each hold a :class:`Peer`. What is no
data crosses as a handle that can be called back over the same pipe, while the call
lasts. What a function changes in its arguments is changed in the caller's, too. A
result that depends on arguments with gradients stands in the caller's graph: its
``backward`` asks the other side.

The referee's peer is ``strict``: it lets the other side call what it was handed and
nothing else, waits no longer than its deadline, and rebuilds errors as builtin
exceptions.
"""

import socket
import struct
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from course_tools.grading.bridge.codec import (
    MESSAGE_BYTES,
    Handle,
    Reader,
    Refused,
    Writer,
)
from course_tools.grading.bridge.errors import describe, rebuild
from course_tools.grading.bridge.gradients import (
    content,
    hang_in,
    like,
    now_shared,
    place,
    share,
)
from course_tools.grading.bridge.held import (
    HeldObject,
    RemoteFunction,
    methods_of,
    places_of_tensors,
    put,
    transplant,
)
from course_tools.grading.bridge.modules import Modules
from course_tools.grading.bridge.randomness import (
    Randomness,
    draw_on,
    state_of,
    with_state,
)
from course_tools.grading.bridge.torch_here import torch
from course_tools.grading.bridge.watched import (
    Noting,
    as_usual,
    show,
    unwatched,
    watching,
)

ASK, ANSWER = b"?", b"!"
HEAD = struct.Struct("<cQ")
CALLS_DEEP = 30
#: Calls whose graph of gradients is kept, the latest.
GRAPHS = 200


class PeerGone(BaseException):
    """The other process ended, hangs or writes nonsense; no test catches it."""


class Peer:
    """One end of the pipe."""

    def __init__(
        self,
        connection: socket.socket,
        strict: bool,
        find: Callable[[str], Any] | None = None,
    ) -> None:
        self.connection, self.strict, self.find = connection, strict, find
        self.exports: dict[str, Any] = {}
        self.classes: dict[str, type] = {}
        self.handlers: dict[str, Callable[..., Any]] = {}
        self.modules = Modules(strict, self.call, lambda name: self._of(f"name:{name}"))
        self.make: Callable[[Handle], Any] = self._far_object
        self.deadline = float("inf")
        self.failed_call_back: BaseException | None = None
        self.randomness = Randomness()
        self._graphs: dict[int, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
        self._calls = self._deep = self._exported = 0
        self._came = bytearray()

    # ---- bytes

    def _remaining(self) -> float | None:
        if self.deadline == float("inf"):
            return None
        return max(self.deadline - time.monotonic(), 0.001)

    def _send(self, mark: bytes, data: bytes) -> None:
        if len(data) > MESSAGE_BYTES:
            size = f"{len(data) / 2**20:.0f} MiB"
            raise Refused(f"a value of {size} is too large to be sent")
        self._in_time(self.connection.sendall, HEAD.pack(mark, len(data)) + data)

    def _in_time(self, act: Callable[[Any], Any], what: Any) -> Any:
        left = self._remaining()
        try:
            if left != self.connection.gettimeout():  # to set it asks the system
                self.connection.settimeout(left)
            return act(what)
        except TimeoutError:
            raise PeerGone("late") from None
        except OSError as error:
            raise PeerGone("ended") from error

    def _receive_bytes(self, size: int) -> bytes:
        """So many bytes of those that are there or come, as a rule all at once."""
        while (missing := size - len(self._came)) > 0:
            most = min(max(missing, 2**16), 2**20)
            part = self._in_time(self.connection.recv, most)
            if not part:
                raise PeerGone("ended")
            if self.strict and time.monotonic() > self.deadline:
                raise PeerGone("late")
            self._came += part
        data = bytes(self._came[:size])
        del self._came[:size]
        return data

    def receive(self) -> tuple[bytes, bytes]:
        """Wait for one message: whether it asks or answers, and its bytes."""
        mark, size = HEAD.unpack(self._receive_bytes(HEAD.size))
        if mark not in (ASK, ANSWER) or size > MESSAGE_BYTES:
            raise PeerGone("garbled")
        return mark, self._receive_bytes(size)

    # ---- what crosses

    def writer(self, known: dict[int, int] | None = None) -> Writer:
        writer = Writer(self._handle_of, known=known)
        writer.given = partial(self._fields_of, writer)
        writer.unchanged = self.modules.unchanged
        return writer

    def reader(self, data: bytes) -> Reader:
        reader = Reader(data, self._object_of)
        reader.given = partial(self._rebuild, reader)
        return reader

    def _far_object(self, handle: Handle) -> Any:
        key, name, methods = handle.key, handle.name, handle.methods.split()
        if handle.kind == "object":
            return HeldObject(self.modules, key, name, methods)
        return RemoteFunction(self, key, name)

    def _handle_of(self, value: Any) -> Handle | None:
        far = isinstance(value, RemoteFunction | HeldObject)
        key = getattr(value, "_key", None) if far else None
        key = key or getattr(value, "__dict__", {}).get("__course_key__")
        if isinstance(key, str):
            return Handle(False, key, "function", "")
        if self.strict and not callable(value) and type(value).__module__ != "__main__":
            return None
        kind = "class" if isinstance(value, type) else "object"
        if kind == "object" and callable(value) and hasattr(value, "__name__"):
            kind = "function"
        self._exported += 1
        key = f"#{self._exported}"
        self.exports[key] = value
        if self.strict and kind == "object":
            self.modules.own[key] = value
        name = str(getattr(value, "__name__", type(value).__name__))[:80]
        methods = " ".join(methods_of(value)) if kind == "object" else ""
        return Handle(True, key, kind, name, methods)

    def _of(self, key: str) -> Any:
        """What the other side asks for by a key."""
        return self._object_of(Handle(False, key, "", ""))

    def _object_of(self, handle: Handle) -> Any:
        if handle.mine:
            return self.make(handle)
        if handle.key in self.exports:
            return self.exports[handle.key]
        if handle.key.startswith("method:"):
            return self.modules.method(handle.key.removeprefix("method:"))
        if self.strict or self.find is None:
            raise Refused("a handle that was never given out")
        return self.find(handle.key)

    def _fields_of(
        self, writer: Writer, value: Any
    ) -> tuple[str, dict[str, Any]] | None:
        if isinstance(value, torch.nn.Module | torch.optim.Optimizer):
            return self.modules.fields_of(writer, value)
        name = type(value).__name__
        if self.classes.get(name) is not type(value):
            return None
        return name, dict(getattr(value, "__dict__", {}))

    def _rebuild(self, reader: Reader, name: str, fields: dict[str, Any]) -> Any:
        if name in ("module", "optimizer"):
            return self.modules.rebuild(reader, name, fields)
        if name not in self.classes:
            what = f"an object of a class {name[:80]!r}"
            raise Refused(f"{what} that the notebook does not give")
        kind = self.classes[name]
        own = [field for field in fields if callable(getattr(kind, field, None))]
        if self.strict and own:
            raise Refused(f"a {name} whose {own[0][:80]} is not the notebook's")
        made: Any = object.__new__(kind)
        vars(made).update(fields)
        return made

    # ---- asking

    @unwatched
    def ask(self, value: Any) -> Any:
        """Send a request that is no call, and return what is answered."""
        # a backward, too, changes no weights
        frozen, self.modules.frozen = (self.modules.frozen, self.strict)
        try:
            self._send(ASK, self.writer().message(value))
            reader = self.reader(self._await())
            return self._unpack(reader.value(), 2)[1]
        finally:
            self.modules.frozen = frozen

    def _await(self) -> bytes:
        while True:
            mark, data = self.receive()
            if mark == ANSWER:
                return data
            self.answer(data)

    def _unpack(self, value: Any, size: int) -> tuple[Any, ...]:
        if type(value) is tuple and len(value) in (2, size) and value[0] == "raised":
            if len(value) == size > 2:
                return value
            self.modules.forget_numbers()
            raise rebuild(value[1])
        if type(value) is not tuple or len(value) != size or value[0] != "done":
            raise Refused("an answer of a form that no answer has")
        return value

    @unwatched
    def call(self, key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call what the other side knows by this key."""
        self._calls += 1
        self._deep += 1
        call, frozen = self._calls, self.modules.frozen
        self.modules.frozen |= key.startswith("method:")
        if self._deep > CALLS_DEEP:
            raise RecursionError(
                "functions call each other back and forth without an end"
            )
        try:
            if self._deep == 1:
                self.modules.offered.clear()
            writer = self.writer()
            with_gradients = torch.is_grad_enabled()
            watched = self.strict and watching()
            how = with_gradients, self.randomness.to_send(), watched
            message = writer.message(("call", call, key, args, kwargs, *how))
            self._send(ASK, message)
            reader = self.reader(self._await())
            if self.failed_call_back is not None:
                failure, self.failed_call_back = self.failed_call_back, None
                raise failure
            for index, entry in enumerate(reader.entries):
                if entry.same_as >= len(writer.tensors):
                    raise Refused(
                        "an answer that refers to an argument that was not there"
                    )
                if entry.same_as >= 0:
                    reader.tensors[index] = writer.tensors[entry.same_as]
            inputs = [t for t in writer.tensors if t.requires_grad and with_gradients]
            hang_in(self, reader, call, inputs)
            answer = self._unpack(reader.value(), 8)
            done, result, changed, after, states, generators, shared, sizes = answer
            if watched:
                as_usual(show, sizes)
            self._bring_home(writer, changed, generators)
            if not self.modules.frozen:
                share(shared, writer.tensors)
            if after is not None:
                transplant((args, kwargs), after)
            self._go_on_from(states)
            if done == "raised":
                self.modules.forget_numbers()
                raise rebuild(result)
            return result
        finally:
            self._deep -= 1
            self.modules.frozen = frozen

    def _go_on_from(self, states: Any) -> None:
        """Draw on from the other side's random states, as far as this one trusts it."""
        (self.randomness.accept if self.strict else self.randomness.adopt)(states)

    def _bring_home(self, writer: Writer, changed: Any, generators: Any) -> None:
        """Change tensors and generators here as the call changed the copies."""
        formed = type(changed) is dict and type(generators) is list
        if not formed or len(generators) > len(writer.generators):
            raise Refused("an answer of a form that no answer has")
        for index, tensor in changed.items():
            if type(index) is not int or not 0 <= index < len(writer.tensors):
                raise Refused("a change of an argument that was not there")
            mine = writer.tensors[index]
            leaf = id(mine) in writer.leaves
            if self.strict and self.modules.frozen and leaf:
                continue
            floats = isinstance(tensor, torch.Tensor) and tensor.is_floating_point()
            if like(tensor) == like(mine):
                with torch.no_grad():
                    mine.copy_(tensor)
            elif leaf and floats:
                # a module's own tensor, in whose place another was put: `p.data = q`
                put(mine, tensor)
            else:
                change = "a change of an argument's shape or type"
                raise Refused(f"{change}, which cannot be carried over")
            if leaf:
                self.modules.note(mine)
        for mine_generator, state in zip(writer.generators, generators, strict=False):
            if type(state) is bytes:
                draw_on(mine_generator, state)

    # ---- answering

    @unwatched
    def answer(self, data: bytes) -> None:
        """Do what the other side asks for, and send what comes of it."""
        try:
            reader = self.reader(data)
            for index, entry in enumerate(reader.entries):
                value = entry.value
                if entry.parameter:
                    parameter = torch.nn.Parameter(value, entry.requires_grad)
                    reader.tensors[index] = parameter
                elif entry.requires_grad:
                    leaf, computed = value.requires_grad_(), reader.computed[index]
                    reader.tensors[index] = leaf.clone() if computed else leaf
            for index, state in enumerate(reader.states):
                reader.generators[index] = with_state(state)
            request = reader.value()
            if type(request) is not tuple or not request or type(request[0]) is not str:
                raise Refused("a request of a form that no request has")
            asked, *about = request
            handlers = {**self.handlers, "backward": self._serve_backward}
            if asked == "call":
                message = self._serve_call(reader, *about)
            elif asked in handlers:
                message = self.writer().message(
                    ("done", as_usual(handlers[asked], *about))
                )
            else:
                what = f"a request {asked[:40]!r}"
                raise Refused(f"{what} that this side does not serve")
        except PeerGone:
            raise
        except BaseException as error:
            self._failed(error)
            message = self.writer().message(("raised", describe(error, self.strict)))
        self._send(ANSWER, message)

    def _failed(self, error: BaseException) -> None:
        plain = isinstance(error, Exception | Refused)
        if self.strict and (not plain or isinstance(error, AssertionError)):
            self.failed_call_back = error  # the other side could swallow it
        self.modules.forget_numbers()

    def _serve_call(
        self,
        reader: Reader,
        call: int,
        key: str,
        args: tuple,
        kwargs: dict,
        with_gradients: bool,
        states: Any,
        watched: bool = False,
    ) -> bytes:
        if [*map(type, (key, args, kwargs, call))] != [str, tuple, dict, int]:
            raise Refused("a call of a form that no call has")
        function = self._of(key)
        if not callable(function):
            raise TypeError(f"{type(function).__name__!r} object is not callable")
        self._go_on_from(states)
        began, asked = self.writer(), self._calls
        # the other side takes nothing over of what this does to its modules
        of_module = key.startswith("method:")
        given = (args[1:], kwargs) if of_module else (args, kwargs)
        before = began.structure(given), places_of_tensors(given)
        kept = began.leaves if of_module and not self.strict else set()
        seen = [(i, t) for i, t in enumerate(reader.tensors) if id(t) not in kept]
        contents = {i: content(t) for i, t in seen}
        places, failure = [place(tensor) for tensor in reader.tensors], None
        outcome: tuple[str, Any]
        noting = Noting()
        with (
            torch.set_grad_enabled(bool(with_gradients)),
            noting if watched and not self.strict else nullcontext(),
        ):
            try:
                outcome = "done", as_usual(function, *args, **kwargs)
            except PeerGone:
                raise
            # what it has changed by then is changed in the caller's arguments, too
            except BaseException as error:
                outcome, failure = ("raised", describe(error, self.strict)), error
                self._failed(error)
        table = dict(enumerate(reader.tensors))
        changed = {i: table[i] for i, c in contents.items() if content(table[i]) != c}
        ended = self.writer()
        now = ended.structure(given), places_of_tensors(given)
        after = None if now == before else (args, kwargs)
        if began.has_modules and not of_module and asked != self._calls:
            # The other side has seen modules in between: it gets their last state.
            shown = changed.keys() | {i for i in table if id(table[i]) in began.leaves}
            changed = {i: t for i, t in table.items() if i in shown}
            after = (args, kwargs)
        for tensor in changed.values():
            if id(tensor) in began.leaves:
                self.modules.note(tensor)
        known = {id(tensor): index for index, tensor in table.items()}
        drawn = [generator for generator in reader.generators if generator is not None]
        generators = [state_of(generator) for generator in drawn]
        writer = self.writer(known)
        mine = self.randomness.to_send() if self.strict else self.randomness.to_return()
        fresh = {i: t.detach().clone() for i, t in changed.items()}
        shared = [] if of_module else now_shared(reader.tensors, places, ended.tensors)
        try:
            message = writer.message(
                (*outcome, fresh, after, mine, generators, shared, list(noting.sizes))
            )
        except Refused:
            if failure is None:
                raise
            raise failure from None
        old = known.keys() | writer.leaves
        outputs = [t for t in writer.tensors if t.requires_grad and id(t) not in old]
        if outputs:
            rows = zip(reader.tensors, reader.entries, reader.computed, strict=True)
            leaves = [row for row in rows if row[1].requires_grad]
            wanted = [row.value if computed else t for t, row, computed in leaves]
            self._graphs[call] = (outputs, wanted)
            while len(self._graphs) > GRAPHS:
                del self._graphs[next(iter(self._graphs))]
        return message

    def _serve_backward(
        self, call: int, gradients: list[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        if call not in self._graphs or type(gradients) is not list:
            raise Refused(
                "gradients of a call that had none, or that is not among the latest"
                f" {GRAPHS}"
            )
        outputs, inputs = self._graphs[call]
        pairs = zip(outputs, gradients, strict=True)
        own = [(output, given) for output, given in pairs if output.requires_grad]
        ends, given = [output for output, _ in own], [gradient for _, gradient in own]
        # a module's own: what it has gathered is not for this answer
        kept = [tensor.grad for tensor in inputs]
        try:
            for tensor in inputs:
                tensor.grad = None
            torch.autograd.backward(ends, given, retain_graph=True)
            found = [tensor.grad for tensor in inputs]
            return [None if g is None else g.detach().clone() for g in found]
        finally:
            for tensor, gradient in zip(inputs, kept, strict=True):
                tensor.grad = gradient

    def forget(self) -> None:
        """Drop what was handed out: after a test, its call-backs are dead."""
        self.exports.clear()
        self.modules.forget()
        self._graphs.clear()
