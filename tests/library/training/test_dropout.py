"""Dropout by words of sixteen bits: Srivastava et al. 2014, section 4, and torch's own
as its peer."""

import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from expect import assert_near

from course_lib.training.cpu import SMALLEST_DROPOUT as SMALLEST
from course_lib.training.cpu import FastDropout as Dropout

pytestmark = pytest.mark.cpu  # elsewhere it is torch's dropout

# an odd number of features: the last word is not used up
LARGE = (SMALLEST // 128 + 3, 129)


def dropout(features, p):
    return Dropout(p)(features)


@for_each("p", [0.1, 0.5, 0.93])
@for_each("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_as_many_features_are_dropped_as_was_asked_for(p, dtype):
    torch.manual_seed(3)
    output = dropout(torch.ones(600, 700, dtype=dtype), p)
    dropped = (output == 0).double()
    deviation = (p * (1 - p) / dropped.numel()) ** 0.5
    assert abs(dropped.mean().item() - p) < 4 * deviation
    assert output.dtype == dtype
    # no row and no column more than others
    for one in (dropped.mean(0), dropped.mean(1)):
        spread = (p * (1 - p) / (dropped.numel() / len(one))) ** 0.5
        assert one.std().item() == pytest.approx(spread, rel=0.15)


def test_neighbours_in_one_word_are_dropped_independently():
    torch.manual_seed(4)
    # four features are of one draw of 64 bits
    kept = (dropout(torch.ones(1 << 18), 0.3) != 0).double().view(-1, 4)
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max().item() < 4 / len(kept) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_stays_is_scaled_by_the_share_that_really_stays(dtype):
    """0.1 is 6,554 chances of 65,536, so 58,982 stay."""
    output = dropout(torch.full(LARGE, 3.0, dtype=dtype), 0.1)
    torch.testing.assert_close(
        output[output != 0], torch.full_like(output[output != 0], 3 * 65536 / 58982)
    )


def test_every_draw_is_new_and_a_seed_repeats_it():
    features = torch.ones(LARGE)
    torch.manual_seed(5)
    first, second = dropout(features, 0.2), dropout(features, 0.2)
    torch.manual_seed(5)
    again = dropout(features, 0.2)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_slopes_pass_where_features_passed():
    features = torch.randn(LARGE, dtype=torch.float64, requires_grad=True)
    output = dropout(features, 0.4)
    slopes = torch.randn_like(output)
    output.backward(slopes)
    assert_near(
        features.grad,
        torch.where(output == 0, 0, slopes * (output / features)),
        0,
        1e-14,
    )


def test_features_that_lie_otherwise_in_memory_are_dropped_too():
    torch.manual_seed(6)
    output = dropout(torch.ones(LARGE).t(), 0.25)
    assert output.shape == LARGE[::-1]
    assert (output == 0).double().mean().item() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("p", [0.0, 0.3, 1e-9])
def test_small_tensors_and_probabilities_out_of_reach_are_left_to_torch(p):
    features = torch.randn(7, 5) if p == 0.3 else torch.randn(LARGE)
    torch.manual_seed(7)
    ours = dropout(features, p)
    torch.manual_seed(7)
    assert torch.equal(ours, F.dropout(features, p))


def test_a_layer_in_evaluation_changes_nothing_and_draws_nothing():
    layer, features = Dropout(0.6).eval(), torch.randn(LARGE)
    before = torch.get_rng_state()
    assert layer(features) is features
    assert torch.equal(before, torch.get_rng_state())
