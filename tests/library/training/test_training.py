"""The training loop against a loop written out by hand, and its promises about batches,
stopping and devices."""

import json
import math
import os
import signal
from dataclasses import asdict
from inspect import unwrap

import pytest
import torch
from cases import for_each
from expect import refusal
from torch import Tensor, nn

from course_lib.training.loop import (
    History,
    TrainingConfig,
    TrainingError,
    TrainingInterrupted,
    device,
    learning_rate_at,
    set_seed,
    train,
)

EXACT = 1e-12  # float64, a few hundred operations


class Tagger(nn.Module):
    """Predicts a tag for every token; small, but with an embedding, dropout, a matrix
    and a bias."""

    def __init__(
        self, dropout: float = 0.0, dtype: torch.dtype = torch.float64
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6, dtype=dtype)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(6, 5, dtype=dtype)

    def forward(self, ids: Tensor) -> Tensor:
        return self.output(torch.tanh(self.dropout(self.embedding(ids))))


def tagging_loss(
    model: nn.Module, batch: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Cross-entropy summed over the tokens that are not padding (0), and their
    number."""
    ids, tags = batch
    losses = nn.functional.cross_entropy(
        model(ids).transpose(1, 2), tags, reduction="none"
    )
    return losses[ids != 0].sum(), (ids != 0).sum()


def sentences(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of 1 to 7 tokens, padded with 0: batches of them hold unequal numbers of
    tokens."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 11, (count, 7), generator=generator)
    lengths = torch.randint(1, 8, (count, 1), generator=generator)
    return ids.masked_fill(torch.arange(7) >= lengths, 0), (ids * 3 + 1) % 5


def cut(data: tuple[Tensor, Tensor], size: int) -> list[tuple[Tensor, Tensor]]:
    return list(zip(*(tensor.split(size) for tensor in data), strict=True))


BATCHES = cut(sentences(9), 4)


def weights(model: nn.Module) -> list[Tensor]:
    return [tensor.clone() for tensor in model.state_dict().values()]


def assert_close(
    left: list[Tensor], right: list[Tensor], tolerance: float = EXACT
) -> None:
    for a, b in zip(left, right, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


@pytest.fixture(autouse=True)
def known_device(monkeypatch, pytestconfig):
    monkeypatch.setenv("COURSE_DEVICE", pytestconfig.getoption("--device") or "cpu")


def test_the_loop_equals_one_written_out_by_hand():
    set_seed(3)
    model, twin = Tagger(), Tagger()
    twin.load_state_dict(model.state_dict())
    data = cut(sentences(13), 4)
    config = TrainingConfig(
        steps=9,
        learning_rate=0.02,
        schedule="inverse_sqrt",
        warmup_steps=3,
        clip_norm=0.3,
    )
    history = train(
        model,
        lambda epoch: data if epoch % 2 == 0 else data[::-1],
        tagging_loss,
        config,
    )

    optimizer = torch.optim.AdamW(
        [
            {
                "params": [twin.embedding.weight, twin.output.weight],
                "weight_decay": 0.01,
            },
            {"params": [twin.output.bias], "weight_decay": 0.0},
        ]
    )
    losses, norms, rates = [], [], []
    for step, batch in enumerate([*data, *data[::-1], *data][:9], start=1):
        rates.append(0.02 * min(step / 3, (3 / step) ** 0.5))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        total, count = tagging_loss(twin, batch)
        optimizer.zero_grad()
        (total / count).backward()
        norms.append(nn.utils.clip_grad_norm_(twin.parameters(), 0.3).item())
        optimizer.step()
        losses.append((total / count).item())
    assert max(norms) > 0.3 > min(norms) or min(norms) > 0.3  # clipping happened
    assert history.losses == pytest.approx(losses, abs=EXACT)
    assert history.gradient_norms == pytest.approx(norms, abs=EXACT)
    assert history.learning_rates == pytest.approx(rates, abs=EXACT)
    assert history.steps == list(range(1, 10))
    counts = [(ids != 0).sum().item() for ids, _ in [*data, *data[::-1], *data][:9]]
    assert history.tokens == [sum(counts[: i + 1]) for i in range(9)]
    assert_close(weights(model), weights(twin))


@for_each(("size", "accumulate"), [(3, 4), (4, 3), (6, 2), (1, 12)])
def test_accumulated_batches_of_unequal_length_equal_one_big_batch(size, accumulate):
    data = sentences(12)
    results = []
    for rows, parts in ((12, 1), (size, accumulate)):
        set_seed(1)
        model = Tagger()
        config = TrainingConfig(
            steps=5, learning_rate=0.05, accumulate=parts, clip_norm=0.2
        )
        history = train(
            model, lambda epoch, rows=rows: cut(data, rows), tagging_loss, config
        )
        results.append((history.losses, history.gradient_norms, weights(model)))
    (losses, norms, big), (other_losses, other_norms, small) = results
    assert other_losses == pytest.approx(losses, abs=EXACT)
    assert other_norms == pytest.approx(norms, abs=EXACT)
    assert_close(small, big)


def test_a_model_learns_what_can_be_learnt():
    set_seed(0)
    model, data = Tagger(dtype=torch.float32), cut(sentences(40), 10)
    history = train(
        model,
        lambda epoch: data,
        tagging_loss,
        TrainingConfig(steps=200, learning_rate=0.05),
    )
    assert history.losses[0] > 1.3  # ln 5 = 1.61 for a guess
    assert history.losses[-1] < 0.05


@for_each("step", [1, 2, 3, 4, 10, 1000])
def test_the_inverse_square_root_is_equation_3_of_vaswani_et_al_2017(step):
    width, warmup = 512, 4
    ours = learning_rate_at(
        step, (width * warmup) ** -0.5, "inverse_sqrt", warmup, steps=1000
    )
    assert ours == pytest.approx(
        width**-0.5 * min(step**-0.5, step * warmup**-1.5), rel=1e-14
    )


def test_an_unknown_schedule_has_no_rate():
    with refusal("there is no schedule 'warm'; choose one of constant, linear, cosine"):
        learning_rate_at(3, 0.4, "warm", warmup_steps=2, steps=6)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [1 / 3, 2 / 3, 1, 1, 1, 1]),
        ("linear", [1 / 3, 2 / 3, 1, 3 / 4, 2 / 4, 1 / 4]),
        (
            "cosine",
            [1 / 3, 2 / 3, 1, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2],
        ),
    ],
)
def test_schedules_warm_up_in_a_line_and_waste_no_step(schedule, expected):
    rates = [
        learning_rate_at(step, 0.4, schedule, warmup_steps=3, steps=6)
        for step in range(1, 7)
    ]
    assert rates == pytest.approx([0.4 * value for value in expected], rel=1e-14)


def test_a_trapezoid_stays_at_the_peak_and_falls_by_a_root_in_its_last_steps():
    """Hägele et al. 2024, section 3: 1 - sqrt(part of the decay), which would reach 0
    one step after the last."""
    rates = [
        learning_rate_at(step, 0.4, "trapezoid", warmup_steps=2, steps=7, decay_steps=3)
        for step in range(1, 8)
    ]
    expected = [
        1 / 2,
        1,
        1,
        1,
        1 - math.sqrt(1 / 4),
        1 - math.sqrt(2 / 4),
        1 - math.sqrt(3 / 4),
    ]
    assert rates == pytest.approx([0.4 * value for value in expected], rel=1e-14)
    without = [
        learning_rate_at(step, 0.4, "trapezoid", warmup_steps=2, steps=7)
        for step in range(1, 8)
    ]
    assert without == [0.2, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]


@for_each("schedule", ["constant", "linear", "cosine", "inverse_sqrt", "trapezoid"])
def test_without_warm_up_the_first_step_has_the_peak(schedule):
    assert learning_rate_at(1, 0.4, schedule, warmup_steps=0, steps=6) == 0.4


def test_evaluation_sees_the_model_at_rest_and_changes_nothing():
    seen = []

    def evaluate(model: nn.Module) -> dict[str, float]:
        seen.append((model.training, torch.is_grad_enabled()))
        torch.rand(17)  # an evaluation that samples
        return {"loss": 1.0, "bleu": torch.tensor(2.0).item()}

    runs = []
    for function, every in ((None, None), (evaluate, 2)):
        set_seed(5)
        model = Tagger(dropout=0.4)
        config = TrainingConfig(steps=7, evaluate_every=every)
        runs.append(
            (
                train(
                    model,
                    lambda epoch: cut(sentences(9), 4),
                    tagging_loss,
                    config,
                    function,
                ),
                weights(model),
            )
        )
        assert model.training
    assert seen == [(False, False)] * 4
    (without, bare), (history, watched) = runs
    assert history.losses == without.losses
    assert all(torch.equal(a, b) for a, b in zip(bare, watched, strict=True))
    assert history.metric_steps == [2, 4, 6, 7]
    assert history.metrics == {"loss": [1.0] * 4, "bleu": [2.0] * 4}


@pytest.mark.parametrize("maximize", [False, True])
def test_early_stop_waits_for_patience_and_goes_back_to_the_best_weights(maximize):
    # the best of the first five is the second; a tie is no gain
    figures = [5.0, 3.0, 4.0, math.nan, 3.0, 1.0, 1.0]
    kept = []

    def evaluate(model: nn.Module) -> dict[str, float]:
        kept.append(weights(model))
        value = figures[len(kept) - 1]
        return {"other": -value, "score": -value if maximize else value}

    set_seed(2)
    model = Tagger()
    config = TrainingConfig(
        steps=100, evaluate_every=3, patience=3, metric="score", maximize=maximize
    )
    history = train(
        model, lambda epoch: cut(sentences(9), 4), tagging_loss, config, evaluate
    )
    assert (history.stopped_early, history.best_step, history.steps[-1]) == (
        True,
        6,
        15,
    )
    assert all(torch.equal(a, b) for a, b in zip(weights(model), kept[1], strict=True))
    assert not torch.equal(kept[1][0], kept[4][0])


def test_bfloat16_computes_in_it_and_keeps_the_weights_in_float32():
    types = []

    def loss_fn(
        model: nn.Module, batch: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        types.append(model(batch[0]).dtype)
        return tagging_loss(model, batch)

    losses = []
    for precision in ("float32", "bfloat16"):
        set_seed(4)
        model = Tagger(dtype=torch.float32)
        history = train(
            model,
            lambda epoch: cut(sentences(9), 5),
            loss_fn,
            TrainingConfig(steps=4, precision=precision),
        )
        losses.append(history.losses)
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert set(types[:4]) == {torch.float32}
    assert set(types[4:]) == {torch.bfloat16}
    assert losses[0] != losses[1]
    # bfloat16 has 8 bits of precision
    assert losses[1] == pytest.approx(losses[0], rel=2**-7)


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_numbers_that_are_not_finite_stop_the_run_before_they_reach_the_weights(where):
    model = Tagger()
    before: list[Tensor] = []

    def loss_fn(
        model: nn.Module, batch: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        total, count = tagging_loss(model, batch)
        if len(calls) == 2:
            before.extend(weights(model))
            total = (
                total * math.nan
                if where == "loss"
                else total + model.output.bias.sub(model.output.bias).sqrt().sum()
            )
        calls.append(total)
        return total, count

    calls: list[Tensor] = []
    with refusal(
        r"step 3: the loss is .* left as they were. Try a smaller learning_rate",
        TrainingError,
    ):
        train(
            model, lambda epoch: cut(sentences(9), 4), loss_fn, TrainingConfig(steps=5)
        )
    assert all(torch.equal(a, b) for a, b in zip(weights(model), before, strict=True))


def test_what_is_random_in_a_step_differs_by_seed_step_and_batch_and_by_nothing_else():
    def draws(seed: int, accumulate: int) -> list[float]:
        drawn = []

        def loss_fn(
            model: nn.Module, batch: tuple[Tensor, Tensor]
        ) -> tuple[Tensor, Tensor]:
            drawn.append(torch.rand(1).item())
            return tagging_loss(model, batch)

        torch.rand(len(drawn) + seed)  # the past plays no part
        train(
            Tagger(),
            lambda epoch: BATCHES,
            loss_fn,
            TrainingConfig(steps=5, accumulate=accumulate, seed=seed),
        )
        return drawn

    first = draws(seed=8, accumulate=2)
    assert len(set(first)) == 10
    assert draws(seed=8, accumulate=2) == first
    assert draws(seed=8, accumulate=1) == first[::2]
    assert not set(draws(seed=9, accumulate=2)) & set(first)


def test_ctrl_c_ends_the_step_saves_and_says_how_to_resume(tmp_path, capsys):
    straight, interrupted = Tagger(dropout=0.3), Tagger(dropout=0.3)
    interrupted.load_state_dict(straight.state_dict())
    data = cut(sentences(9), 4)
    expected = train(
        straight, lambda epoch: data, tagging_loss, TrainingConfig(steps=6)
    )

    def pressing(
        model: nn.Module, batch: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        pressed.append(1)
        if len(pressed) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return tagging_loss(model, batch)

    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    config = TrainingConfig(steps=6, checkpoint=tmp_path / "run.safetensors")
    with refusal(
        r"stopped after step 3 of 6; saved to .*run\.safetensors\. Run the same",
        TrainingInterrupted,
    ):
        train(interrupted, lambda epoch: data, pressing, config)
    assert "Run the same command again to resume" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
    resumed = Tagger(dropout=0.3)
    assert (
        train(resumed, lambda epoch: data, tagging_loss, config).losses
        == expected.losses
    )
    assert all(
        torch.equal(a, b)
        for a, b in zip(weights(straight), weights(resumed), strict=True)
    )


@pytest.fixture
def heard():
    """Python listens to Ctrl-C, also where these tests run behind the shell's back:
    such programs begin deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_second_ctrl_c_stops_at_once(heard):
    def pressing(
        model: nn.Module, batch: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        # To this thread, one after the other: two that wait for any thread at once are
        # one.
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second Ctrl-C was not heard")

    with pytest.raises(KeyboardInterrupt) as caught:
        train(
            Tagger(),
            lambda epoch: cut(sentences(9), 4),
            pressing,
            TrainingConfig(steps=3),
        )
    assert not isinstance(caught.value, TrainingInterrupted)


def test_the_progress_bar_shows_when_asked_and_not_by_default_off_a_terminal(capsys):
    for progress in (None, False, True):
        train(
            Tagger(),
            lambda epoch: cut(sentences(9), 4),
            tagging_loss,
            TrainingConfig(steps=3, progress=progress),
        )
        written = capsys.readouterr()
        assert written.out == ""
        assert ("3/3" in written.err and "loss=" in written.err) == (progress is True)


def test_the_history_survives_json():
    evaluate = lambda model: {"loss": 0.25}
    history = train(
        Tagger(),
        lambda epoch: cut(sentences(9), 4),
        tagging_loss,
        TrainingConfig(steps=3),
        evaluate,
    )
    assert History(**json.loads(json.dumps(asdict(history)))) == history
    assert len(history.seconds) == 3
    assert 0 < history.seconds[0] < history.seconds[1] < history.seconds[2]


@for_each(
    ("setting", "words"),
    [
        ({"steps": 0}, "steps is 0; it must be a whole number of at least 1"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"patience": 0}, "patience is 0"),
        (
            {"learning_rate": -0.1},
            "learning_rate is -0.1; it must be a positive number",
        ),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"clip_norm": 0.0}, "clip_norm is 0.0; it must be positive, or None"),
        (
            {"schedule": "warm"},
            "schedule is 'warm'; choose one of constant, linear, cosine, inverse_sqrt",
        ),
        ({"warmup_steps": 11}, "warmup_steps is 11, but the run has only steps=10"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        (
            {"decay_steps": 3},
            'decay_steps is 3, but .constant. has none; choose "trapezoid"',
        ),
        (
            {"decay_steps": 7, "warmup_steps": 4, "schedule": "trapezoid"},
            "warmup_steps=4 and decay_steps=7 are more than steps=10",
        ),
        ({"seed": -1}, "seed is -1"),
        ({"checkpoint_every": 5}, "no checkpoint is named to save to"),
    ],
)
def test_settings_out_of_range_are_refused_in_words(setting, words):
    with refusal(words):
        TrainingConfig(**({"steps": 10} | setting))


