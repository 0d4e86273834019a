"""The linear layer is torch's, whichever library multiplies."""

import pytest
import torch
import torch.nn.functional as F
from expect import assert_near

from course_lib.training import cpu as module
from course_lib.training.cpu import FastLinear as Linear

pytestmark = [
    pytest.mark.skipif(
        not module._has_onednn(), reason="this torch comes without oneDNN"
    ),
    pytest.mark.cpu,  # elsewhere it is torch's layer
]

# two leading dimensions, features in, features out: 2.3 million products
LARGE = (3, 50, 96, 160)
SMALL = (3, 5, 7, 11)


@pytest.fixture
def products(monkeypatch):
    """How often oneDNN multiplied."""
    calls, multiply = [], module._product
    monkeypatch.setattr(
        module, "_product", lambda *words: calls.append(1) or multiply(*words)
    )
    return calls


def layer_and_input(sizes, dtype=torch.float32, bias=True):
    torch.manual_seed(0)
    *shape, features, outputs = sizes
    return Linear(features, outputs, bias=bias, dtype=dtype), torch.randn(
        *shape, features, dtype=dtype
    )


def linear(hidden, weight, bias):
    layer = Linear(1, 1, bias=bias is not None)
    layer.weight, layer.bias = weight, bias
    return layer(hidden)


def results(function, layer, hidden, loss):
    hidden = hidden.detach().requires_grad_()
    output = function(hidden, layer.weight, layer.bias)
    return [
        output.detach(),
        *torch.autograd.grad(loss(output), [hidden, *layer.parameters()]),
    ]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "loss",
    [
        lambda output: output.square().sum(),
        lambda output: (
            output.sum()
        ),  # its gradient is one number, repeated with stride 0
        lambda output: (
            (output.transpose(0, 1) * output.shape[0]).cos().sum()
        ),  # this one is not contiguous
        lambda output: output[:, 1::2, ::3].exp().sum(),
    ],
    ids=["square", "sum", "transposed", "parts"],
)
def test_output_and_gradients_are_those_of_torch(bias, loss, products):
    """Up to the rounding of sums of 96, 150 and 160 terms."""
    layer, hidden = layer_and_input(LARGE, bias=bias)
    ours, theirs = (
        results(function, layer, hidden, loss) for function in (linear, F.linear)
    )
    assert len(products) == 3
    for mine, its in zip(ours, theirs, strict=True):
        assert_near(mine, its, 1e-5 * its.abs().max().item(), 1e-5)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, ::2],
        lambda x: x.transpose(0, 1),
        lambda x: x[:1].expand(3, -1, -1),
    ],
)
def test_inputs_need_not_be_contiguous(view, products):
    layer, hidden = layer_and_input((3, 100, 96, 160))
    ours, theirs = (
        results(function, layer, view(hidden), torch.Tensor.norm)
        for function in (linear, F.linear)
    )
    assert len(products) == 3
    for mine, its in zip(ours, theirs, strict=True):
        assert_near(mine, its, 1e-5 * its.abs().max().item(), 1e-5)


def test_gradients_that_nobody_needs_are_not_computed(products):
    layer, hidden = layer_and_input(LARGE)
    layer.weight.requires_grad_(False)
    layer(hidden).sum().backward()
    assert len(products) == 1
    assert layer.bias.grad.tolist() == [150] * 160
    with torch.no_grad():
        assert not layer(hidden).requires_grad


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [(SMALL, torch.float32), (LARGE, torch.float64), (LARGE, torch.bfloat16)],
)
def test_small_products_and_other_precisions_are_left_to_torch(sizes, dtype, products):
    layer, hidden = layer_and_input(sizes, dtype)
    assert_near(layer(hidden), F.linear(hidden, layer.weight, layer.bias), 0)
    assert products == []


def test_autocast_still_computes_in_bfloat16(products):
    layer, hidden = layer_and_input(LARGE)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(hidden).dtype == torch.bfloat16
    assert products == []
