"""Modules that two processes talk about: numbers, gradients and modes are those of one
process, on both sides."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from peers import Pair
from torch import nn

from course_tools.grading.bridge.codec import Refused
from course_tools.grading.bridge.gradients import share
from course_tools.grading.bridge.held import declare
from course_tools.grading.run.given_objects import interfaces

MIXER = """class Mixer(torch.nn.Module):
    def __init__(self, rows):
        self.rows = rows

    def forward(self, hidden):
        return None
"""


def answer(self: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    return self.second(
        self.drop(torch.relu(self.first(hidden)) * self.gain + self.shift)
    )


def mixer(answer: Callable) -> type[nn.Module]:
    """The class as each of the two processes has it: its beginning is given, its
    forward an answer."""

    class Mixer(nn.Module):
        def __init__(self, rows: int, columns: int, rate: float = 0.0) -> None:
            super().__init__()
            self.rows = rows
            self.first = nn.Linear(rows, columns)
            self.drop = nn.Dropout(rate)
            self.second = nn.Linear(columns, rows, bias=False)
            self.gain = nn.Parameter(torch.ones(columns))
            self.register_buffer("shift", torch.arange(float(columns)))

        forward = answer

    return Mixer


class Sides(Pair):
    """A grader's side and a student's, each with a class Mixer; ``own`` is the
    student's as one process has it."""

    def __init__(self, answer: Callable = answer, **names: object) -> None:
        self.own = mixer(answer)
        self.there = {"Mixer": self.own, **names}
        self.Mixer = mixer(lambda self, hidden: None)
        super().__init__(self.there)
        declare(self.Mixer, lambda *asked: self.asking.modules.ask(*asked))

    def pair(self, *sizes: float) -> tuple[nn.Module, nn.Module]:
        """The grader's object, and the student's with the same numbers."""
        torch.manual_seed(3)
        mine = self.Mixer(*sizes).double()
        torch.manual_seed(3)
        return mine, self.own(*sizes).double()


@pytest.fixture
def sides():
    made = Sides()
    yield made
    made.asking.connection.close()


def hidden(*shape: int) -> torch.Tensor:
    return torch.randn(
        *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4)
    ).requires_grad_()


def test_it_gives_the_same_values_and_exactly_the_same_gradients(sides):
    mine, direct = sides.pair(5, 7)
    here, there = hidden(2, 3, 5), hidden(2, 3, 5)
    got, expected = mine(here), direct(there)
    assert torch.equal(got, expected)
    got.square().sum().backward()
    expected.square().sum().backward()
    assert torch.equal(here.grad, there.grad)
    for (name, parameter), (other, wanted) in zip(
        mine.named_parameters(), direct.named_parameters(), strict=True
    ):
        assert name == other
        assert torch.equal(parameter.grad, wanted.grad)


def test_what_a_test_writes_into_a_parameter_reaches_the_student(sides):
    mine, direct = sides.pair(5, 7)
    mine(hidden(2, 5))
    with torch.no_grad():
        for module in (mine, direct):
            module.first.weight.mul_(3)
            module.shift.fill_(0.25)
    assert torch.equal(mine(hidden(2, 5)), direct(hidden(2, 5)))
    mine.load_state_dict(
        {name: 2 * value for name, value in direct.state_dict().items()}
    )
    direct.load_state_dict(
        {name: 2 * value for name, value in direct.state_dict().items()}
    )
    assert torch.equal(mine(hidden(2, 5)), direct(hidden(2, 5)))


def test_a_change_of_number_type_after_a_call_is_followed(sides):
    mine, direct = sides.pair(5, 7)
    mine(hidden(2, 5))
    assert torch.equal(
        mine.float()(hidden(2, 5).float()), direct.float()(hidden(2, 5).float())
    )


def test_a_shared_parameter_stays_shared_and_gets_both_gradients(sides):
    mine, direct = sides.pair(5, 5)
    for module in (mine, direct):
        module.second.weight = module.first.weight
        module(hidden(2, 5)).sum().backward()
    assert len(list(mine.parameters())) == 3
    assert torch.equal(mine.first.weight.grad, direct.first.weight.grad)


