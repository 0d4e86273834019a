"""A run that stops and goes on gives, bit for bit, the numbers of one that never
stopped; several processes give the numbers of one."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from expect import refusal
from torch import Tensor, nn

from course_lib.training.loop import TrainingConfig, adamw, batches, set_seed, train
from course_lib.training.state import CheckpointError, load_tensors, save_tensors

ROWS = [[(7 * row + column) % 11 for column in range(1 + row % 5)] for row in range(23)]


class Regressor(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, width, dtype=torch.float64)
        # a buffer that moves: it must be saved too
        self.norm = nn.BatchNorm1d(width, dtype=torch.float64)
        self.dropout = nn.Dropout(0.3)
        self.output = nn.Linear(width, 1, dtype=torch.float64)
        self.output_twice = self.output  # tied weights, two names

    def forward(self, ids: Tensor) -> Tensor:
        return self.output(
            torch.tanh(self.dropout(self.norm(self.embedding(ids).sum(dim=1))))
        ).squeeze(-1)


def collate(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    return ids, ids.sum(dim=1).double() / 10


def epochs(epoch: int) -> list[tuple[Tensor, Tensor]]:
    # 6 batches
    return list(
        batches(ROWS, batch_size=4, seed=9, epoch=epoch, collate=collate, length=len)
    )


def squared_error(model: nn.Module, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
    ids, target = batch
    return (model(ids) - target).square().sum(), len(target)


def distance(model: nn.Module) -> dict[str, float]:
    return {"loss": sum(squared_error(model, batch)[0].item() for batch in epochs(0))}


class Stopped(Exception):
    pass


def stopping_in(step: int, accumulate: int):
    """A loss that breaks off in the middle of a step, as a power cut would."""
    calls = []

    def loss_fn(model: nn.Module, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
        calls.append(1)
        if len(calls) == (step - 1) * accumulate + 2:
            raise Stopped
        return squared_error(model, batch)

    return loss_fn


def with_momentum(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=config.learning_rate, momentum=0.9)


@pytest.fixture(autouse=True)
def known_device(monkeypatch, pytestconfig):
    monkeypatch.setenv("COURSE_DEVICE", pytestconfig.getoption("--device") or "cpu")


def contents(path: Path) -> tuple[dict[str, Tensor], dict]:
    """All of a checkpoint but the clock."""
    tensors, facts = load_tensors(path)
    return {
        name: tensor for name, tensor in tensors.items() if name != "history.seconds"
    }, facts


@pytest.mark.parametrize("make_optimizer", [adamw, with_momentum])
@pytest.mark.parametrize("patience", [None, 50])
def test_ten_steps_equal_four_and_a_crash_and_six_more_bit_for_bit(
    tmp_path, patience, make_optimizer
):
    """With dropout and tied weights, 4 of an epoch's 6 batches in a step, so that the
    stop lies within an epoch."""
    settings = {
        "steps": 10,
        "learning_rate": 0.02,
        "schedule": "cosine",
        "warmup_steps": 3,
        "accumulate": 4,
        "seed": 5,
    }
    settings |= {"evaluate_every": 3, "patience": patience, "checkpoint_every": 4}
    straight, broken = (
        TrainingConfig(**settings, checkpoint=tmp_path / f"{name}.st")
        for name in ("straight", "broken")
    )
    set_seed(1)
    model = Regressor()
    history = train(model, epochs, squared_error, straight, distance, make_optimizer)

    set_seed(1)
    with pytest.raises(Stopped):
        train(Regressor(), epochs, stopping_in(7, 4), broken, distance, make_optimizer)
    assert load_tensors(broken.checkpoint)[1]["history"]["steps"] == 4
    # 4 steps of 4 batches: 2 epochs of 6, and 4
    assert load_tensors(broken.checkpoint)[1]["used"] == 4
    set_seed(77)  # another process, another past
    resumed = Regressor()
    again = train(resumed, epochs, squared_error, broken, distance, make_optimizer)

    for name in (
        "steps",
        "losses",
        "learning_rates",
        "gradient_norms",
        "tokens",
        "metric_steps",
        "metrics",
        "best_step",
    ):
        assert getattr(again, name) == getattr(history, name), name
    for name, tensor in model.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], tensor), name
    (tensors, facts), (other_tensors, other_facts) = (
        contents(straight.checkpoint),
        contents(broken.checkpoint),
    )
    assert facts == other_facts
    assert tensors.keys() == other_tensors.keys()
    assert sum(name.startswith("optimizer.") for name in tensors) >= 5
    assert any(name.startswith("best.") for name in tensors) == (patience is not None)
    for name, tensor in tensors.items():
        assert torch.equal(other_tensors[name], tensor), name


def test_the_best_weights_of_the_first_half_are_gone_back_to_in_the_second(tmp_path):
    # the second is the best, and patience runs out at the fourth
    figures = iter([5.0, 2.0, 3.0, 4.0])
    seen = []

    def evaluate(model: nn.Module) -> dict[str, float]:
        seen.append(model.embedding.weight.detach().clone())
        return {"loss": next(figures)}

    config = TrainingConfig(
        steps=9,
        learning_rate=0.1,
        checkpoint=tmp_path / "run.st",
        checkpoint_every=3,
        patience=2,
        evaluate_every=1,
    )
    with pytest.raises(Stopped):
        # after step 3, before step 4 is made
        train(Regressor(), epochs, stopping_in(3, 1), config, evaluate)
    assert load_tensors(tmp_path / "run.st")[1]["history"]["metrics"] == {
        "loss": [5.0, 2.0, 3.0]
    }
    model = Regressor()
    history = train(model, epochs, squared_error, config, evaluate)
    assert (history.stopped_early, history.best_step, history.steps) == (
        True,
        2,
        [1, 2, 3, 4],
    )
    assert torch.equal(model.embedding.weight, seen[1])
    assert not torch.equal(model.embedding.weight, seen[3])

    again = Regressor()  # a run that has ended is not trained again
    assert (
        train(
            again,
            lambda epoch: pytest.fail("it asked for data"),
            squared_error,
            config,
            evaluate,
        )
        == history
    )
    assert torch.equal(again.embedding.weight, seen[1])


def test_a_constant_schedule_may_be_prolonged_and_one_that_ends_may_not(tmp_path):
    for schedule in ("constant", "linear"):
        path = tmp_path / f"{schedule}.st"
        train(
            Regressor(),
            epochs,
            squared_error,
            TrainingConfig(steps=3, schedule=schedule, checkpoint=path),
        )
        longer = TrainingConfig(steps=6, schedule=schedule, checkpoint=path)
        if schedule == "constant":
            assert len(train(Regressor(), epochs, squared_error, longer).losses) == 6
        else:
            with refusal(
                r"steps was 3 and is now 6\. Restore them to resume", CheckpointError
            ):
                train(Regressor(), epochs, squared_error, longer)


def test_a_trapezoid_prolonged_before_it_falls_has_the_numbers_of_one_run(tmp_path):
    """It does not look at its end (Hägele et al. 2024, section 3): when to decay can be
    decided late."""
    settings = {"learning_rate": 0.02, "schedule": "trapezoid", "warmup_steps": 2}
    path = tmp_path / "run.st"
    set_seed(1)
    once = Regressor()
    expected = train(
        once, epochs, squared_error, TrainingConfig(steps=9, decay_steps=4, **settings)
    )
    set_seed(1)
    train(
        Regressor(),
        epochs,
        squared_error,
        TrainingConfig(steps=3, checkpoint=path, **settings),
    )
    resumed = Regressor()
    longer = TrainingConfig(steps=9, decay_steps=4, checkpoint=path, **settings)
    assert train(resumed, epochs, squared_error, longer).losses == expected.losses
    for name, tensor in once.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], tensor), name
    for steps, decay in ((12, 4), (9, 3)):
        other = TrainingConfig(
            steps=steps, decay_steps=decay, checkpoint=path, **settings
        )
        with refusal(r"(decay_)?steps was \d+ and is now \d+", CheckpointError):
            train(Regressor(), epochs, squared_error, other)


def test_a_report_is_told_after_each_evaluation_and_each_save(tmp_path):
    told: list[tuple[int, list[int]]] = []
    config = TrainingConfig(
        steps=7, evaluate_every=3, checkpoint=tmp_path / "run.st", checkpoint_every=2
    )
    train(
        Regressor(),
        epochs,
        squared_error,
        config,
        distance,
        report=lambda history: told.append(
            (len(history.steps), list(history.metric_steps))
        ),
    )
    assert told == [(2, []), (3, [3]), (4, [3]), (6, [3, 6]), (7, [3, 6, 7])]


def test_a_checkpoint_of_another_run_or_model_is_refused_and_nothing_changes(tmp_path):
    path = tmp_path / "run.st"
    config = TrainingConfig(steps=3, checkpoint=path)
    train(Regressor(), epochs, squared_error, config)
    content = path.read_bytes()

    def refused(
        words: str, model: nn.Module, config: TrainingConfig, optimizer=adamw
    ) -> None:
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        with refusal(words, CheckpointError):
            train(model, epochs, squared_error, config, make_optimizer=optimizer)
        assert all(
            torch.equal(tensor, before[name])
            for name, tensor in model.state_dict().items()
        )
        assert path.read_bytes() == content

    slower = TrainingConfig(steps=3, checkpoint=path, learning_rate=0.5)
    refused(
        "learning_rate was 0.001 and is now 0.5. Restore them to resume, name another"
        " checkpoint",
        Regressor(),
        slower,
    )
    refused(
        "optimizer was 'AdamW' and is now 'SGD'", Regressor(), config, with_momentum
    )
    refused(
        "of another shape: embedding.weight is .11, 6. in the file, .11, 8. in the"
        " model",
        Regressor(8),
        config,
    )
    refused("missing: .*unexpected: ", nn.Linear(2, 1), config)
    refused(
        "is at step 3, past steps=2; ask for more steps",
        Regressor(),
        TrainingConfig(steps=2, checkpoint=path),
    )
    anew = TrainingConfig(steps=3, checkpoint=path, learning_rate=0.5, resume=False)
    assert len(train(Regressor(), epochs, squared_error, anew).losses) == 3
    assert path.read_bytes() != content


@pytest.mark.parametrize("damage", ["truncated", "altered", "weights only"])
def test_a_damaged_checkpoint_stops_the_run_before_it_begins_and_is_left_alone(
    tmp_path, damage
):
    path = tmp_path / "run.st"
    config = TrainingConfig(steps=3, checkpoint=path)
    train(Regressor(), epochs, squared_error, config)
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        content = content[:-9]
    if damage == "altered":
        content[-9] ^= 1
    path.write_bytes(content)
    if damage == "weights only":
        save_tensors(path, Regressor().state_dict())
    content = path.read_bytes()
    with refusal(r"run\.st .*(move it away|name another checkpoint)", CheckpointError):
        train(Regressor(), epochs, squared_error, config)
    assert path.read_bytes() == content


def test_a_disk_that_fills_up_costs_the_steps_since_the_last_save_alone(
    tmp_path, monkeypatch
):
    config = TrainingConfig(steps=6, checkpoint=tmp_path / "run.st", checkpoint_every=2)
    set_seed(1)
    expected = train(Regressor(), epochs, squared_error, TrainingConfig(steps=6))
    saves, replace = [], os.replace

    def full_at_the_second(source: Path, target: Path) -> None:
        saves.append(1)
        if len(saves) > 1:
            raise OSError(28, "No space left on device")
        replace(source, target)

    set_seed(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full_at_the_second)
        with refusal(
            r"No space left on device; free at least .* The earlier checkpoint is"
            r" intact",
            CheckpointError,
        ):
            train(Regressor(), epochs, squared_error, config)
    assert [file.name for file in tmp_path.iterdir()] == ["run.st"]
    assert load_tensors(tmp_path / "run.st")[1]["history"]["steps"] == 2
    assert train(Regressor(), epochs, squared_error, config).losses == expected.losses


def test_data_that_shrank_is_noticed_on_resume(tmp_path):
    config = TrainingConfig(steps=5, checkpoint=tmp_path / "run.st")
    train(Regressor(), epochs, squared_error, config)
    longer = TrainingConfig(steps=9, checkpoint=tmp_path / "run.st")
    with refusal(
        "epoch 0 has 2 batches, but the checkpoint has used 5 of it; resume with"
        " the data"
    ):
        train(Regressor(), lambda epoch: epochs(epoch)[:2], squared_error, longer)


SCRIPT = """
import atexit, json, sys, torch, weakref
from pathlib import Path
sys.path[:0] = [{folder!r}, str(Path({folder!r}).parents[1])]
from test_training_resume import Regressor, distance, epochs, squared_error
from course_lib.training.loop import TrainingConfig, set_seed, train
import torch.distributed as dist
told, groups = {{}}, []
# the last thing that is done: the group of processes is left before
atexit.register(lambda: Path({output!r} + str(rank)).write_text(json.dumps(
    told | dict(left=[group() is None for group in groups]))))
