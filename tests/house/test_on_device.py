"""`pytest --device`: what a test makes lies on the device, what the library makes lies
where the library puts it."""

import pytest
import torch
from on_device import OnDevice
from torch import nn

from course_lib.attention.masks import causal_mask


@pytest.fixture
def meta():
    with OnDevice("meta") as mode:
        yield mode
    assert torch.ones(1).device.type == "cpu"  # and afterwards all is as it was


def test_tensors_and_modules_of_a_test_lie_on_the_device(meta):
    generator = torch.Generator().manual_seed(0)  # of the CPU: it draws there
    made = [
        torch.ones(2),
        torch.tensor([1.0, 2.0]),
        torch.rand(2, generator=generator),
        *nn.Linear(2, 2).parameters(),
    ]
    assert {tensor.device.type for tensor in made} == {"meta"}
    assert torch.ones(2, device="cpu").device.type == "cpu"
    assert torch.ones(2, requires_grad=True).requires_grad


def test_what_the_library_makes_stays_where_the_library_puts_it(meta):
    assert causal_mask(3).device.type == "cpu"
    assert causal_mask(3, torch.ones(1).device).device.type == "meta"


def test_only_what_is_computed_on_the_device_counts(meta):
    layer = nn.Linear(2, 2)
    torch.ones(2)
    assert meta.computed == 0
    layer(torch.ones(3, 2))
    assert meta.computed == 1
    torch.ones(2, device="cpu") + 1
    assert meta.computed == 1


def test_what_a_test_gives_a_model_is_brought_there(meta):
    layer = nn.Linear(2, 2)
    there = causal_mask(2).float()  # made by the library, and so on the CPU
    assert layer(there).device.type == "meta"
    assert nn.functional.cross_entropy(layer(there), there).device.type == "meta"


def test_a_parameter_of_two_modules_stays_one(meta):
    with torch._C.DisableTorchFunction():
        shared = nn.Parameter(torch.ones(2, 2, device="cpu"))
    shared.is_filled = True  # transformers notes such things
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    first.weight = second.weight = shared
    assert first.weight is second.weight
    assert first.weight.device.type == "meta"
    assert first.weight.is_filled