def test_dropout_draws_from_the_one_stream_and_stops_in_evaluation(sides):
    mine, direct = sides.pair(5, 7, 0.5)
    drawn = []
    for module in (mine, direct):
        torch.manual_seed(6)
        drawn.append(
            [
                module(hidden(2, 5)),
                torch.rand(3),
                module(hidden(2, 5)),
                module.eval()(hidden(2, 5)),
            ]
        )
    assert all(torch.equal(got, expected) for got, expected in zip(*drawn, strict=True))
    assert not torch.equal(drawn[0][0], drawn[0][2])


def test_a_part_that_a_test_puts_in_is_called_here_and_gradients_pass_through_it(sides):
    class Doubles(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.calls = (
                nn.Parameter(torch.tensor(2.0, dtype=torch.float64)),
                0,
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return self.weight * x

    mine, direct = sides.pair(5, 7)
    for module in (mine, direct):
        module.drop = Doubles()
        module(hidden(2, 5)).sum().backward()
    assert mine.drop.calls == 1
    assert torch.equal(mine.drop.weight.grad, direct.drop.weight.grad)
    assert torch.equal(mine.first.weight.grad, direct.first.weight.grad)


def test_forward_changes_nothing_here():
    def lie(self: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
        self.gain.data.zero_()
        self.second.weight = nn.Parameter(torch.zeros(5, 7))
        return self.train().second(torch.zeros(7))

    mine, direct = Sides(lie).pair(5, 7)
    mine.eval()(hidden(2, 5))
    assert not mine.training
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            mine.state_dict().values(), direct.state_dict().values(), strict=True
        )
    )


def test_a_function_that_is_handed_a_module_may_change_it():
    def load(model: nn.Module) -> nn.Module:
        with torch.no_grad():
            model.first.weight.fill_(9)
        model.gain = nn.Parameter(torch.full((7,), 4.0, dtype=torch.float64))
        model.second.requires_grad_(False)
        return model.eval()

    sides = Sides(load=load)
    mine, _ = sides.pair(5, 7)
    gain = mine.gain
    assert sides.call("load", mine) is mine
    assert (mine.first.weight == 9).all()
    assert mine.gain is gain
    assert (gain == 4).all()
    assert not mine.training
    assert [name for name, p in mine.named_parameters() if not p.requires_grad] == [
        "second.weight"
    ]


def test_what_a_function_has_changed_before_it_failed_is_changed():
    def load(model: nn.Module, numbers: dict) -> None:
        with torch.no_grad():
            model.gain.copy_(numbers.pop("gain"))
            model.shift.copy_(numbers["shift"])

    sides = Sides(load=load)
    mine, _ = sides.pair(5, 7)
    numbers = {"gain": torch.full((7,), 3.0)}
    with pytest.raises(KeyError) as raised:
        sides.call("load", mine, numbers)
    assert raised.value.args == ("shift",)
    assert (mine.gain == 3).all()
    assert numbers == {}
    assert torch.equal(mine(hidden(2, 5)), mine(hidden(2, 5)))  # both sides agree again


def test_a_parameter_that_is_put_where_an_argument_lies_shares_its_numbers_with_it():
    def load(model: nn.Module, gain: torch.Tensor, weight: torch.Tensor) -> None:
        model.gain.data = gain
        model.second.weight = nn.Parameter(weight)
        model.first.weight.data = model.first.weight.data.clone()

    sides = Sides(load=load)
    (one, _), (other, _) = sides.pair(5, 7), sides.pair(5, 7)
    gain = torch.ones(7, dtype=torch.float64)
    weight = torch.ones(5, 7, dtype=torch.float64)
    for model in (one, other):
        sides.call("load", model, gain, weight)
    with torch.no_grad():
        one.gain.fill_(4)
        one.second.weight.fill_(6)
        one.first.weight.fill_(8)
    assert (other.gain == 4).all()
    assert (gain == 4).all()
    assert (other.second.weight == 6).all()
    assert not (other.first.weight == 8).any()


def test_no_function_lets_a_model_share_numbers_that_it_was_not_handed():
    mine, other = nn.Linear(3, 2), nn.Linear(3, 2)
    with pytest.raises(Refused, match="not handed over"):
        share([(mine.weight, other.weight)], list(mine.parameters()))
    with pytest.raises(Refused, match="cannot be shared"):
        share([(mine.weight, mine.bias)], list(mine.parameters()))


def test_a_module_that_the_student_made_is_mirrored_with_its_names(sides):
    sides.there["build"] = lambda: sides.there.setdefault(
        "kept", sides.own(5, 7).double()
    )
    mirror = sides.call("build")
    kept = sides.there["kept"]
    assert isinstance(mirror, nn.Module)
    assert {n: p.shape for n, p in mirror.named_parameters()} == {
        n: p.shape for n, p in kept.named_parameters()
    }
    assert list(mirror.state_dict()) == list(kept.state_dict())
    with torch.no_grad():
        mirror.gain.fill_(0.5)
    direct = copy.deepcopy(kept)
    direct.gain.data.fill_(0.5)
    got, expected = mirror(hidden(2, 5)), direct(hidden(2, 5))
    assert torch.equal(got, expected)
    got.sum().backward()
    expected.sum().backward()
    assert torch.equal(mirror.first.weight.grad, direct.first.weight.grad)


def test_the_student_trains_a_model_of_the_graders_with_the_graders_optimizer():
    def train(
        model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor
    ) -> float:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    sides = Sides(train=train)
    models = [
        nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 2)) for _ in range(2)
    ]
    models[1].load_state_dict(models[0].state_dict())
    far, near = (torch.optim.Adam(model.parameters(), lr=0.1) for model in models)
    x = hidden(4, 5).detach().float()
    losses = [
        (sides.call("train", models[0], far, x), train(models[1], near, x))
        for _ in range(5)
    ]
    assert [a for a, _ in losses] == [b for _, b in losses]
    assert losses[-1][0] < losses[0][0]
    assert all(
        torch.equal(a, b)
        for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True)
    )


