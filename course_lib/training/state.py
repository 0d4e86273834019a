"""A run in progress: all that must survive for it to go on as if it had never
stopped."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.training.checkpoint import (
    CheckpointError,
    check_weights,
    load_tensors,
    save_tensors,
)
from course_lib.training.config import History, TrainingConfig, read_settings

# One number a step: kept as float64 tensors, since a long run would make the JSON of
# the header unwieldy.
SERIES = ("losses", "learning_rates", "gradient_norms", "tokens", "seconds")

# Settings that may differ between the two halves of a run without changing its numbers.
FREE = {"checkpoint", "checkpoint_every", "resume", "progress"}


@dataclass
class TrainingState:
    """Model, optimizer, history, place in the data and the best weights so far.

    Parameters
    ----------
    model
        The model in training.
    optimizer
        Its optimizer.
    config
        The settings of the run.
    history
        What happened so far.
    epoch
        The epoch of the batch used last.
    used
        How many batches of that epoch were used.
    best
        The best weights by name, while `patience` watches a metric; else empty.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    config: TrainingConfig
    history: History = field(default_factory=History)
    epoch: int = 0
    used: int = 0
    best: dict[str, Tensor] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """The number of steps made."""
        return len(self.history.steps)

    @property
    def precision(self) -> str:
        """What this run computes in: what it began with."""
        return self.history.precision or self.config.precision

    @property
    def ended(self) -> bool:
        """Whether all steps are made, or patience ran out."""
        return self.step >= self.config.steps or self.history.stopped_early

    def record(self, figures: dict[str, float]) -> None:
        """Record an evaluation, keep the weights if they are the best so far, and see
        whether patience ran out."""
        config, history = self.config, self.history
        if history.metric_steps and figures.keys() != history.metrics.keys():
            raise ValueError(
                f"evaluate returned {sorted(figures)}, but before"
                f" {sorted(history.metrics)}; keep the names"
            )
        if config.patience is not None and config.metric not in figures:
            raise ValueError(
                f"patience watches {config.metric!r}, but evaluate returned"
                f" {sorted(figures)}; name one"
            )
        history.metric_steps.append(self.step)
        for name, value in figures.items():
            history.metrics.setdefault(name, []).append(value)
        if config.patience is None:
            return
        sign = 1 if config.maximize else -1
        values = [
            -math.inf if math.isnan(value) else sign * value
            for value in history.metrics[config.metric]
        ]
        best = values.index(max(values))  # the first of equals
        if best == len(values) - 1:
            history.best_step = self.step
            self.best = {
                name: tensor.detach().clone()
                for name, tensor in self.model.state_dict().items()
            }
        history.stopped_early = len(values) - 1 - best >= config.patience

    def restore_best(self) -> None:
        """Go back to the best weights, if any were kept."""
        if self.best:
            self.model.load_state_dict(self.best)

    def how_to_resume(self) -> str:
        """Tell in words where an interrupted run stands."""
        words = f"stopped after step {self.step} of {self.config.steps}; "
        if self.config.checkpoint is None:
            return (
                words
                + "nothing was saved: set TrainingConfig(checkpoint=...) to be able to"
                " resume"
            )
        if self.ended:
            return (
                words
                + f"the run had just ended and is saved to {self.config.checkpoint}"
            )
        return (
            words
            + f"saved to {self.config.checkpoint}. Run the same command again to resume"
        )

    def save(self) -> None:
        """Write the run to `config.checkpoint`."""
        assert self.config.checkpoint is not None
        tensors = {
            f"model.{name}": tensor for name, tensor in self.model.state_dict().items()
        }
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            for name, value in values.items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{index}.{name}"] = value
                elif value is not None:
                    kind = type(value).__name__
                    raise TypeError(
                        f"the optimizer keeps {name} as a {kind}; a checkpoint holds"
                        " its tensors only"
                    )
        history = dataclasses.asdict(self.history)
        tensors |= {
            f"history.{name}": torch.tensor(history.pop(name), dtype=torch.float64)
            for name in SERIES
        }
        history["steps"] = self.step
        facts = {
            "history": history,
            "epoch": self.epoch,
            "used": self.used,
            "settings": self._settings(),
        }
        save_tensors(self.config.checkpoint, tensors, facts)

    def load(self) -> None:
        """Continue from `config.checkpoint`: check all of it first, then change the
        model."""
        path = self.config.checkpoint
        assert path is not None
        tensors, facts = load_tensors(path)
        try:
            history, settings = dict(facts["history"]), read_settings(facts["settings"])
            epoch, used, steps = (
                int(facts["epoch"]),
                int(facts["used"]),
                int(history["steps"]),
            )
            history["steps"] = list(range(1, steps + 1))
            history |= {name: tensors[f"history.{name}"].tolist() for name in SERIES}
            restored = History(**{"precision": settings["precision"], **history})
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{path} holds no training run ({error!r}); name another checkpoint"
            ) from error
        ours, settings["precision"] = self._settings(), restored.precision
        # Its end may be put off, or its decay be decided on, as long as no step already
        # made would have been another.
        same_rates = restored.learning_rates == [
            self.config.learning_rate_at(step) for step in restored.steps
        ]
        free = {"steps", "decay_steps"} if same_rates else set()
        if self.config.patience is None:  # then an evaluation decides nothing
            free |= {"evaluate_every"}
        if self.config.precision == "auto":  # then the run keeps what it began with
            free |= {"precision"}
        if changed := [
            name
            for name in ours
            if settings.get(name) != ours[name] and name not in free
        ]:
            told = ", ".join(
                f"{name} was {settings.get(name)!r} and is now {ours[name]!r}"
                for name in changed
            )
            raise CheckpointError(
                f"{path} belongs to a run with other settings: {told}. Restore them to"
                " resume, name another checkpoint, or set resume=False to begin anew"
                " and replace it"
            )
        if steps > self.config.steps:
            raise CheckpointError(
                f"{path} is at step {steps}, past steps={self.config.steps}; ask for"
                " more steps"
            )
        weights, best = _under("model.", tensors), _under("best.", tensors)
        check_weights(self.model, weights, path)
        if best:
            check_weights(self.model, best, path)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimizer.", tensors).items():
            index, _, entry = name.partition(".")
            state.setdefault(int(index), {})[entry] = tensor
        # Its own settings, since they come from the config; only the state comes from
        # the file.
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.model.load_state_dict(weights)
        self.history, self.epoch, self.used, self.best = restored, epoch, used, best

    def _settings(self) -> dict[str, Any]:
        """What decides the numbers of the run."""
        settings = {
            name: value
            for name, value in dataclasses.asdict(self.config).items()
            if name not in FREE
        }
        return settings | {"optimizer": type(self.optimizer).__name__}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
