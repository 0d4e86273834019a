"""What a student's process may not do to modules, optimizers and objects that a test
handles: one side against another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from cases import for_each
from peers import Pair
from test_modules_across import MIXER, Sides, hidden
from torch import nn

from course_tools.grading.bridge.codec import LENGTH, TENSORS, Reader, Refused
from course_tools.grading.bridge.errors import StudentError
from course_tools.grading.bridge.watched import Noting, show
from course_tools.grading.run.given_objects import interfaces


def test_a_backward_changes_no_weights_here():
    def late(self: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
        class Late(torch.autograd.Function):
            @staticmethod
            def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
                return x.clone()

            @staticmethod
            def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
                self.gain.data.zero_()
                self.drop(self.train())
                return gradient

        return Late.apply(hidden)

    class Listens(nn.Module):
        calls = 0

        def forward(self, module: nn.Module) -> None:
            self.calls += 1

    mine, _ = Sides(late).pair(5, 7)
    mine.drop = Listens()
    mine.eval()(hidden(2, 5)).sum().backward()
    assert mine.drop.calls == 1
    assert (mine.gain == 1).all()
    assert not mine.training


def test_a_forward_takes_no_step_of_an_optimizer_that_it_has_kept():
    kept: list[torch.optim.Optimizer] = []

    def step(self: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
        kept[0].step()
        return hidden

    sides = Sides(step, keep=lambda model, optimizer: kept.append(optimizer))
    mine, _ = sides.pair(5, 7)
    sides.call("keep", mine, torch.optim.SGD(mine.parameters(), lr=1.0))
    with pytest.raises(Exception, match="nothing is to be trained"):
        mine(hidden(2, 5))


def test_an_error_in_a_stand_in_tells_no_line_of_the_test():
    def dig(call: Callable) -> str:
        try:
            call(3)
        except ValueError as error:
            return error.trace_there + repr(error.__cause__)  # type: ignore[attr-defined]
        return "no error"

    def stand_in(x: int) -> None:
        raise ValueError("not this")

    assert Sides(dig=dig).call("dig", stand_in) == "None"


def test_what_ends_a_test_is_not_swallowed_in_a_stand_in():
    class TooSlow(BaseException):
        pass

    def swallow(call: Callable) -> int:
        try:
            call()
        except Exception:
            return 1
        return 2

    def stand_in() -> None:
        raise TooSlow

    with pytest.raises(TooSlow):
        Sides(swallow=swallow).call("swallow", stand_in)


def test_a_stop_of_an_iteration_ends_no_loop_here():
    def stop() -> None:
        raise StopIteration

    sides = Sides(stop=stop)
    with pytest.raises(StudentError):
        sides.call("stop")


def test_an_object_of_a_given_class_has_the_methods_that_are_given():
    class Config:
        width = 3

        def check(self) -> bool:
            return False

    def forged() -> Config:
        made = Config()
        made.check = lambda: True  # type: ignore[method-assign]
        return made

    sides = Sides(forged=forged, honest=Config)
    for peer in (sides.asking, sides.serving):
        peer.classes = {"Config": Config}
    assert sides.call("honest").check() is False
    with pytest.raises(Refused, match="not the notebook's"):
        sides.call("forged")


def test_a_test_that_watches_sees_the_sizes_of_what_is_made_there():
    def table(x: torch.Tensor) -> torch.Tensor:
        return (x[:, None] * x[None, :]).sum(0)

    with Noting() as noting:
        Sides(table=table).call("table", torch.ones(37))
    assert ((37, 37), "float32") in noting.sizes


def test_what_the_bridge_copies_is_no_call_that_a_test_or_a_guard_sees():
    weights = torch.ones(37)
    with Noting() as noting:
        Sides(nothing=lambda x: None).call("nothing", weights)
    assert not noting.sizes


@for_each(
    "sizes", [3, [3], [((1, -1), "float32")], [((2,), "object")], [((2**50,), "int8")]]
)
def test_sizes_of_a_wrong_form_are_refused(sizes):
    with pytest.raises(Refused):
        show(sizes)


def test_a_table_of_too_many_tensors_is_refused_before_it_is_made():
    rows = TENSORS + 1
    with pytest.raises(Refused, match="tensors"):
        Reader(LENGTH.pack(rows) + bytes(10 * rows + 100))


@pytest.mark.parametrize(
    "part",
    [
        "    @property\n    def size(self):\n        return {}",
        "    @staticmethod\n    def size():\n        return {}",
        "    def __len__(self):\n        return {}",
    ],
)
def test_what_the_student_is_not_asked_for_must_be_given(part):
    solved = MIXER + part.format("self.rows")
    assert interfaces(
        solved, solved.replace("return None", "raise NotImplementedError")
    ).keys() == {"Mixer"}
    assert interfaces(solved, MIXER + part.format("None")) == {}


def test_what_was_computed_here_is_changed_in_place_there_with_one_processs_gradients():
    def zero_first(x: torch.Tensor) -> torch.Tensor:
        x[0] = 0.0
        return (x**2).sum()

    found = []
    for f in (zero_first, lambda x: Sides(f=zero_first).call("f", x)):
        leaf = hidden(3, 2)
        f(leaf * 3).backward()
        found.append(leaf.grad)
    assert torch.equal(*found)


def test_another_type_of_number_crosses_in_a_modules_own_tensor_alone():
    """`parameter.data = other` is what some write who load weights; the test must see
    what they made of the model."""

    def load(model: nn.Module, weight: torch.Tensor) -> None:
        model.weight.data = weight

    def widen(numbers: torch.Tensor) -> None:
        numbers.data = numbers.double()

    sides, layer = Pair({"load": load, "widen": widen}), nn.Linear(3, 2)
    weight = layer.weight
    sides.call("load", layer, torch.full((4, 3), 5.0, dtype=torch.float64))
    assert layer.weight is weight
    assert torch.equal(weight, torch.full((4, 3), 5.0, dtype=torch.float64))
    with pytest.raises(Refused, match="shape or type"):
        sides.call("widen", torch.ones(3))
