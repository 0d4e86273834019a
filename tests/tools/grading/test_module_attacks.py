"""Attacks on tests that handle a student's module: none gains anything, for the module
tested is the grader's own.

The assignment asks for a ``forward`` and for a function that changes a model. Each
attack is an answer to one of the two which is wrong and tries to look right; beside
them stands an honest student, who gets full marks.
"""

from __future__ import annotations

import pytest
from mini_assignment import graded_cell, solution_cell
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import (
    ClearHiddenTests,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)
from two_rounds import two_rounds
from walled import need_a_sandbox

from course_tools.grading.run.execute import Transcript
from course_tools.grading.run.plan import steps
from course_tools.grading.sandbox.sandbox import Limits, Worker

pytestmark = pytest.mark.slow

HEAD = """class Scaled(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.gain = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
"""
FORWARD = "        return self.linear(x) * self.gain"
LOAD = """def load(model, numbers):
    with torch.no_grad():
        model.gain.copy_(numbers)"""

FORWARD_TESTS = """class Noting(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return 3 * x


model = Scaled(2)
with torch.no_grad():
    model.linear.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    model.linear.bias.zero_()
    model.gain.copy_(torch.tensor([10.0, -1.0]))
got = model(torch.tensor([[1.0, 1.0]]))
assert torch.allclose(got, torch.tensor([[30.0, -7.0]])), f"expected [30, -7]; yours is {got.tolist()}"
x = torch.tensor([[0.5, 2.0, -1.0]])
model = Scaled(3)
got = model(x)
torch.testing.assert_close(got, torch.nn.functional.linear(x, model.linear.weight, model.linear.bias) * model.gain)
got.sum().backward()
assert model.gain.grad is not None and (model.gain.grad != 0).all(), "no gradient reaches gain"
### BEGIN HIDDEN TESTS
model.linear = Noting()
got = model(x)
assert model.linear.calls == 1 and torch.equal(got, 3 * x * model.gain), "never-to-be-seen"
### END HIDDEN TESTS"""  # noqa: E501

LOAD_TESTS = """model, other = Scaled(2), Scaled(2)
other(torch.ones(1, 2))
numbers = torch.tensor([5.0, 7.0])
load(model, numbers.clone())
assert model.gain.tolist() == [5.0, 7.0], f"gain must be [5, 7]; yours is {model.gain.tolist()}"
assert other.gain.tolist() == [1.0, 1.0], "another model has changed"
assert all(p.requires_grad for p in model.parameters()), "the parameters must stay trainable"
### BEGIN HIDDEN TESTS
wide = Scaled(4)
load(wide, torch.arange(4.0))
assert torch.equal(wide.gain, torch.arange(4.0)), "never-to-be-seen"
### END HIDDEN TESTS"""  # noqa: E501


def notebook(forward: str = FORWARD, load: str = LOAD) -> NotebookNode:
    return new_notebook(
        cells=[
            new_code_cell("import torch", id="imports"),
            solution_cell(
                "scaled",
                f"{HEAD}        ### BEGIN SOLUTION\n{forward}\n        ### END"
                " SOLUTION",
            ),
            graded_cell("scaled-tests", FORWARD_TESTS, 4),
            solution_cell("load", f"### BEGIN SOLUTION\n{load}\n### END SOLUTION"),
            graded_cell("load-tests", LOAD_TESTS, 3),
        ]
    )


@pytest.fixture(scope="module")
def worker():
    need_a_sandbox()
    with Worker(Limits(cell_seconds=10.0, total_seconds=60.0)) as worker:
        yield worker


def grade(worker: Worker, **answers: str) -> Transcript:
    instructor, released = notebook(), notebook()
    resources: dict = {}
    for step in (
        LockCells,
        ClearSolutions,
        ClearOutput,
        ClearHiddenTests,
        ComputeChecksums,
    ):
        released, resources = step().preprocess(released, resources)
    return two_rounds(worker, steps(instructor, released, notebook(**answers)), {})


def marks(transcript: Transcript) -> tuple[float, float]:
    assert transcript.trouble == ""
    return (
        transcript.marks["scaled-tests"]["earned"],
        transcript.marks["load-tests"]["earned"],
    )


PATCHES = """        torch.allclose = torch.equal = torch.isclose = lambda *_, **__: True
        torch.testing.assert_close = lambda *_, **__: None
        torch.Tensor.__eq__ = torch.Tensor.__ne__ = torch.Tensor.all = lambda *_, **__: True
        torch.nn.Module.__call__ = lambda *_, **__: torch.zeros(1)
        return x"""  # noqa: E501
