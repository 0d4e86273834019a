"""What a training run is told (`TrainingConfig`) and what it tells (`History`)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.training.precision import PRECISIONS
from course_lib.training.schedules import SCHEDULES, learning_rate_at


@dataclass(frozen=True)
class TrainingConfig:
    """Everything about a run but the model, the data and the loss.

    Parameters
    ----------
    steps
        Updates of the weights.
    learning_rate
        The peak of the schedule.
    schedule
        "constant", "linear", "cosine", "inverse_sqrt" or "trapezoid" (see
        `learning_rate_at`).
    warmup_steps
        Steps of linear warm-up before it.
    decay_steps
        For "trapezoid": the last steps, in which the rate falls.
    weight_decay
        AdamW's, applied to matrices only.
    clip_norm
        The largest norm of the gradient (Pascanu et al. 2013); None to leave it.
    accumulate
        Batches in a step, over all processes together.
    precision
        "float32"; or "bfloat16": compute in it where it is safe (autocast), while the
        weights stay in float32; or "auto" for the one that the device is faster in (see
        `course_lib.training.precision.choose_precision`).
    seed
        Of everything random inside the loop.
    evaluate_every
        Steps between evaluations; the last step is always evaluated. None for the last
        only.
    patience
        Stop after this many evaluations without a better `metric`, and go back to the
        best weights. None trains to the end and keeps the last weights.
    metric
        The figure that `patience` watches.
    maximize
        Whether a larger `metric` is better.
    checkpoint
        The file to save to; None saves nothing.
    checkpoint_every
        Steps between saves; None saves at the end and on Ctrl-C only.
    resume
        Continue from the checkpoint if it exists; False begins anew and will replace
        it.
    progress
        Show a progress bar; None shows it on a terminal only.

    Raises
    ------
    ValueError
        A setting is out of range.

    Examples
    --------
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
    decay_steps: int = 0
    weight_decay: float = 0.01
    clip_norm: float | None = 1.0
    accumulate: int = 1
    precision: str = "float32"
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
        for name in (
            "steps",
            "accumulate",
            "evaluate_every",
            "patience",
            "checkpoint_every",
        ):
            value = getattr(self, name)
            optional = name not in ("steps", "accumulate")
            if not (optional and value is None) and not (
                isinstance(value, int) and value >= 1
            ):
                raise ValueError(
                    f"{name} is {value!r}; it must be a whole number of at least 1"
                )
        for name in ("warmup_steps", "decay_steps", "seed"):
            if not (isinstance(getattr(self, name), int) and getattr(self, name) >= 0):
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; it must be a whole number of"
                    " at least 0"
                )
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(
                f"learning_rate is {self.learning_rate}; it must be a positive number,"
                " e.g. 0.001"
            )
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(
                f"weight_decay is {self.weight_decay}; it must be 0 or a positive"
                " number"
            )
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(
                f"clip_norm is {self.clip_norm}; it must be positive, or None not to"
                " clip"
            )
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision is {self.precision!r}; choose one of"
                f" {', '.join(PRECISIONS)}"
            )
        if self.schedule not in SCHEDULES:
            raise ValueError(
                f"schedule is {self.schedule!r}; choose one of {', '.join(SCHEDULES)}"
            )
        if self.warmup_steps > self.steps:
            raise ValueError(
                f"warmup_steps is {self.warmup_steps}, but the run has only"
                f" steps={self.steps}"
            )
        if self.decay_steps and self.schedule != "trapezoid":
            raise ValueError(
                f"decay_steps is {self.decay_steps}, but {self.schedule!r} has none;"
                ' choose "trapezoid"'
            )
        if self.warmup_steps + self.decay_steps > self.steps:
            raise ValueError(
                f"warmup_steps={self.warmup_steps} and decay_steps={self.decay_steps}"
                f" are more than steps={self.steps}"
            )
        if self.checkpoint_every is not None and self.checkpoint is None:
            raise ValueError(
                f"checkpoint_every is {self.checkpoint_every}, but no checkpoint is"
                " named to save to"
            )

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of one step: see
        `course_lib.training.schedules.learning_rate_at`."""
        return learning_rate_at(
            step,
            self.learning_rate,
            self.schedule,
            self.warmup_steps,
            self.steps,
            self.decay_steps,
        )


def read_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Read the settings of a run as a record or checkpoint holds them."""
    settings = dict(stored)
    if "bf16" in settings:
        settings["precision"] = "bfloat16" if settings.pop("bf16") else "float32"
    return settings


@dataclass
class History:
    """What happened, step by step; JSON can hold all of it (`dataclasses.asdict`)."""

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
    precision: str | None = None

    def add_step(
        self,
        step: int,
        loss: float,
        rate: float,
        gradient_norm: float,
        tokens: float,
        seconds: float,
    ) -> None:
        """Record a step; tokens and seconds are those of the step alone."""
        self.steps.append(step)
        self.losses.append(loss)
        self.learning_rates.append(rate)
        self.gradient_norms.append(gradient_norm)
        self.tokens.append(tokens + (self.tokens[-1] if self.tokens else 0.0))
        self.seconds.append(seconds + (self.seconds[-1] if self.seconds else 0.0))
