"""One training loop for every chapter.

A step takes the next ``accumulate`` batches, adds up their gradients, divides by what they counted and lets the
optimizer move. Around that: a learning-rate schedule, evaluation, early stop, checkpoints, and the same numbers whether
one process does it or several.

Three decisions make runs comparable:

- ``loss_fn(model, batch)`` returns a *sum* and a *count*, not a mean. Batches hold unequal numbers of tokens, and a
  mean of means is not the mean. With sums, one batch of 64, four of 16 and two processes with two of 16 each
  give one gradient.
- What is random inside a step (dropout) is seeded by (seed, step, batch), not by what was drawn before. So a resumed
  run needs no saved generator, evaluation disturbs nothing, and a second process draws what the first would have drawn.
- The position in the data is (epoch, batch): ``batches(epoch)`` must give the same batches each time it is called.

What this module does not do: mixed precision with loss scaling (bf16 needs none), or models too large for one device.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.batching import batches, set_seed, stream, to_device
from course_lib.checkpoint import CheckpointError, check_weights, load_tensors, save_tensors
from course_lib.parallel import add_up, add_up_gradients, copy_from_first, join
from course_lib.schedules import SCHEDULES, learning_rate_at

__all__ = [
    "CheckpointError",
    "History",
    "TrainingConfig",
    "TrainingError",
    "TrainingInterrupted",
    "adamw",
    "batches",
    "device",
    "learning_rate_at",
    "set_seed",
    "to_device",
    "train",
]

log = logging.getLogger(__name__)

LossFunction: TypeAlias = Callable[[nn.Module, Any], tuple[Tensor, "int | float | Tensor"]]
"""(model, batch) -> (sum of the losses, a scalar with a gradient; how many terms the sum has)."""

Evaluation: TypeAlias = Callable[[nn.Module], dict[str, float]]
"""model, in eval mode and without gradients -> figures by name."""


class TrainingError(RuntimeError):
    """Training cannot go on; the message says at which step, why, and what to try.

    Chapter: seq2seq-attention

    >>> issubclass(TrainingError, RuntimeError)
    True
    """


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C reached the loop, which ended its step and saved; the message says how to resume.

    Chapter: seq2seq-attention

    >>> issubclass(TrainingInterrupted, KeyboardInterrupt)
    True
    """


def device() -> torch.device:
    """Choose where to compute: cuda, else mps, else cpu; the environment variable COURSE_DEVICE overrides.

    Under torchrun each process takes the cuda device of its local rank.

    Returns:
        The device.

    Raises:
        ValueError: COURSE_DEVICE names no device, or one that this machine lacks.

    Chapter: seq2seq-attention

    >>> device().type in ("cuda", "mps", "cpu")
    True
    """
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    usable = [name for name, there in present.items() if there]
    wanted = os.environ.get("COURSE_DEVICE", "").strip() or usable[0]
    try:
        chosen = torch.device(wanted)
    except RuntimeError:
        chosen = None
    if chosen is None or chosen.type not in usable:
        raise ValueError(
            f"COURSE_DEVICE is {wanted!r}; this machine has {', '.join(usable)}. Set one of these, or unset it"
        )
    if chosen.type == "cuda":
        index = int(os.environ.get("LOCAL_RANK", "0")) if chosen.index is None else chosen.index
        if index >= torch.cuda.device_count():
            raise ValueError(
                f"cuda:{index} was asked for, but this machine has {torch.cuda.device_count()} cuda devices"
            )
        chosen = torch.device("cuda", index)
    return chosen


