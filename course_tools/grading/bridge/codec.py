"""Messages that hold data and nothing else, between a grader and a student.

No pickle, no class that the other side chooses, no code. A value that arrives is
rebuilt here as an exact builtin type, a plain tensor or array, or refused with a
:class:`Refused` that says in words what was wrong. A student's process may send any
bytes: :class:`Reader` takes none of them on trust.

A message is a table of tensors, a table of the states of random generators, and one
value that refers to them. Tensors stand in a table of their own so that a receiver can
hang them into its graph of gradients before the value is built. What is no data crosses
as a handle: a name or number under which its own side knows the thing.
"""

import random
import re
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy

from course_tools.grading.bridge.randomness import Generator, state_of
from course_tools.grading.bridge.torch_here import torch

#: Bytes of one message, levels of nesting, values and tensors in one message, bytes of
#: one integer.
MESSAGE_BYTES = 256 * 2**20
DEPTH = 60
VALUES = 3_000_000
TENSORS = 100_000
INTEGER_BYTES = 4096

NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64"
DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name) for name in f"{NAMES} complex64 complex128".split()
}
#: Of collections whose exact type crosses.
TAGS: dict[type, bytes] = {torch.Size: b"z", deque: b"Q", Counter: b"C"}
TAGS |= {OrderedDict: b"O", defaultdict: b"D"}
#: What a value that is broken raises when it is built.
BROKEN = (UnicodeError, TypeError, ValueError, OverflowError, ZeroDivisionError)
#: numpy's names of the types that cross: numbers alone, and none that it would have to
#: parse.
ARRAY = re.compile(r"[<|](b1|[iu][1248]|f(2|4|8|16)|c(8|16))")
LENGTH = struct.Struct("<Q")
DOUBLE = struct.Struct("<d")


class Refused(BaseException):
    """A message, or a value, that cannot cross; the text says why."""


@dataclass(frozen=True)
class Handle:
    """Something that stays where it is: ``mine`` as the sender sees it."""

    mine: bool
    key: str
    kind: str
    name: str
    methods: str = ""  # of an object, by name, with spaces between


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """The numbers of a tensor, in order, whatever its strides."""
    plain = torch.Tensor.detach(tensor)
    if plain.dtype is torch.bfloat16:  # which numpy has not
        plain = plain.view(torch.int16)
    return plain.numpy(force=True).tobytes()


@dataclass
class TensorEntry:
    """A row of the table of tensors: the numbers, and what is said of them."""

    value: torch.Tensor
    requires_grad: bool
    parameter: bool
    # index in the table of the message that this one answers, or one of the following
    same_as: int


#: In place of an index: it was not there; it is a module's own; it is a module's own
#: and you have its numbers.
NEW, OF_MODULE, AS_BEFORE = -1, -2, -3


