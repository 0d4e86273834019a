"""A run in progress, and its checkpoint: all that must survive for it to go on as if it
had never stopped, in one safetensors file that is written whole or not at all.

Weights, optimizer state and the long series of the history are the file's tensors;
everything else (the position in the data, the settings, the metrics) is JSON in its
header. One file cannot mix the halves of two saves, and no byte of it is ever executed,
as a pickle would be. A save writes another file beside the checkpoint and renames it: a
run that is killed leaves the earlier checkpoint or the new one.

What this module does not do: keep several checkpoints, or lock a path against a second
run that writes to it.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor, nn

from course_lib.files import write_whole
from course_lib.training.config import History, TrainingConfig, read_settings

FORMAT = "course_lib-1"


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written, read or applied; the message says which file
    and what to do."""


def save_tensors(
    path: str | Path,
    tensors: Mapping[str, Tensor],
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write named tensors and JSON facts to one safetensors file, whole or not."""
    path = Path(path)
    # Clones, because safetensors refuses tensors that share memory, as tied embeddings
    # do.
    host = {
        name: tensor.detach().to("cpu", copy=True).contiguous()
        for name, tensor in tensors.items()
    }
    told = json.dumps(dict(facts or {}))
    header = {"format": FORMAT, "checksum": str(_checksum(host, told)), "facts": told}
    _write(path, to_safetensors(host, metadata=header))


def load_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote, and check that no byte of it has changed."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(
            f"there is no checkpoint {path}; check the path, or train first"
        )
    remedy = (
        "The file was left untouched: restore it from a copy, or move it away and train"
        " anew."
    )
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is no complete safetensors file ({error}). {remedy}"
        ) from error
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} was not written by this course (format {header.get('format')!r})."
            f" {remedy}"
        )
    try:
        stored, facts = int(header["checksum"]), json.loads(header["facts"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"the header of {path} is damaged ({error}). {remedy}"
        ) from error
    if stored != _checksum(tensors, header["facts"]):
        raise CheckpointError(
            f"{path} is damaged: its content does not match its checksum. {remedy}"
        )
    return tensors, facts


def check_weights(
    model: nn.Module, tensors: Mapping[str, Tensor], path: str | Path
) -> None:
    """Raise in words unless `tensors` are exactly the weights that `model` has."""
    expected = model.state_dict()
    complaints = []
    if missing := sorted(expected.keys() - tensors.keys()):
        complaints.append(f"missing: {_first_few(missing)}")
    if unexpected := sorted(tensors.keys() - expected.keys()):
        complaints.append(f"unexpected: {_first_few(unexpected)}")
    if shapes := [
        f"{name} is {tuple(tensors[name].shape)} in the file,"
        f" {tuple(expected[name].shape)} in the model"
        for name in sorted(expected.keys() & tensors.keys())
        if tensors[name].shape != expected[name].shape
    ]:
        complaints.append(f"of another shape: {_first_few(shapes)}")
    if complaints:
        raise CheckpointError(
            f"{path} does not fit this model: {'; '.join(complaints)}. Build the model"
            " with the settings it was saved with, or choose another file."
        )


def _first_few(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def _checksum(tensors: Mapping[str, Tensor], facts: str) -> int:
    """CRC-32 over facts, names, shapes, types and bytes: it finds accidents and is no
    defence against forgery."""
    total = zlib.crc32(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(
            f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total
        )
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return total


def _write(path: Path, content: bytes) -> None:
    def write(unfinished: Path) -> None:
        with open(unfinished, "wb") as file:
            file.write(content)

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, write)
    except OSError as error:
        kept = (
            "The earlier checkpoint is intact."
            if path.exists()
            else "There is no earlier checkpoint."
        )
        remedy = (
            f"free at least {len(content) / 1e6:.1f} MB there or choose another folder"
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            else "check that the folder exists and is writable"
        )
        raise CheckpointError(
            f"could not save {path}: {error.strerror or error}; {remedy}. {kept}"
        ) from error


# One number a step: kept as float64 tensors, since a long run would make the JSON of
# the header unwieldy.
SERIES = ("losses", "learning_rates", "gradient_norms", "tokens", "seconds")

# Settings that may differ between the two halves of a run without changing its numbers.
FREE = {"checkpoint", "checkpoint_every", "resume", "progress"}


@dataclass
class TrainingState:
    """Model, optimizer, history, place in the data and the best weights so far."""

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
        where = self.config.checkpoint
        if where is None:
            told = "nothing was saved: set TrainingConfig(checkpoint=...) to be able to"
            told += " resume"
        elif self.ended:
            told = f"the run had just ended and is saved to {where}"
        else:
            told = f"saved to {where}. Run the same command again to resume"
        return f"stopped after step {self.step} of {self.config.steps}; {told}"

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
            epoch = int(facts["epoch"])
            used = int(facts["used"])
            steps = int(history["steps"])
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