@dataclass(frozen=True)
class TrainingConfig:
    """Everything about a run but the model, the data and the loss.

    Attributes:
        steps: updates of the weights.
        learning_rate: the peak of the schedule.
        schedule: "constant", "linear", "cosine" or "inverse_sqrt" (see :func:`learning_rate_at`).
        warmup_steps: steps of linear warm-up before it.
        weight_decay: AdamW's, applied to matrices only.
        clip_norm: the largest norm of the gradient (Pascanu et al. 2013); None to leave it.
        accumulate: batches in a step, over all processes together.
        bf16: compute in bfloat16 where it is safe (autocast); the weights stay in float32.
        seed: of everything random inside the loop.
        evaluate_every: steps between evaluations; the last step is always evaluated. None for the last only.
        patience: stop after this many evaluations without a better ``metric``, and go back to the best weights. None
            trains to the end and keeps the last weights.
        metric: the figure that ``patience`` watches.
        maximize: whether a larger ``metric`` is better.
        checkpoint: the file to save to; None saves nothing.
        checkpoint_every: steps between saves; None saves at the end and on Ctrl-C only.
        resume: continue from the checkpoint if it exists; False begins anew and will replace it.
        progress: show a progress bar; None shows it on a terminal only.

    Raises:
        ValueError: a setting is out of range.

    Chapter: seq2seq-attention

    >>> TrainingConfig(steps=100, schedule="cosine", warmup_steps=10).learning_rate
    0.001
    >>> TrainingConfig(steps=0)
    Traceback (most recent call last):
        ...
    ValueError: steps is 0; it must be a whole number of at least 1
    """

    steps: int
    learning_rate: float = 1e-3
    schedule: str = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.01
    clip_norm: float | None = 1.0
    accumulate: int = 1
    bf16: bool = False
    seed: int = 0
    evaluate_every: int | None = None
    patience: int | None = None
    metric: str = "loss"
    maximize: bool = False
    checkpoint: str | Path | None = None
    checkpoint_every: int | None = None
    resume: bool = True
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "accumulate", "evaluate_every", "patience", "checkpoint_every"):
            value = getattr(self, name)
            optional = name not in ("steps", "accumulate")
            if not (optional and value is None) and not (isinstance(value, int) and value >= 1):
                raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")
        for name in ("warmup_steps", "seed"):
            if not (isinstance(getattr(self, name), int) and getattr(self, name) >= 0):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be a whole number of at least 0")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be a positive number, e.g. 0.001")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(f"weight_decay is {self.weight_decay}; it must be 0 or a positive number")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"clip_norm is {self.clip_norm}; it must be positive, or None not to clip")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule is {self.schedule!r}; choose one of {', '.join(SCHEDULES)}")
        if self.warmup_steps > self.steps:
            raise ValueError(f"warmup_steps is {self.warmup_steps}, but the run has only steps={self.steps}")
        if self.checkpoint_every is not None and self.checkpoint is None:
            raise ValueError(f"checkpoint_every is {self.checkpoint_every}, but no checkpoint is named to save to")


@dataclass
class History:
    """What happened, step by step; JSON can hold all of it (``dataclasses.asdict``).

    Attributes:
        steps: 1, 2, ... up to the last step made.
        losses: the mean loss of each step, before its update, in the unit of ``loss_fn`` (nats for cross-entropy).
        learning_rates: of each step.
        gradient_norms: the norm of each step's gradient before clipping.
        tokens: terms of the loss counted up to each step.
        seconds: seconds spent in steps up to each step, without evaluation and saving.
        metric_steps: the steps after which the model was evaluated.
        metrics: figure by figure, one value for each of ``metric_steps``.
        best_step: the step whose weights were kept, if ``patience`` watched a metric.
        stopped_early: whether patience ran out.

    Chapter: seq2seq-attention

    >>> import json
    >>> history = History(steps=[1], losses=[2.5], metric_steps=[1], metrics={"bleu": [31.0]})
    >>> History(**json.loads(json.dumps(dataclasses.asdict(history)))) == history
    True
    """

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    metric_steps: list[int] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    best_step: int | None = None
    stopped_early: bool = False


_SERIES = ("losses", "learning_rates", "gradient_norms", "tokens", "seconds")


