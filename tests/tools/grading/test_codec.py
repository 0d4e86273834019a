"""Messages between the grader and a student's process: data comes out as it went in,
anything else is refused."""

from __future__ import annotations

import contextlib
import random
import struct
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from fractions import Fraction

import numpy
import pytest
import torch
from cases import for_each
from peers import Pair

from course_tools.grading.bridge.codec import Handle, Reader, Refused, Writer
from course_tools.grading.bridge.peer import PeerGone
from course_tools.grading.bridge.randomness import reachable

VALUES = [
    None,
    True,
    -(2**70),
    0,
    1.5,
    float("inf"),
    2 + 3j,
    "Grüße \ud800",
    b"\x00\xff",
    [1, [2.0, ("a",)], {}],
    {(1, "b"): {2: {3}}},
    frozenset({1}),
    Counter("abba"),
    OrderedDict(b=1, a=2),
    defaultdict(int, {"a": 1}),
    Fraction(1, 3),
    range(3, 9, 2),
    slice(None, 4),
    torch.float16,
    torch.device("cpu"),
    torch.Size([2, 3]),
    ...,
    numpy.float64(0.5),
]


def there_and_back(value: object) -> object:
    return Reader(Writer().message(value)).value()


@for_each("value", VALUES)
def test_data_arrives_with_its_type(value):
    came = there_and_back(value)
    assert came == value
    assert type(came) is type(value)


@for_each(
    "dtype", [torch.bool, torch.int64, torch.bfloat16, torch.float64, torch.complex64]
)
@for_each("shape", [(), (0, 3), (2, 3, 4)])
def test_tensors_arrive_with_type_shape_and_every_bit(dtype, shape):
    tensor = (torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 3).to(
        dtype
    )
    sent = tensor.transpose(0, -1).conj() if len(shape) == 3 else tensor
    came = there_and_back(sent)
    assert (type(came), came.dtype) == (torch.Tensor, dtype)
    assert torch.equal(came, sent)


def test_one_tensor_in_two_places_arrives_as_one():
    tensor = torch.ones(2)
    one, other = there_and_back([tensor, tensor])
    assert one is other


