"""One training loop for every chapter.

A step takes the next ``accumulate`` batches, adds up their gradients, divides by what
they counted and lets the optimizer move. Around that: a learning-rate schedule,
evaluation, early stop, checkpoints, and the same numbers whether one process does it or
several.

Three decisions make runs comparable:

- ``loss_fn(model, batch)`` returns a *sum* and a *count*, not a mean. Batches hold
  unequal numbers of tokens, and a mean of means is not the mean. With sums, one batch
  of 64, four of 16 and two processes with two of 16 each give one gradient.
- What is random inside a step (dropout) is seeded by (seed, step, batch), not by what
  was drawn before. So a resumed run needs no saved generator, evaluation disturbs
  nothing, and a second process draws what the first would have drawn.
- The position in the data is (epoch, batch): ``batches(epoch)`` must give the same
  batches each time it is called.

What this module does not do: precision with loss scaling (bfloat16 needs none), or
models too large for one device.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.training.batches import batches, set_seed, stream, to_device
from course_lib.training.config import History, TrainingConfig
from course_lib.training.console import interrupts, progress
from course_lib.training.parallel import (
    all_reduce_gradients,
    all_reduce_sum,
    copy_from_first,
    join_processes,
)
from course_lib.training.precision import agreed_precision, autocast
from course_lib.training.schedules import learning_rate_at
from course_lib.training.state import CheckpointError, TrainingState

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

LossFunction: TypeAlias = Callable[
    [nn.Module, Any], tuple[Tensor, "int | float | Tensor"]
]
"""(model, batch) -> (sum of the losses, a scalar with a gradient; how many terms the
sum has)."""

Evaluation: TypeAlias = Callable[[nn.Module], dict[str, float]]
"""model, in eval mode and without gradients -> figures by name."""

Report: TypeAlias = Callable[[History], None]
"""The history so far -> nothing: told after each evaluation and each save, in process
0."""


class TrainingError(RuntimeError):
    """Training cannot go on; the message says at which step, why, and what to try."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C reached the loop, which ended its step and saved; the message says how to
    resume."""


def device() -> torch.device:
    """Choose where to compute: cuda, else mps, else cpu; the environment variable
    COURSE_DEVICE overrides.

    Under torchrun each process takes the cuda device of its local rank.

    Returns
    -------
    torch.device
        The device.

    Raises
    ------
    ValueError
        COURSE_DEVICE names no device, or one that this machine lacks.

    Examples
    --------
    >>> device().type in ("cuda", "mps", "cpu")
    True
    """
    present = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    usable = [name for name, there in present.items() if there]
    wanted = os.environ.get("COURSE_DEVICE", "").strip() or usable[0]
    try:
        chosen = torch.device(wanted)
    except RuntimeError:
        chosen = None
    if chosen is None or chosen.type not in usable:
        raise ValueError(
            f"COURSE_DEVICE is {wanted!r}; this machine has {', '.join(usable)}. Set"
            " one of these, or unset it"
        )
    if chosen.type == "cuda":
        index = (
            int(os.environ.get("LOCAL_RANK", "0"))
            if chosen.index is None
            else chosen.index
        )
        if index >= torch.cuda.device_count():
            raise ValueError(
                f"cuda:{index} was asked for, but this machine has"
                f" {torch.cuda.device_count()} cuda devices"
            )
        chosen = torch.device("cuda", index)
    return chosen


def decayed(parameters: Sequence[Tensor], decay: float) -> list[dict[str, Any]]:
    """Group parameters for an optimizer that decays matrices, and nothing else."""
    matrices = [each for each in parameters if each.dim() >= 2]
    others = [each for each in parameters if each.dim() < 2]
    groups = ((matrices, decay), (others, 0.0))
    return [{"params": own, "weight_decay": share} for own, share in groups if own]


def adamw(
    model: nn.Module,
    config: TrainingConfig,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> torch.optim.Optimizer:
    """AdamW (Loshchilov & Hutter 2019) that decays matrices, and neither biases nor the
    gains of layer norm."""
    trainable = [each for each in model.parameters() if each.requires_grad]
    groups = decayed(trainable, config.weight_decay)
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, eps=eps)


def train(
    model: nn.Module,
    batches: Callable[[int], Iterable[Any]],
    loss_fn: LossFunction,
    config: TrainingConfig,
    evaluate: Evaluation | None = None,
    make_optimizer: Callable[
        [nn.Module, TrainingConfig], torch.optim.Optimizer
    ] = adamw,
    report: Report | None = None,
) -> History:
    """Train a model in place; resume if `config.checkpoint` exists; share the work
    under torchrun.

    Parameters
    ----------
    model
        Moved to `device` and left there, in training mode.
    batches
        Epoch -> its batches, nested tuples, lists or dicts of tensors; the same at each
        call.
    loss_fn
        (model, batch on the device) -> (sum of losses, number of terms). Random draws
        from torch's default generators are reproducible in it; draws from other
        generators are its own affair.
    config
        The settings.
    evaluate
        Model -> figures by name; called in eval mode without gradients. Every process
        calls it.
    make_optimizer
        (model, config) -> optimizer.
    report
        Called with the history after each evaluation and each save, in process 0 only:
        for a log that can be read while a long run goes on.

    Returns
    -------
    History
        The history of the whole run, what a resumed run did before included.

    Raises
    ------
    ValueError
        The arguments do not fit together.
    TrainingError
        The loss or the gradient is not finite. The weights are those before that step.
    CheckpointError
        The checkpoint cannot be read or written, or belongs to another run or model.
    TrainingInterrupted
        Ctrl-C; the step was ended and the checkpoint saved.

    Examples
    --------
    >>> _ = set_seed(0)
    >>> model, x = nn.Linear(1, 1), torch.tensor([[0.0], [1.0], [2.0]])
    >>> squared_error = lambda model, x: (
    ...     (model(x) - (3 * x + 1)).square().sum(),
    ...     len(x),
    ... )
    >>> history = train(
    ...     model,
    ...     lambda epoch: [x],
    ...     squared_error,
    ...     TrainingConfig(steps=300, learning_rate=0.1),
    ... )
    >>> [round(parameter.item(), 1) for parameter in model.parameters()]
    [3.0, 1.0]
    """
    if not callable(batches):
        raise ValueError(
            "batches must be a function from the epoch to its batches, e.g. lambda"
            " epoch: my_list"
        )
    if evaluate is None and (
        config.patience is not None or config.evaluate_every is not None
    ):
        raise ValueError(
            "patience and evaluate_every need a function evaluate(model) -> dict of"
            " figures"
        )
    chosen = device()
    rank, processes = join_processes(chosen)
    if config.accumulate % processes:
        raise ValueError(
            f"{processes} processes cannot share accumulate={config.accumulate} batches"
            f" evenly; set accumulate to a multiple of {processes}, and make each batch"
            " smaller by as much"
        )
    model.to(chosen).train()
    copy_from_first(*model.state_dict().values())
    state = TrainingState(model, make_optimizer(model, config), config)
    if config.checkpoint and config.resume and Path(config.checkpoint).exists():
        state.load()
        log.info(
            "resumed %s at step %d of %d", config.checkpoint, state.step, config.steps
        )
    state.history.precision = agreed_precision(state.precision, chosen)
    log.info("computing in %s on %s", state.history.precision, chosen)

    data = stream(batches, state.epoch, state.used)
    with interrupts() as interrupted, progress(config, state.step, rank) as show:
        stop = False
        while not (state.ended or stop):
            stop = _step(state, data, loss_fn, chosen, rank, processes, interrupted)
            last = state.step == config.steps
            asked = last or _every(config.evaluate_every, state.step)
            if evaluate is not None and asked:
                _evaluate(state, evaluate, chosen)
            due = state.ended or stop or _every(config.checkpoint_every, state.step)
            if config.checkpoint is not None and rank == 0 and due:
                state.save()
            if report is not None and rank == 0 and (due or asked):
                report(state.history)
            show(state.history)
    if state.ended:
        state.restore_best()
    # the wish to stop is for the whole program, also when the run ended just then
    if stop or interrupted.is_set():
        words = state.how_to_resume()
        if rank == 0:
            print(words, file=sys.stderr)
        raise TrainingInterrupted(words)
    return state.history


def _every(steps: int | None, step: int) -> bool:
    return steps is not None and step % steps == 0


def _step(
    state: TrainingState,
    data: Iterator[tuple[int, int, Any]],
    loss_fn: LossFunction,
    device: torch.device,
    rank: int,
    processes: int,
    interrupted: threading.Event,
) -> bool:
    """Make one step and record it. Returns whether some process was interrupted."""
    started, config, step = time.perf_counter(), state.config, state.step + 1
    state.optimizer.zero_grad(set_to_none=True)
    # The sum of losses, their count, and how many processes want to stop: one message.
    totals = torch.zeros(3, dtype=_precise(device), device=device)
    for index in range(config.accumulate):
        state.epoch, state.used, batch = next(data)
        if index % processes == rank:
            _reseed(device, config.seed, step, index)
            with autocast(state.precision, device):
                loss, count = _checked(loss_fn(state.model, to_device(batch, device)))
            loss.backward()
            totals[0] += loss.detach()
            totals[1] += count
    totals[2] = float(interrupted.is_set())
    all_reduce_sum(totals)
    all_reduce_gradients(state.model)
    norm = _divide_and_clip(state.model, totals[1], config.clip_norm)
    # The one place where the step waits for the device.
    loss_sum, counted, stops, norm = torch.cat([totals, norm.to(totals)]).tolist()
    _check_step(step, loss_sum, counted, norm, config)
    rate = config.learning_rate_at(step)
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    state.optimizer.step()
    seconds = time.perf_counter() - started
    state.history.add_step(step, loss_sum / counted, rate, norm, counted, seconds)
    return stops > 0


def _divide_and_clip(model: nn.Module, count: Tensor, clip: float | None) -> Tensor:
    """Turn the gradient of a sum into that of a mean, and return its norm, ``(1,)``,
    before it was clipped."""
    parameters = []
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(count)
            parameters.append(parameter)
    norm = nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip)
    return norm.detach().view(1)


def _check_step(
    step: int, loss_sum: float, counted: float, norm: float, config: TrainingConfig
) -> None:
    """Refuse a step that counted nothing, or whose numbers are no numbers."""
    if counted <= 0:
        raise TrainingError(
            f"the batches of step {step} have nothing to learn from: loss_fn counted"
            f" {counted:g}"
        )
    if not (math.isfinite(loss_sum / counted) and math.isfinite(norm)):
        raise TrainingError(
            f"step {step}: the loss is {loss_sum / counted} and the norm of its"
            f" gradient {norm}; the weights are left as they were. Try a smaller"
            f" learning_rate (now {config.learning_rate}), a longer warm-up or"
            " clip_norm"
        )


def _evaluate(state: TrainingState, evaluate: Evaluation, device: torch.device) -> None:
    """Ask for the model's figures and record them."""
    model, config = state.model, state.config
    model.eval()
    _reseed(device, config.seed, state.step, config.accumulate)  # not that of any batch
    with torch.no_grad(), autocast(state.precision, device):
        figures = evaluate(model)
    model.train()
    # Process 0 decides for all: devices may round differently, and all must stop at the
    # same step.
    agreed = torch.tensor(
        [float(value) for value in figures.values()],
        dtype=_precise(device),
        device=device,
    )
    copy_from_first(agreed)
    state.record(dict(zip(figures, agreed.tolist(), strict=True)))


def _precise(device: torch.device) -> torch.dtype:
    # mps has no float64
    return torch.float32 if device.type == "mps" else torch.float64


def _reseed(device: torch.device, *parts: int) -> None:
    """Seed what draws on the CPU and on one device, with numbers mixed so that
    neighbouring steps are unrelated."""
    seed = int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])
    # Not torch.manual_seed: it reaches for every kind of device, present or not, which
    # costs more than a small step.
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def _checked(returned: Any) -> tuple[Tensor, int | float | Tensor]:
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise ValueError(
            "loss_fn must return two things: the sum of the losses and how many it"
            " adds up"
        )
    loss, count = returned
    if not (isinstance(loss, Tensor) and loss.dim() == 0 and loss.requires_grad):
        raise ValueError(
            "the first thing loss_fn returns must be a scalar tensor with a gradient,"
            " e.g. losses.sum()"
        )
    return loss, count.detach() if isinstance(count, Tensor) else count