def adamw(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """AdamW (Loshchilov & Hutter 2019) that decays matrices, and neither biases nor the gains of layer norm.

    Args:
        model: the model whose trainable parameters it moves.
        config: for the learning rate and the weight decay.

    Returns:
        The optimizer.

    Chapter: seq2seq-attention

    >>> [group["weight_decay"] for group in adamw(nn.Linear(3, 2), TrainingConfig(steps=1)).param_groups]
    [0.01, 0.0]
    """
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in trainable if parameter.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [parameter for parameter in trainable if parameter.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=config.learning_rate)


def train(
    model: nn.Module,
    batches: Callable[[int], Iterable[Any]],
    loss_fn: LossFunction,
    config: TrainingConfig,
    evaluate: Evaluation | None = None,
    make_optimizer: Callable[[nn.Module, TrainingConfig], torch.optim.Optimizer] = adamw,
) -> History:
    """Train a model in place; resume if ``config.checkpoint`` exists; share the work under torchrun.

    Args:
        model: moved to :func:`device` and left there, in training mode.
        batches: epoch -> its batches, nested tuples, lists or dicts of tensors; the same at each call.
        loss_fn: (model, batch on the device) -> (sum of losses, number of terms). Random draws from torch's default
            generators are reproducible in it; draws from other generators are its own affair.
        config: the settings.
        evaluate: model -> figures by name; called in eval mode without gradients. Every process calls it.
        make_optimizer: (model, config) -> optimizer.

    Returns:
        The history of the whole run, what a resumed run did before included.

    Raises:
        ValueError: the arguments do not fit together.
        TrainingError: the loss or the gradient is not finite. The weights are those before that step.
        CheckpointError: the checkpoint cannot be read or written, or belongs to another run or model.
        TrainingInterrupted: Ctrl-C; the step was ended and the checkpoint saved.

    Chapter: seq2seq-attention

    >>> _ = set_seed(0)
    >>> model, x = nn.Linear(1, 1), torch.tensor([[0.0], [1.0], [2.0]])
    >>> squared_error = lambda model, x: ((model(x) - (3 * x + 1)).square().sum(), len(x))
    >>> history = train(model, lambda epoch: [x], squared_error, TrainingConfig(steps=300, learning_rate=0.1))
    >>> [round(parameter.item(), 1) for parameter in model.parameters()]
    [3.0, 1.0]
    """
    if not callable(batches):
        raise ValueError("batches must be a function from the epoch to its batches, e.g. lambda epoch: my_list")
    if evaluate is None and (config.patience is not None or config.evaluate_every is not None):
        raise ValueError("patience and evaluate_every need a function evaluate(model) -> dict of figures")
    where = device()
    rank, processes = join(where)
    if config.accumulate % processes:
        raise ValueError(
            f"{processes} processes cannot share accumulate={config.accumulate} batches evenly; "
            f"set accumulate to a multiple of {processes}, and make each batch smaller by as much"
        )
    model.to(where).train()
    copy_from_first(*model.state_dict().values())
    run = _Run(model, make_optimizer(model, config), config, History())
    if config.checkpoint is not None and config.resume and Path(config.checkpoint).exists():
        run.load()
        log.info("resumed %s at step %d of %d", config.checkpoint, run.step, config.steps)

    data = stream(batches, run.epoch, run.used)
    with _interrupts() as interrupted, _progress(config, run.step, rank) as show:
        while run.step < config.steps and not run.history.stopped_early:
            stop = run.advance(data, loss_fn, where, rank, processes, interrupted)
            last = run.step == config.steps
            if evaluate is not None and (last or (config.evaluate_every and run.step % config.evaluate_every == 0)):
                run.evaluate(evaluate, where)
            ended = last or run.history.stopped_early
            due = config.checkpoint_every is not None and run.step % config.checkpoint_every == 0
            if config.checkpoint is not None and rank == 0 and (ended or due or stop):
                run.save()
            show(run.history)
            if stop and not ended:
                raise TrainingInterrupted(_how_to_resume(run.step, config, rank))
    run.restore_best()
    return run.history


@dataclass
class _Run:
    """A run in progress: what a checkpoint holds."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    config: TrainingConfig
    history: History
    epoch: int = 0
    used: int = 0  # batches of the epoch
    best: dict[str, Tensor] = field(default_factory=dict)  # the best weights, when patience watches

    @property
    def step(self) -> int:
        return len(self.history.steps)

    def advance(
        self,
        data: Iterator[tuple[int, int, Any]],
        loss_fn: LossFunction,
        where: torch.device,
        rank: int,
        processes: int,
        interrupted: threading.Event,
    ) -> bool:
        """Make one step and record it. Returns whether some process was interrupted."""
        config, history, step = self.config, self.history, self.step + 1
        started = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        # The sum of losses, the count, and how many processes want to stop: added up over processes in one message.
        totals = torch.zeros(3, dtype=torch.float32 if where.type == "mps" else torch.float64, device=where)
        for index in range(config.accumulate):
            self.epoch, self.used, batch = next(data)
            if index % processes != rank:
                continue
            torch.manual_seed(_seed(config.seed, step, index))
            with torch.autocast(where.type, torch.bfloat16, enabled=config.bf16):
                loss, count = _checked(loss_fn(self.model, to_device(batch, where)))
            loss.backward()
            totals[0] += loss.detach()
            totals[1] += count
        totals[2] = float(interrupted.is_set())
        add_up(totals)
        add_up_gradients(self.model)
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        for parameter in parameters:
            assert parameter.grad is not None
            parameter.grad.div_(totals[1])
        norm = nn.utils.clip_grad_norm_(parameters, math.inf if config.clip_norm is None else config.clip_norm)
        # The one place where the step waits for the device.
        loss_sum, counted, stops, gradient_norm = torch.cat([totals, norm.detach().to(totals).view(1)]).tolist()
        if counted <= 0:
            raise TrainingError(f"the batches of step {step} have nothing to learn from: loss_fn counted {counted:g}")
        mean = loss_sum / counted
        if not (math.isfinite(mean) and math.isfinite(gradient_norm)):
            raise TrainingError(
                f"step {step}: the loss is {mean} and the norm of its gradient {gradient_norm}; the weights are left "
                f"as they were. Try a smaller learning_rate (now {config.learning_rate}), a longer warm-up or clip_norm"
            )
        rate = learning_rate_at(step, config.learning_rate, config.schedule, config.warmup_steps, config.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        history.steps.append(step)
        history.losses.append(mean)
        history.learning_rates.append(rate)
        history.gradient_norms.append(gradient_norm)
        history.tokens.append((history.tokens[-1] if history.tokens else 0.0) + counted)
        spent = time.perf_counter() - started
        history.seconds.append((history.seconds[-1] if history.seconds else 0.0) + spent)
        return stops > 0

    def evaluate(self, evaluate: Evaluation, where: torch.device) -> None:
        """Record the model's figures, and keep its weights if they are the best so far."""
        config, history = self.config, self.history
        self.model.eval()
        torch.manual_seed(_seed(config.seed, self.step, config.accumulate))
        with torch.no_grad(), torch.autocast(where.type, torch.bfloat16, enabled=config.bf16):
            figures = evaluate(self.model)
        self.model.train()
        if history.metric_steps and figures.keys() != history.metrics.keys():
            raise ValueError(
                f"evaluate returned {sorted(figures)}, but {sorted(history.metrics)} before; keep the names"
            )
        # Process 0 decides for all: devices round differently, and all must stop at the same step.
        agreed = torch.tensor([float(value) for value in figures.values()], dtype=torch.float32, device=where)
        if where.type != "mps":
            agreed = torch.tensor([float(value) for value in figures.values()], dtype=torch.float64, device=where)
        copy_from_first(agreed)
        history.metric_steps.append(self.step)
        for name, value in zip(figures, agreed.tolist(), strict=True):
            history.metrics.setdefault(name, []).append(value)
        if config.patience is None:
            return
        if config.metric not in history.metrics:
            raise ValueError(
                f"patience watches {config.metric!r}, but evaluate returned {sorted(figures)}; name one of these"
            )
        series = [value if config.maximize else -value for value in history.metrics[config.metric]]
        # A figure that is not a number is never the best.
        best = max(range(len(series)), key=lambda i: (-math.inf if math.isnan(series[i]) else series[i], -i))
        if best == len(series) - 1:
            history.best_step = self.step
            self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        history.stopped_early = len(series) - 1 - best >= config.patience

    def restore_best(self) -> None:
        if self.best:
            self.model.load_state_dict(self.best)

    def save(self) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            for name, value in values.items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{index}.{name}"] = value
                elif value is not None:
                    raise TypeError(
                        f"the optimizer keeps {name} as a {type(value).__name__}; only tensors can be saved"
                    )
        history = dataclasses.asdict(self.history)
        tensors |= {f"history.{name}": torch.tensor(history.pop(name), dtype=torch.float64) for name in _SERIES}
        history["steps"] = self.step
        facts = {"history": history, "epoch": self.epoch, "used": self.used, "settings": _settings(self.config)}
        assert self.config.checkpoint is not None
        save_tensors(self.config.checkpoint, tensors, facts)

    def load(self) -> None:
        """Continue from the checkpoint: check all of it first, then change the model."""
        path = self.config.checkpoint
        assert path is not None
        tensors, facts = load_tensors(path)
        try:
            history, settings = dict(facts["history"]), facts["settings"]
            epoch, used, steps = int(facts["epoch"]), int(facts["used"]), int(history["steps"])
            history["steps"] = list(range(1, steps + 1))
            history |= {name: tensors[f"history.{name}"].tolist() for name in _SERIES}
            restored = History(**history)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} holds no training run ({error!r}); name another checkpoint") from error
        ours = _settings(self.config)
        if changed := [name for name in ours if settings.get(name) != ours[name]]:
            told = ", ".join(f"{name} was {settings.get(name)!r} and is now {ours[name]!r}" for name in changed)
            raise CheckpointError(
                f"{path} belongs to a run with other settings: {told}. Restore them to resume, name another "
                "checkpoint, or set resume=False to begin anew and replace it"
            )
        if steps > self.config.steps:
            raise CheckpointError(f"{path} is at step {steps}, past steps={self.config.steps}; ask for more steps")
        weights = _under("model.", tensors)
        check_weights(self.model, weights, path)
        best = _under("best.", tensors)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimizer.", tensors).items():
            index, _, entry = name.partition(".")
            state.setdefault(int(index), {})[entry] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.model.load_state_dict(weights)
        self.history, self.epoch, self.used, self.best = restored, epoch, used, best