def test_subclasses_of_builtin_types_arrive_as_the_builtin_type():
    class Text(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    class Number(float):
        def __lt__(self, other: object) -> bool:
            return True

    came = there_and_back([Text("a"), Number(2.0)])
    assert [type(value) for value in came] == [str, float]
    assert came != ["b", 2.0]


@for_each("value", [object(), lambda: None, torch.nn.Linear(1, 1), iter([])])
def test_what_is_no_data_is_refused_by_the_sender(value):
    with pytest.raises(Refused, match="is no data"):
        Writer().message(value)


def test_nesting_without_an_end_is_refused():
    itself: list = []
    itself.append(itself)
    with pytest.raises(Refused, match="nested deeper"):
        Writer().message(itself)


def test_random_bytes_are_refused_and_nothing_else_happens():
    chance = random.Random(1)
    good = Writer().message([torch.ones(2, 3), {"a": [1, 2.0, "b"]}, numpy.arange(3)])
    for _ in range(4000):
        data = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = (
            bytes(data[: chance.randint(1, len(data))])
            if chance.random() < 0.3
            else bytes(data)
        )
        try:
            Reader(cut).value()
        except Refused:
            continue


@pytest.mark.parametrize("count", [2**40, 2**63])
def test_a_message_that_announces_more_than_it_holds_takes_no_memory(count):
    with pytest.raises(Refused, match=r"announces more|ends in the middle"):
        Reader(struct.pack("<QQ", 0, 0) + b"l" + struct.pack("<Q", count)).value()


def test_truth_values_other_than_0_and_1_are_refused():
    message = Writer().message(torch.tensor([True, False]))
    with pytest.raises(Refused, match="truth values"):
        Reader(b"\x07\x00".join(message.rsplit(b"\x01\x00", 1))).value()


def test_a_handle_is_refused_where_none_is_expected():
    message = Writer(handle=lambda value: Handle(True, "k", "function", "f")).message(
        print
    )
    with pytest.raises(Refused):
        Reader(message).value()


def test_only_a_state_that_drawing_leads_to_is_accepted():
    generator = torch.Generator().manual_seed(5)
    before = generator.get_state()
    torch.randn(5, 7, 13, generator=generator)
    torch.randperm(1000, generator=generator)
    after = generator.get_state()
    accepted = reachable(before, after.numpy().tobytes())
    assert accepted is not None
    follow = torch.Generator()
    follow.set_state(accepted)
    assert torch.equal(
        torch.rand(9, generator=follow), torch.rand(9, generator=generator)
    )
    other = torch.Generator().manual_seed(6).get_state().numpy().tobytes()
    assert reachable(before, other) is None


def test_gradients_flow_through_a_function_on_the_other_side():
    pair = Pair({"f": lambda x, w: (x**3 * w).sum()})
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([5.0, 7.0], requires_grad=True)
    (2 * pair.call("f", 3 * x, w)).backward()
    assert x.grad.tolist() == [2 * 27 * 3 * 5.0, 2 * 27 * 3 * 4 * 7.0]
    assert w.grad.tolist() == [2 * 27.0, 2 * 27 * 8.0]


def test_gradients_flow_through_a_function_that_is_called_back():
    pair = Pair({"f": lambda g, x: g(x).sum() * 2})
    weight = torch.tensor(3.0, requires_grad=True)
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    pair.call("f", lambda y: weight * y * y, x).backward()
    assert x.grad.tolist() == [12.0, 48.0]
    assert weight.grad.item() == 34.0


def test_what_a_function_changes_in_its_arguments_is_changed_here():
    def change(tensor: torch.Tensor, items: list, table: dict) -> None:
        tensor.add_(1)
        items.append(4)
        table["inner"].clear()

    pair = Pair({"change": change})
    tensor, items, table = torch.zeros(2), [1], {"inner": [2, 3]}
    inner = table["inner"]
    pair.call("change", tensor, items, table)
    assert (tensor.tolist(), items, inner) == ([1.0, 1.0], [1, 4], [])


def test_what_is_changed_in_containers_within_tuples_is_changed_here():
    """A comparing test hands over its calls as a list of (args, kwargs)."""

    def change(calls: list) -> None:
        for (words, (table, count)), _ in calls:
            words.pop()
            table["seen"] = count

    pair = Pair({"change": change})
    words, table = ["a", "b"], {}
    pair.call("change", [((words, (table, 7)), {})])
    assert (words, table) == (["a"], {"seen": 7})


def test_an_error_arrives_as_the_builtin_one():
    class Own(KeyError):
        pass

    def fail(kind: str) -> None:
        raise {"own": Own, "value": ValueError, "exit": SystemExit}[kind]("why")

    pair = Pair({"fail": fail})
    for kind, error in (("own", KeyError), ("value", ValueError), ("exit", Exception)):
        with pytest.raises(error, match="why"):
            pair.call("fail", kind)


def test_an_assertion_in_a_call_back_cannot_be_caught_by_the_student():
    def swallow(step: object) -> int:
        with contextlib.suppress(BaseException):
            step()
        return 7

    def step() -> None:
        raise AssertionError("called too often")

    pair = Pair({"swallow": swallow})
    with pytest.raises(AssertionError, match="called too often"):
        pair.call("swallow", step)
    assert pair.call("swallow", lambda: None) == 7


def test_random_numbers_come_from_one_stream():
    pair = Pair({"draw": lambda g: torch.rand(3, generator=g)})
    generator = torch.Generator().manual_seed(3)
    reference = torch.Generator().manual_seed(3)
    drawn = [
        pair.call("draw", generator),
        torch.rand(2, generator=generator),
        pair.call("draw", generator),
    ]
    wanted = [torch.rand(size, generator=reference) for size in (3, 2, 3)]
    assert all(
        torch.equal(one, other) for one, other in zip(drawn, wanted, strict=True)
    )


def test_silence_ends_at_the_deadline():
    pair = Pair({"wait": threading.Event().wait})
    pair.asking.deadline = time.monotonic() + 0.2
    with pytest.raises(PeerGone, match="late"):
        pair.call("wait")