def test_the_mode_that_a_function_restores_is_the_mode_here():
    class Noting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.modes: list[bool] = []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.modes.append(self.training)
            return x

    def measure(model: nn.Module) -> None:
        model.eval()
        model(torch.ones(2))
        model.train()

    model, sides = Noting(), Sides(measure=measure)
    sides.call("measure", model)
    assert model.modes == [False]
    assert model.training


def test_an_object_answers_its_own_public_methods_and_no_others():
    class Reader:
        secret = 5

        def read(self, n: int) -> int:
            return n + 1

        def _hide(self) -> int:
            return 1

    Reader.__module__ = Reader.read.__module__ = Reader._hide.__module__ = (
        "__main__"  # as if a cell defined it
    )
    spies = {
        "spy": lambda reader: reader.secret(),
        "dig": lambda reader: reader._hide(),
    }
    asked, reader = Sides(read=lambda reader: reader.read(3), **spies), Reader()
    assert asked.call("read", reader) == 4
    for name in ("spy", "dig"):
        with pytest.raises(AttributeError):
            asked.call(name, reader)


def test_a_name_that_a_test_did_not_write_is_missing_there_as_in_one_process():
    """What a test hands over is asked for fields that it may lack: `getattr(model,
    "top", 0.0)`."""

    class Probe(nn.Module):
        def twice(self, n: int) -> int:
            return 2 * n

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    class Box:
        def twice(self, n: int) -> int:
            return 2 * n

    Probe.twice.__module__ = Box.__module__ = Box.twice.__module__ = (
        "__main__"  # as if a cell defined them
    )

    def ask(given: Any) -> list[Any]:
        return [
            hasattr(given, "top"),
            getattr(given, "top", 0.5),
            hasattr(given, "twice"),
            given.twice(21),
        ]

    for given in (Probe(), Box()):
        assert Sides(ask=ask).call("ask", given) == ask(given) == [False, 0.5, True, 42]