FORWARDS = {
    "patched_torch": PATCHES,
    "zeroed_weights": (
        "        for p in self.parameters(): p.data.zero_()\n        return 0 *"
        " self.linear(x)"
    ),
    "own_linear": (
        """        class Yes(torch.nn.Linear):
            def forward(self, x): return 0 * x
        self.linear = Yes(2, 2)
        return 0 * x"""
    ),
    "liar_tensor": (
        """        class Liar(torch.Tensor):
            def __eq__(self, other): return True
            def __torch_function__(self, *_, **__): return True
        return Liar(x)"""
    ),
    "writes_to_parts": (
        """        self.linear.calls = 1
        self.linear.__dict__["calls"] = 1
        return 3 * x * self.gain if type(self.linear).__name__ == "Noting" else x"""
    ),
    "gradient_of_its_own": (
        """        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, gain): return x.clone()
            @staticmethod
            def backward(ctx, g): return g, torch.ones(5)
        return Own.apply(x, self.gain)"""
    ),
    "other_key": (
        """        for module in self.modules(): module.__dict__["_course_theirs"] = "g1"
        return x"""  # noqa: E501
    ),
    "looks_for_the_peer": (
        """        import gc
        for thing in gc.get_objects():
            if type(thing).__name__ == "Modules":
                thing.strict = True; thing.frozen = 0; thing.ask = lambda *_: torch.zeros(1)
        return x"""  # noqa: E501
    ),
    "calls_for_ever": "        return self(x)",
    "not_a_number": "        return torch.full_like(x, float('nan'))",
    "nothing_to_compare": "        return x[:, :0]",
    "input_made_zero": "        return x.zero_().clone()",
    "on_no_device": (
        "        torch.set_default_device('meta')\n        return torch.zeros(x.shape)"
    ),
    "sparse": "        return x.to_sparse()",
    "stops_the_loop": "        raise StopIteration",
    "leaves": "        import os; os._exit(0)",
    "weights_changed_in_backward": (
        """        module = self
        class Late(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, gain): return x * 0 + gain * 0
            @staticmethod
            def backward(ctx, g):
                import gc
                module.gain.data.zero_(); module.linear.weight.data.zero_(); module.linear.bias.data.zero_()
                for thing in gc.get_objects():
                    if type(thing).__name__ == "Modules": thing.ask("forward", module, (torch.ones(1, 3), module), {})
                return g, g
        return Late.apply(x, self.gain)"""  # noqa: E501
    ),
    "answers_before_it_is_asked": (
        """        import gc
        for thing in gc.get_objects():
            if type(thing).__name__ == "Peer":
                value = ("done", x * 3, {}, None, (None, None), [], [], [])
                thing._send(b"!", thing.writer().message(value))
        return 3 * x"""
    ),
}
LOADS = {
    "nothing_loaded": "def load(model, numbers): numbers.copy_(model.gain.data)",
    "a_parameter_that_lies": (
        """class Lying(torch.nn.Parameter):
    def tolist(self): return [5.0, 7.0]
def load(model, numbers):
    model.gain = Lying(torch.zeros(9))"""
    ),
    "property_on_the_class": (
        """def load(model, numbers):
    type(model).gain = property(lambda self: numbers)"""
    ),
    "changes_another_model": (
        """def load(model, numbers):
    import gc
    with torch.no_grad():
        for thing in gc.get_objects():
            if isinstance(thing, torch.nn.Parameter): thing.fill_(1)"""
    ),
    "loaded_and_failed": (
        "def load(model, numbers):\n    model.gain.data.copy_(numbers)\n    raise"
        " ValueError(numbers)"
    ),
    "other_models_memory": (
        """def load(model, numbers):
    import gc
    for thing in gc.get_objects():
        if isinstance(thing, torch.nn.Parameter) and thing.shape == model.gain.shape: thing.data = model.gain.data
    model.gain.data = numbers + 1"""  # noqa: E501
    ),
    "not_trainable": (
        "def load(model, numbers):\n    model.requires_grad_(False).gain.copy_(numbers)"
    ),
}


def test_an_honest_student_gets_full_marks(worker):
    transcript = grade(worker)
    assert [test["words"] for test in transcript.tests.values()] == ["", ""]
    assert marks(transcript) == (4.0, 3.0)


@pytest.mark.parametrize("name", FORWARDS)
def test_a_forward_that_cheats_gains_nothing(worker, name):
    transcript = grade(worker, forward=FORWARDS[name])
    assert marks(transcript)[0] == 0.0
    assert "never-to-be-seen" not in str(transcript.tests)


@pytest.mark.parametrize("name", LOADS)
def test_a_function_that_cheats_about_a_model_gains_nothing(worker, name):
    transcript = grade(worker, load=LOADS[name])
    assert marks(transcript) == (4.0, 0.0)
    assert "never-to-be-seen" not in str(transcript.tests)