@for_each(
    ("arguments", "words"),
    [
        ({"batches": BATCHES}, "batches must be a function from the epoch"),
        ({"batches": lambda epoch: []}, "epoch 0 has no batches"),
        (
            {"loss_fn": lambda model, batch: tagging_loss(model, batch)[0]},
            "loss_fn must return two things",
        ),
        (
            {"loss_fn": lambda model, batch: (model(batch[0]).sum(0), 4)},
            "must be a scalar tensor with a gradient",
        ),
        (
            {"loss_fn": lambda model, batch: (torch.tensor(1.0), 4)},
            "must be a scalar tensor with a gradient",
        ),
        ({"config": TrainingConfig(steps=4, patience=1)}, "need a function evaluate"),
        (
            {
                "config": TrainingConfig(steps=4, patience=1),
                "evaluate": lambda model: {"bleu": 1.0},
            },
            r"patience watches 'loss', but evaluate returned \['bleu'\]",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(arguments, words):
    sound = {
        "batches": lambda epoch: BATCHES,
        "loss_fn": tagging_loss,
        "config": TrainingConfig(steps=4),
    }
    with refusal(words, (ValueError, TypeError)):
        # as a reader calls it: without the type checks of the tests
        unwrap(train)(Tagger(), **(sound | arguments))


def test_batches_that_count_nothing_are_refused_in_words():
    with refusal("step 1 have nothing to learn from: loss_fn counted 0", TrainingError):
        train(
            Tagger(),
            lambda epoch: BATCHES,
            lambda m, b: (m(b[0]).sum() * 0, 0),
            TrainingConfig(steps=4),
        )


@pytest.mark.cpu
def test_the_device_is_the_first_that_is_there_unless_the_environment_names_one(
    monkeypatch,
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device() == torch.device("cpu")  # COURSE_DEVICE, set for every test here
    monkeypatch.delenv("COURSE_DEVICE")
    assert device() == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert device() == torch.device("cuda", 2)
    monkeypatch.setenv("COURSE_DEVICE", "cuda:1")
    assert device() == torch.device("cuda", 1)
    monkeypatch.setenv("COURSE_DEVICE", "cuda:7")
    with refusal("cuda:7 was asked for, but this machine has 3 cuda devices"):
        device()
    monkeypatch.delenv("COURSE_DEVICE")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device() == torch.device("mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert device() == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda", "meta", "0.5"])
def test_a_device_that_is_not_there_is_refused_in_words(monkeypatch, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setenv("COURSE_DEVICE", name)
    with refusal(
        f"COURSE_DEVICE is '{name}'; this machine has cpu. Set one of these, or"
        " unset it"
    ):
        device()