def test_a_function_changes_no_module_that_this_call_did_not_hand_it():
    kept: list[nn.Module] = []

    def spoil(model: nn.Module, call: Callable) -> None:
        with torch.no_grad():
            for module in (kept[0], model):
                module.weight.fill_(9)
        call(kept[0])

    sides = Sides(keep=lambda model: kept.append(model), spoil=spoil)
    first, second = nn.Linear(3, 2), nn.Linear(2, 4)
    sides.call("keep", first)
    sides.call("spoil", second, lambda module: None)
    assert (second.weight == 9).all()
    assert not (first.weight == 9).any()


def test_nothing_can_be_called_that_was_not_handed_out():
    def steal(model: nn.Module) -> None:
        model.__dict__["_course_theirs"] = "g9"
        model(torch.ones(2))

    with pytest.raises(Refused, match="never handed out"):
        Sides(steal=steal).call("steal", type("Own", (nn.Module,), {})())


def test_a_test_that_is_over_has_handed_out_nothing():
    sides = Sides(
        keep=lambda model: sides.there.setdefault("kept", model),
        ask=lambda: sides.there["kept"](torch.ones(2)),
    )
    sides.call("keep", type("Own", (nn.Module,), {"forward": lambda self, x: x})())
    sides.asking.forget()
    with pytest.raises(Exception, match="never handed out"):
        sides.call("ask")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"key": "g1"},
        {"key": "s1", "training": True, "parameters": [], "buffers": {}, "modules": {}},
        {"key": "s1", "training": 1, "parameters": {}, "buffers": {}, "modules": {}},
        {
            "key": "s1",
            "training": True,
            "parameters": {"w": 3},
            "buffers": {},
            "modules": {},
        },
        {
            "key": "s1",
            "training": True,
            "parameters": {"w": (torch.arange(3), True)},
            "buffers": {},
            "modules": {},
        },
        {
            "key": "s1",
            "training": True,
            "parameters": {},
            "buffers": {},
            "modules": {"part": "Linear"},
        },
        {
            "key": "s1",
            "training": True,
            "parameters": {4: None},
            "buffers": {},
            "modules": {},
        },
    ],
)
def test_a_module_of_a_wrong_form_is_refused(sides, fields):
    reader = sides.asking.reader(sides.asking.writer().message(None))
    with pytest.raises(Refused):
        sides.asking.modules.rebuild(reader, "module", fields)


def test_a_class_whose_beginning_is_not_given_is_no_interface():
    assert interfaces(
        MIXER, MIXER.replace("return None", "raise NotImplementedError()")
    ).keys() == {"Mixer"}
    assert interfaces(MIXER, MIXER.replace("= rows", "= 2 * rows")) == {}
    assert interfaces(MIXER, "def f(:") == {}


def test_numbers_that_have_not_changed_are_not_sent_again(sides):
    mine, direct = sides.pair(50, 70)
    sizes: list[int] = []
    send = sides.asking._send
    sides.asking._send = lambda mark, data: (sizes.append(len(data)), send(mark, data))[
        1
    ]  # type: ignore[method-assign]
    for _ in range(2):
        assert torch.equal(mine(hidden(1, 50)), direct(hidden(1, 50)))
    assert sizes[0] > 8 * 2 * 50 * 70 > 10 * sizes[1]
    with torch.no_grad():
        for module in (mine, direct):
            module.second.weight[3, 4] += 1
    assert torch.equal(mine(hidden(1, 50)), direct(hidden(1, 50)))
    assert 8 * 2 * 50 * 70 > sizes[2] > 8 * 50 * 70


def test_a_part_that_stands_in_two_places_is_one_part_in_every_call(sides):
    mine, direct = sides.pair(5, 5)
    for module in (mine, direct):
        shared = nn.Sequential(module.first, nn.Tanh())
        module.first, module.drop = (
            nn.Sequential(shared, nn.Identity()),
            nn.Sequential(nn.Sigmoid(), shared),
        )
    for factor in (1.0, 0.5, 3.0):
        with torch.no_grad():
            for module in (mine, direct):
                module.drop[1][0].weight.mul_(factor)
        assert torch.equal(mine(hidden(2, 5)), direct(hidden(2, 5)))