# What may differ between the two halves of a run without changing its numbers.
_FREE = {"checkpoint", "checkpoint_every", "resume", "progress"}


def _settings(config: TrainingConfig) -> dict[str, Any]:
    """The settings that decide a run's numbers. A schedule that does not look at the end can be prolonged."""
    free = _FREE | ({"steps"} if config.schedule in ("constant", "inverse_sqrt") else set())
    return {name: value for name, value in dataclasses.asdict(config).items() if name not in free}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _seed(*parts: int) -> int:
    """Mix whole numbers into one seed, so that neighbouring steps do not get neighbouring streams."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])


def _checked(returned: Any) -> tuple[Tensor, int | float | Tensor]:
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise ValueError("loss_fn must return two things: the sum of the losses and how many it adds up")
    loss, count = returned
    if not (isinstance(loss, Tensor) and loss.dim() == 0 and loss.requires_grad):
        raise ValueError("the first thing loss_fn returns must be a scalar tensor with a gradient, e.g. losses.sum()")
    return loss, count.detach() if isinstance(count, Tensor) else count


def _how_to_resume(step: int, config: TrainingConfig, rank: int) -> str:
    words = f"stopped after step {step} of {config.steps}; "
    if config.checkpoint is None:
        words += "nothing was saved: set TrainingConfig(checkpoint=...) to be able to resume"
    else:
        words += f"saved to {config.checkpoint}. Run the same command again to resume"
    if rank == 0:
        print(words, file=sys.stderr)
    return words


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a wish to stop after the step; the second stops at once, as usual."""
    wish = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield wish
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        wish.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield wish
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(config: TrainingConfig, done: int, rank: int) -> Iterator[Callable[[History], None]]:
    wanted = sys.stderr.isatty() if config.progress is None else config.progress
    if not wanted or rank != 0:
        yield lambda history: None
        return
    from tqdm.auto import tqdm  # its import warns in notebooks without widgets: only when it is wanted

    with tqdm(total=config.steps, initial=done, unit="step") as bar:

        def show(history: History) -> None:
            bar.set_postfix(loss=f"{history.losses[-1]:.3f}", refresh=False)
            bar.update(1)

        yield show
