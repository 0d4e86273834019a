"""Two remedies against overfitting: a model that agrees with itself (R-Drop), and the
average of its weights."""

import math

import pytest
import torch
from cases import for_each
from expect import assert_near, refusal
from task_peer import CONFIG, KINDS
from test_finetuning import STEADY, examples_of, model_of

from course_lib.finetuning.averaging import exchange, keep_average
from course_lib.finetuning.examples import collate
from course_lib.finetuning.finetune import FineTuningConfig, evaluate, finetune
from course_lib.finetuning.losses import consistency_loss, disagreement, task_loss
from course_lib.training.batches import to_device


def test_disagreement_is_the_mean_of_both_divergences():
    """Liang et al. 2021, section 2.1, written out with torch's own divergence of one
    from the other."""
    torch.manual_seed(3)
    first = torch.randn(5, 4, dtype=torch.float64)
    second = torch.randn(5, 4, dtype=torch.float64)
    one, other = first.log_softmax(1), second.log_softmax(1)
    there = torch.nn.functional.kl_div(
        one, other, reduction="none", log_target=True
    ).sum(1)
    back = torch.nn.functional.kl_div(
        other, one, reduction="none", log_target=True
    ).sum(1)
    assert not torch.allclose(there, back, rtol=0.01), (
        "else one direction alone would do"
    )
    assert_near(disagreement(first, second), (there + back) / 2, 1e-12, 1e-12)


def beside(model, examples):
    """A batch where the model is, as training gives it."""
    return to_device(collate(examples), next(model.parameters()).device)


@pytest.mark.parametrize("kind", ["classes", "choices"])
def test_without_dropout_a_model_agrees_with_itself(kind):
    model = model_of(kind, config=STEADY).double().train()
    batch = beside(model, examples_of(kind))
    alone, count = task_loss(model, batch)
    both, same_count = consistency_loss(model, batch, weight=2.5)
    assert_near(both, alone, 0, 1e-12)
    assert count == same_count == 7


def test_with_dropout_both_passes_and_their_disagreement_are_added_up():
    """The halves of one doubled batch draw their own dropout: the same draws, taken
    apart, give the same loss."""
    model = model_of("classes").double().train()
    batch = beside(model, examples_of("classes"))
    torch.manual_seed(11)
    both, _ = consistency_loss(model, batch, weight=2.5)
    torch.manual_seed(11)
    twice = [
        torch.cat([part, part])
        for part in (batch.input_ids, batch.attention_mask, batch.token_type_ids)
    ]
    first, second = model(*twice).split(7)
    assert (first - second).abs().max() > 1e-4, "dropout differs"
    losses = [
        torch.nn.functional.cross_entropy(half, batch.labels, reduction="sum")
        for half in (first, second)
    ]
    expected = sum(losses) / 2 + 2.5 * disagreement(first, second).sum()
    assert_near(both, expected, 0, 1e-12)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"classes", "choices"}))
def test_a_model_that_does_not_choose_one_class_is_refused(kind):
    with refusal("does not choose one class for each input; set consistency to 0"):
        finetune(
            model_of(kind),
            examples_of(kind),
            config=FineTuningConfig(steps=1, consistency=1.0),
        )


@pytest.mark.parametrize(
    ("config", "differs"),
    [(CONFIG, True), (STEADY, False)],
    ids=["dropout", "no dropout"],
)
def test_fine_tuning_is_told_of_the_disagreement_which_dropout_alone_makes(
    config, differs
):
    """Weight 0.001 and weight 40: what the steps add up differs where the two passes
    do."""
    losses = [
        finetune(
            model_of("classes", config=config),
            examples_of("classes"),
            config=FineTuningConfig(steps=1, batch_size=7, consistency=weight),
        ).losses[0]
        for weight in (0.001, 40.0)
    ]
    assert (losses[1] > losses[0] + 1e-4) == differs
    assert differs or losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_the_average_is_the_one_that_the_recursion_gives():
    """Step by step by hand: the first weights, then a share of each new one, at most (1
    + k) / (10 + k) kept."""
    weight = torch.nn.Parameter(torch.tensor([2.0, -3.0], dtype=torch.float64))
    optimizer, kept = torch.optim.SGD([weight], lr=0.5), None
    keep_average(optimizer, decay=0.4)
    for step in range(1, 10):
        weight.grad = torch.tensor([1.0, float(step)], dtype=torch.float64)
        optimizer.step()
        share = min(0.4, (1 + step) / (10 + step))
        kept = (
            weight.detach().clone()
            if kept is None
            else share * kept + (1 - share) * weight.detach()
        )
    last = weight.detach().clone()
    exchange(optimizer)
    assert_near(weight.detach(), kept, 0, 1e-14)
    exchange(optimizer)
    assert torch.equal(weight, last), "twice is not at all"


def test_a_model_is_left_with_the_average_of_its_weights_and_looked_at_with_it():
    examples = examples_of("classes")
    plain = model_of("classes", config=STEADY)
    averaged = model_of("classes", config=STEADY)
    settings = {
        "steps": 6,
        "batch_size": 7,
        "learning_rate": 0.01,
        "schedule": "constant",
        "warmup": 0.0,
    }
    finetune(plain, examples, config=FineTuningConfig(**settings))
    seen = []
    history = finetune(
        averaged,
        examples,
        examples,
        FineTuningConfig(**settings, averaging=0.9, evaluate_every=3),
        score=lambda model: {"bias": seen.append(model.classifier.bias.clone()) or 0.0},
    )
    assert not torch.allclose(
        averaged.classifier.bias, plain.classifier.bias, atol=1e-4
    )
    assert torch.equal(seen[-1], averaged.classifier.bias), (
        "the last look saw what is left"
    )
    assert (
        history.metrics["loss"][-1]
        == evaluate(averaged, examples, batch_size=7)["loss"]
    )


def test_a_resumed_run_has_the_average_of_an_undisturbed_one(tmp_path):
    """The average is part of the optimizer's state, so it comes back with a checkpoint,
    bit for bit."""
    settings = {"batch_size": 3, "learning_rate": 0.01, "averaging": 0.7, "steps": 8}
    whole, resumed = model_of("classes"), model_of("classes")
    finetune(whole, examples_of("classes"), config=FineTuningConfig(**settings))
    place = {"checkpoint": tmp_path / "run.pt", "checkpoint_every": 1}
    calls = []

    def stop(model):
        calls.append(1)
        if len(calls) == 2:
            raise InterruptedError
        return {}

    with pytest.raises(InterruptedError):
        finetune(
            resumed,
            examples_of("classes"),
            config=FineTuningConfig(**settings, **place, evaluate_every=3),
            score=stop,
        )
    again = model_of("classes", seed=4)
    finetune(
        again,
        examples_of("classes"),
        config=FineTuningConfig(**settings, **place, evaluate_every=3),
        score=lambda model: {},
    )
    for name, weight in again.state_dict().items():
        assert torch.equal(weight, whole.state_dict()[name]), name


@for_each(
    ("settings", "words"),
    [
        ({"consistency": -1.0}, "consistency is -1.0; it is a weight, 0 or more"),
        ({"consistency": math.nan}, "consistency is nan"),
        ({"averaging": 1.0}, "averaging is 1.0; it is a decay below 1"),
        ({"averaging": 0.9, "patience": 2}, "use one of the two"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_words(settings, words):
    with refusal(words):
        FineTuningConfig(**settings)