set_seed(1)
model = Regressor()
model.norm = torch.nn.Identity()  # batch norm sees the batches of its own process only
model.unused = torch.nn.Linear(2, 2, dtype=torch.float64)
config = TrainingConfig(steps=7, learning_rate=0.05, accumulate=4, clip_norm=0.5, evaluate_every=2, patience=9,
                        checkpoint={checkpoint!r}, checkpoint_every=3, progress=True)
history = train(model, epochs, squared_error, config, distance)
rank = dist.get_rank() if dist.is_initialized() else 0
weights = [value for tensor in model.state_dict().values() for value in tensor.flatten().tolist()]
told |= dict(losses=history.losses, norms=history.gradient_norms, tokens=history.tokens, metrics=history.metrics)
told |= dict(weights=weights)
if dist.is_initialized():
    groups.append(weakref.ref(dist.group.WORLD))
"""  # noqa: E501


def run_script(
    tmp_path: Path, name: str, launcher: list[str]
) -> tuple[list[dict], str]:
    script = tmp_path / f"{name}.py"
    checkpoint_path = str(tmp_path / f"{name}.st")
    output = str(tmp_path / f"{name}.rank")
    script.write_text(
        SCRIPT.format(
            folder=str(Path(__file__).parent), checkpoint=checkpoint_path, output=output
        )
    )
    environment = os.environ | {"COURSE_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launcher, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [
        json.loads(path.read_text()) for path in sorted(tmp_path.glob(f"{name}.rank*"))
    ], done.stderr


@pytest.mark.slow
def test_two_processes_give_the_loss_curve_of_one_and_only_the_first_writes(tmp_path):
    """Gradients are sums over processes in another order: 1e-6 leaves room for rounding
    through 7 steps of Adam."""
    (alone,), _ = run_script(tmp_path, "alone", [])
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    (first, second), printed = run_script(tmp_path, "shared", torchrun)
    for together in (first, second):
        assert together["losses"] == pytest.approx(alone["losses"], abs=1e-6)
        assert together["norms"] == pytest.approx(alone["norms"], abs=1e-6)
        assert together["tokens"] == alone["tokens"]
        assert together["metrics"]["loss"] == pytest.approx(
            alone["metrics"]["loss"], rel=1e-6
        )
        assert together["weights"] == pytest.approx(alone["weights"], abs=1e-6)
    assert first["weights"] == second["weights"]
    # a thread of a group that something holds may want Python when there is none
    assert first["left"] == second["left"] == [True]
    assert printed.count("0/7") == 1  # one progress bar
    saved = load_tensors(tmp_path / "shared.st")[0]
    assert saved["history.losses"].tolist() == first["losses"]


@pytest.mark.slow
def test_batches_that_processes_cannot_share_are_refused_in_words(tmp_path):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=3"]
    with refusal(
        "3 processes cannot share accumulate=4 batches evenly; set accumulate to a",
        AssertionError,
    ):
        run_script(tmp_path, "three", torchrun)


def faster_in(name: str, monkeypatch) -> None:
    """Make this machine one that is faster in a precision."""
    rates = {"float32": 1.0, "bfloat16": 1.0, name: 2.0}
    monkeypatch.setattr(
        "course_lib.training.precision.has_bfloat16", lambda where: True
    )
    monkeypatch.setattr(
        "course_lib.training.precision.product_rates", lambda where: rates
    )


def test_auto_goes_on_in_the_precision_that_the_run_began_with_and_another_is_refused(
    tmp_path, monkeypatch
):
    path = tmp_path / "run.st"
    faster_in("bfloat16", monkeypatch)
    begun = train(
        Regressor(),
        epochs,
        squared_error,
        TrainingConfig(steps=2, precision="auto", checkpoint=path),
    )
    assert begun.precision == "bfloat16"
    faster_in("float32", monkeypatch)  # another machine
    longer = TrainingConfig(steps=4, precision="auto", checkpoint=path)
    assert train(Regressor(), epochs, squared_error, longer).precision == "bfloat16"
    with refusal(
        r"precision was 'bfloat16' and is now 'float32'\. Restore them to resume",
        CheckpointError,
    ):
        train(Regressor(), epochs, squared_error, replace(longer, precision="float32"))
    named = replace(longer, steps=5, precision="bfloat16")
    assert train(Regressor(), epochs, squared_error, named).precision == "bfloat16"


@pytest.mark.parametrize(
    ("bf16", "precision"), [(True, "bfloat16"), (False, "float32")]
)
def test_a_checkpoint_that_says_bf16_is_resumed_in_the_precision_that_it_meant(
    tmp_path, bf16, precision
):
    path = tmp_path / "run.st"
    config = TrainingConfig(steps=2, precision=precision, checkpoint=path)
    train(Regressor(), epochs, squared_error, config)
    tensors, facts = load_tensors(path)
    # as it was written before
    del (facts["history"]["precision"], facts["settings"]["precision"])
    save_tensors(
        path, tensors, facts | {"settings": facts["settings"] | {"bf16": bf16}}
    )
    again = train(
        Regressor(), epochs, squared_error, replace(config, steps=3, precision="auto")
    )
    assert (again.precision, len(again.steps)) == (precision, 3)
    other = {"float32": "bfloat16", "bfloat16": "float32"}[precision]
    save_tensors(
        path, tensors, facts | {"settings": facts["settings"] | {"bf16": bf16}}
    )
    with refusal(f"precision was '{precision}' and is now '{other}'", CheckpointError):
        train(
            Regressor(),
            epochs,
            squared_error,
            replace(config, steps=3, precision=other),
        )