class Writer:
    """Builds one message."""

    def __init__(
        self,
        handle: Callable[[Any], Handle | None] = lambda value: None,
        given: Callable[[Any], tuple[str, dict[str, Any]] | None] = lambda value: None,
        known: dict[int, int] | None = None,
    ) -> None:
        self.handle, self.given, self.known = handle, given, known or {}
        self.unchanged: Callable[[torch.Tensor], bool] = lambda tensor: False
        self.has_modules = self.sends = False
        # by id, tensors of modules: no results, though they have gradients
        self.leaves: set[int] = set()
        self.tensors: list[torch.Tensor] = []
        self.generators: list[Generator] = []
        self._places: dict[int, int] = {}
        self._kept: list[Any] = []  # an id is good only while its object lives

    def message(self, value: Any) -> bytes:
        """Return the bytes of one message with this value."""
        self.sends = True
        body, head = self.structure(value), bytearray()
        self._number(head, len(self.tensors))
        for tensor in self.tensors:
            self._tensor(head, tensor)
        self._number(head, len(self.generators))
        for generator in self.generators:
            self._text(head, state_of(generator))
        return bytes(head) + body

    def structure(self, value: Any) -> bytes:
        """Return the value without tables, to see whether a call changed it."""
        body = bytearray()
        self._put(body, value, 0)
        return bytes(body)

    @staticmethod
    def _number(out: bytearray, number: int) -> None:
        out += LENGTH.pack(number)

    def _text(self, out: bytearray, text: str | bytes) -> None:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        self._number(out, len(data))
        out += data

    def _tensor(self, out: bytearray, tensor: torch.Tensor) -> None:
        same_as = self.known.get(id(tensor), NEW)
        if same_as == NEW and id(tensor) in self.leaves:
            same_as = AS_BEFORE if self.unchanged(tensor) else OF_MODULE
        wants = tensor.requires_grad + (tensor.requires_grad and not tensor.is_leaf)
        parameter = isinstance(tensor, torch.nn.Parameter)
        out += struct.pack("<qB?", same_as, wants, parameter)
        if same_as >= 0 or same_as == AS_BEFORE:
            return
        name = str(tensor.dtype).removeprefix("torch.")
        dense = tensor.layout == torch.strided and tensor.device.type != "meta"
        if name not in DTYPES or not dense:
            what = f"{tensor.dtype}, {tensor.layout} on {tensor.device}"
            raise Refused(f"a tensor of {what} cannot be sent")
        self._text(out, name)
        self._shape(out, tensor.shape)
        self._text(out, raw_bytes(tensor))

    def _shape(self, out: bytearray, shape: Sequence[int]) -> None:
        out += struct.pack(f"<{len(shape) + 1}Q", len(shape), *shape)

    def _index(self, table: list[Any], item: Any) -> int:
        if id(item) not in self._places:
            self._places[id(item)] = len(table)
            table.append(item)
        return self._places[id(item)]

    def _put(self, out: bytearray, value: Any, depth: int) -> None:
        if depth > DEPTH:
            raise Refused(f"a value is nested deeper than {DEPTH} levels")
        kind = type(value)
        if kind is str:
            out += b"s"
            self._text(out, value)
        elif kind is dict or kind is tuple or kind is list:
            out += b"d" if kind is dict else b"t" if kind is tuple else b"l"
            self._items(out, _flat(value) if kind is dict else tuple(value), depth)
        elif value is None or value is True or value is False or value is Ellipsis:
            out += {None: b"N", True: b"T", False: b"F", Ellipsis: b"e"}[value]
        elif isinstance(value, int):
            out += b"i"
            number = int(value)
            size = number.bit_length() // 8 + 1
            self._text(out, number.to_bytes(size, "little", signed=True))
        elif isinstance(value, torch.Tensor):
            out += b"x"
            self._number(out, self._index(self.tensors, value))
        elif isinstance(value, torch.Generator) or kind is random.Random:
            out += b"g"
            self._number(out, self._index(self.generators, value))
        elif isinstance(value, numpy.ndarray | numpy.generic):
            self._array(out, value)
        elif isinstance(value, float):
            out += b"f" + DOUBLE.pack(float(value))
        elif isinstance(value, complex):
            out += b"c" + DOUBLE.pack(value.real) + DOUBLE.pack(value.imag)
        elif isinstance(value, str):
            out += b"s"
            self._text(out, str.__str__(value))
        elif isinstance(value, bytes | bytearray):
            out += b"b" if isinstance(value, bytes) else b"B"
            self._text(out, bytes(value))
        elif kind is torch.dtype or kind is torch.device:
            out += b"y" if kind is torch.dtype else b"v"
            self._text(out, str(value).removeprefix("torch."))
        elif isinstance(value, PurePath):
            out += b"P"
            self._text(out, str(value))
        elif isinstance(value, Fraction):
            out += b"q"
            self._items(out, (value.numerator, value.denominator), depth)
        elif isinstance(value, range | slice):
            out += b"r" if isinstance(value, range) else b"L"
            self._items(out, (value.start, value.stop, value.step), depth)
        elif (made := self.given(value)) is not None:
            out += b"o"
            self._text(out, made[0])
            self._put(out, made[1], depth + 1)
        elif isinstance(value, torch.Size | tuple | list | deque):
            out += TAGS.get(kind, b"t" if isinstance(value, tuple) else b"l")
            self._items(out, tuple(value), depth)
        elif isinstance(value, set | frozenset):
            out += b"S" if isinstance(value, set) else b"Z"
            self._items(out, sorted(value, key=repr), depth)
        elif isinstance(value, dict):
            tag = TAGS.get(kind, b"d")
            out += tag
            if isinstance(value, defaultdict) and tag == b"D":
                self._text(out, getattr(value.default_factory, "__name__", ""))
            self._items(out, _flat(value), depth)
        elif (handle := self.handle(value)) is not None:
            out += b"h" + struct.pack("<?", handle.mine)
            for text in (handle.key, handle.kind, handle.name, handle.methods):
                self._text(out, text)
        else:
            raise Refused(f"a {kind.__name__} is no data and cannot be sent")

    def _items(self, out: bytearray, items: Any, depth: int) -> None:
        self._kept.append(items)
        self._number(out, len(items))
        for item in items:
            self._put(out, item, depth + 1)

    def _array(self, out: bytearray, value: Any) -> None:
        array = numpy.asarray(value)
        dtype = array.dtype.newbyteorder("<")
        if ARRAY.fullmatch(dtype.str) is None:
            raise Refused(f"an array of {array.dtype} cannot be sent")
        out += b"a" + struct.pack("<?", isinstance(value, numpy.generic))
        self._text(out, dtype.str)
        self._shape(out, array.shape)
        self._text(out, array.astype(dtype).tobytes())


