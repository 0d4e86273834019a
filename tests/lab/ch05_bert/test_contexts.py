"""Chapter 5's measurement of what each position may see: what is wired is found, what
is not is not."""

import pytest
import torch
from expect import refusal

from course_lab.ch05_bert import contexts
from course_lib.attention.masks import causal_mask

LENGTH, DIM = 6, 9


@pytest.fixture(scope="module")
def found():
    return contexts.measure(seeds=[3], length=LENGTH, dim=DIM)


def seen(found, name, units=slice(None)):
    """Which inputs any of some units of the top layer depends on."""
    return found[name][0][-1][:, units].any(dim=1)


def test_bert_sees_all_and_gpt_what_came_before(found):
    """Devlin et al. 2019, figure 3."""
    assert seen(found, "BERT").all()
    assert torch.equal(seen(found, "GPT"), causal_mask(LENGTH))
    assert torch.equal(seen(found, "no attention"), torch.eye(LENGTH, dtype=torch.bool))


def test_each_half_of_elmo_sees_one_side(found):
    """Peters et al. 2018, section 3.1: two models that share no state."""
    assert torch.equal(seen(found, "ELMo", slice(None, DIM)), causal_mask(LENGTH))
    assert torch.equal(seen(found, "ELMo", slice(DIM, None)), causal_mask(LENGTH).T)


def test_in_every_layer_only_berts_units_see_both_sides(found):
    shares = {
        name: contexts.both_sides(of_model[0]) for name, of_model in found.items()
    }
    assert shares == {
        "BERT": [1.0, 1.0],
        "GPT": [0.0, 0.0],
        "ELMo": [0.0, 0.0],
        "no attention": [0.0, 0.0],
    }


def test_gpt_differs_from_bert_in_its_mask_alone():
    models = contexts.make_encoders(seed=5)
    for ours, theirs in zip(
        models["BERT"].parameters(), models["GPT"].parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)
    # one word: the mask has nothing to forbid
    inputs = torch.randn(1, 12, dtype=torch.float64)
    assert torch.equal(models["BERT"](inputs), models["GPT"](inputs))


def test_the_backward_half_is_aligned_with_the_words():
    """The state of a word is at that word's place, in both halves."""
    model = contexts.BidirectionalLSTM(dim=4, num_layers=1).double()
    inputs = torch.randn(3, 4, dtype=torch.float64)
    backward, _ = model.backward_layers[0](inputs.flip(0)[None])
    torch.testing.assert_close(model(inputs)[0, 0, 4:], backward[0, 2], rtol=0, atol=0)


def test_a_unit_counts_when_it_sees_both_sides_of_its_own_place():
    depends = torch.zeros(1, 4, 3, 4, dtype=torch.bool)
    depends[0, 1, 0, [0, 3]] = True  # left and right
    depends[0, 1, 1, [1, 3]] = True  # itself and right
    depends[0, 2, 2, [0, 1]] = True  # left alone
    depends[0, 0] = depends[0, 3] = True  # the ends do not count
    assert contexts.both_sides(depends) == [pytest.approx(1 / 6)]


def test_gradients_and_changes_that_disagree_are_an_error(monkeypatch):
    monkeypatch.setattr(
        contexts,
        "by_change",
        lambda encoder, inputs, others: torch.zeros(1, dtype=torch.bool),
    )
    with refusal(
        "BERT, seed 2: a word whose gradient is 0 changes a unit", RuntimeError
    ):
        contexts.measure(seeds=[2])