def _flat(value: Any) -> list[Any]:
    """Keys and values of a dict, in turn."""
    return [item for pair in dict.items(value) for item in pair]


#: Of a defaultdict, by name.
FACTORIES = {kind.__name__: kind for kind in (int, float, list, dict, set, str)}
COLLECTIONS: dict[bytes, Any] = {b"l": list, b"t": tuple, b"S": set, b"Z": frozenset}
COLLECTIONS |= {b"Q": deque, b"z": torch.Size, b"d": dict, b"C": Counter}
COLLECTIONS |= {b"O": OrderedDict, b"q": Fraction, b"r": range, b"L": slice}


class Reader:
    """Takes a message apart: tables first and, once they are final, `value`."""

    def __init__(
        self,
        data: bytes,
        handle: Callable[[Handle], Any] | None = None,
        given: Callable[[str, dict[str, Any]], Any] | None = None,
    ) -> None:
        if len(data) > MESSAGE_BYTES:
            raise Refused(
                f"a message of {len(data)} bytes; at most {MESSAGE_BYTES} are taken"
            )
        self._data, self._at, self._values = data, 0, 0
        self._handle, self.given = handle, given
        # whether a row is no leaf of its sender's graph: it may be changed in place
        self.computed: list[bool] = []
        self.entries = [self._tensor() for _ in self._rows(10)]
        self.tensors: list[torch.Tensor] = [entry.value for entry in self.entries]
        self.states = [self._bytes() for _ in self._rows(8)]
        self.generators: list[Generator | None] = [None] * len(self.states)
        # rows that are now tensors of modules that were here before
        self.settled: set[int] = set()
        # what has to wait until all rows are settled
        self.later: list[Callable[[], None]] = []
        self._places: dict[int, int] = {}

    def place_of(self, tensor: torch.Tensor) -> int | None:
        """The row of a tensor of this message."""
        return self._places.get(id(tensor))

    def is_here(self, row: int | None) -> bool:
        """Whether the numbers of a row were not sent because this side has them."""
        return row is not None and self.entries[row].same_as == AS_BEFORE

    def settle(self, row: int, tensor: torch.Tensor) -> None:
        """Let a row be this tensor from now on."""
        self.tensors[row] = tensor
        self._places[id(tensor)] = row
        self.settled.add(row)

    def value(self) -> Any:
        """Build the message's value; it must end where the message ends."""
        self._places = {id(tensor): row for row, tensor in enumerate(self.tensors)}
        try:
            value = self._take(0)
            for do in self.later:
                do()
        except (*BROKEN, RuntimeError) as error:
            raise Refused(f"a broken value: {type(error).__name__}: {error}") from error
        if self._at != len(self._data):
            raise Refused("bytes are left over behind a value")
        return value

    def _raw(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise Refused("a message ends in the middle of a value")
        self._at += size
        return self._data[self._at - size : self._at]

    def _number(self) -> int:
        return LENGTH.unpack(self._raw(8))[0]

    def _count(self, least: int = 1) -> int:
        """A number of things that follow, of at least so many bytes each."""
        count = self._number()
        if count * least > len(self._data) - self._at:
            raise Refused("a message announces more than it holds")
        return count

    def _rows(self, least: int) -> range:
        """The rows of a table of tensors or of states."""
        count = self._count(least)
        if count > TENSORS:
            raise Refused(f"a message of {count} tensors; at most {TENSORS} are taken")
        return range(count)

    def _bytes(self) -> bytes:
        return self._raw(self._number())

    def _text(self) -> str:
        return self._bytes().decode("utf-8", "surrogatepass")

    def _shape(self) -> list[int]:
        dimensions = self._count(8)
        if dimensions > 32:
            raise Refused(f"an array of {dimensions} dimensions")
        return [self._number() for _ in range(dimensions)]

    def _tensor(self) -> TensorEntry:
        same_as, wants, parameter = struct.unpack("<qB?", self._raw(10))
        requires_grad = wants > 0
        self.computed.append(wants == 2)
        if same_as >= 0 or same_as == AS_BEFORE:
            return TensorEntry(torch.empty(0), requires_grad, parameter, same_as)
        try:
            name, shape, data = self._text(), self._shape(), self._bytes()
        except UnicodeError as error:
            raise Refused("a tensor whose type has no name") from error
        if name not in DTYPES:
            raise Refused(f"a tensor of type {name!r}")
        count = 1
        for size in shape:
            count *= size
        if count * DTYPES[name].itemsize != len(data):
            raise Refused(f"a tensor of shape {shape} with {len(data)} bytes")
        if name == "bool" and data.translate(None, b"\0\1"):
            raise Refused("a tensor of truth values that holds something else")
        if data:
            flat = torch.frombuffer(bytearray(data), dtype=DTYPES[name])
        else:
            flat = torch.empty(0, dtype=DTYPES[name])
        row, same_as = flat.reshape(shape), max(same_as, OF_MODULE)
        return TensorEntry(row, requires_grad, parameter, same_as)

    def _take(self, depth: int) -> Any:
        self._values += 1
        if depth > DEPTH or self._values > VALUES:
            raise Refused(f"a value of more than {DEPTH} levels or {VALUES} parts")
        tag = self._raw(1)
        if tag in b"NTFe":
            return {b"N": None, b"T": True, b"F": False, b"e": Ellipsis}[tag]
        if tag in b"ltSZdCOQzqrL":
            return self._collection(tag, self._items(depth))
        if tag == b"D":
            name = self._text()
            if name not in ("", *FACTORIES):
                raise Refused(f"a defaultdict of {name}")
            return defaultdict(FACTORIES.get(name), self._pairs(self._items(depth)))
        if tag == b"o":
            name, fields = self._text(), self._take(depth + 1)
            named = type(fields) is dict and all(type(key) is str for key in fields)
            if self.given is None or not named:
                raise Refused(f"an object of class {name}")
            return self.given(name, fields)
        return self._leaf(tag)

    def _items(self, depth: int) -> list[Any]:
        return [self._take(depth + 1) for _ in range(self._count())]

    def _leaf(self, tag: bytes) -> Any:
        if tag == b"x":
            return self._row(self.tensors)
        if tag == b"g":
            generator = self._row(self.generators)
            if generator is None:
                raise Refused("a random generator cannot be handed over here")
            return generator
        if tag == b"i":
            data = self._bytes()
            if len(data) > INTEGER_BYTES:
                raise Refused(f"an integer of {len(data)} bytes")
            return int.from_bytes(data, "little", signed=True)
        if tag == b"f":
            return DOUBLE.unpack(self._raw(8))[0]
        if tag == b"c":
            return complex(*struct.unpack("<dd", self._raw(16)))
        if tag in b"sP":
            return self._text() if tag == b"s" else PurePath(self._text())
        if tag in b"bB":
            return self._bytes() if tag == b"b" else bytearray(self._bytes())
        if tag == b"y":
            if (name := self._text()) not in DTYPES:
                raise Refused(f"a number type {name!r}")
            return DTYPES[name]
        if tag == b"v":
            return torch.device(self._text())
        if tag == b"a":
            return self._array()
        if tag == b"h" and self._handle is not None:
            mine = struct.unpack("<?", self._raw(1))[0]
            return self._handle(Handle(mine, *(self._text() for _ in range(4))))
        raise Refused(f"an unknown mark {tag!r} in a message")

    def _row(self, table: list[Any]) -> Any:
        index = self._number()
        if index >= len(table):
            raise Refused("a value refers to a tensor that was not sent")
        return table[index]

    def _collection(self, tag: bytes, items: list[Any]) -> Any:
        kind = COLLECTIONS[tag]
        if tag in b"dCO":
            return kind(self._pairs(items))
        if tag in b"qrL":
            if tag != b"L" and any(type(item) is not int for item in items):
                raise Refused("a range or fraction of what are no integers")
            return kind(*items)
        return kind(items)

    @staticmethod
    def _pairs(items: list[Any]) -> dict[Any, Any]:
        if len(items) % 2:
            raise Refused("a dict with a key and no value")
        return dict(zip(items[::2], items[1::2], strict=True))

    def _array(self) -> Any:
        scalar = struct.unpack("<?", self._raw(1))[0]
        name, shape, data = self._text(), self._shape(), self._bytes()
        if ARRAY.fullmatch(name) is None:
            raise Refused(f"an array of {name[:40]!r}")
        dtype = numpy.dtype(name)
        array = numpy.frombuffer(data, dtype).reshape(shape).copy()
        return array[()] if scalar and not shape else array
