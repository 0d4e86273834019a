"""Fine-tuning: all weights of a pre-trained BERT are trained on, with a new layer, for
a task (Devlin et al. 2019).

`finetune` is the course's one training loop with what fine-tuning adds: few epochs at a
small rate that warms up and then falls, rates that differ by layer, layers that are
frozen, and a stop when validation gets no better. The names of heads
(:mod:`course_lib.finetuning.heads`), examples and `predict` can be imported from here,
too.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from course_lib.finetuning.averaging import exchange, keep_average
from course_lib.finetuning.examples import (
    Example,
    TaskBatch,
    choice_examples,
    collate,
    question_examples,
    tagging_examples,
    text_examples,
)
from course_lib.finetuning.heads import (
    MultipleChoiceClassifier,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from course_lib.finetuning.losses import (
    check_examples,
    consistency_loss,
    evaluate,
    task_loss,
)
from course_lib.finetuning.predict import predict
from course_lib.finetuning.task_model import TaskModel
from course_lib.training.batches import batches
from course_lib.training.loop import History, TrainingConfig, train

__all__ = [
    "FineTuningConfig",
    "MultipleChoiceClassifier",
    "SequenceClassifier",
    "SpanClassifier",
    "TokenClassifier",
    "choice_examples",
    "evaluate",
    "finetune",
    "predict",
    "question_examples",
    "rate_factors",
    "tagging_examples",
    "text_examples",
]

# a model in evaluation mode -> figures by name
Score: TypeAlias = Callable[[TaskModel], dict[str, float]]
FROZEN = ("nothing", "embeddings", "encoder")


@dataclass(frozen=True)
class FineTuningConfig:
    """How a model is fine-tuned; the defaults lie within the ranges of Devlin et al.
    2019, appendix A.3.

    Parameters
    ----------
    epochs
        Passes through the examples; the number of steps follows.
    steps
        Steps, instead of epochs.
    learning_rate
        The peak, of the head.
    layer_decay
        Each block's rate as a share of that of the block above it: see `rate_factors`.
        1 for equal rates.
    frozen
        What keeps its weights: "nothing", "embeddings", "encoder" (all but the head:
        the pooler too), or a number of blocks, counted from the embeddings, which are
        then frozen too.
    batch_size
        Examples in a step.
    warmup
        Share of the steps in which the rate rises; it then falls to 0.
    schedule
        As in `TrainingConfig`.
    consistency
        Above 0, each batch is read twice with other dropout, and disagreement costs so
        much: see `consistency_loss`.
    averaging
        Above 0, the model is looked at, and left, with a moving average of its weights
        with this decay: see `course_lib.finetuning.averaging.keep_average`.
    weight_decay, clip_norm, precision, seed, checkpoint, checkpoint_every, progress
        As in `TrainingConfig`.
    evaluate_every
        Steps between looks at validation; None for one at the end of each epoch.
    patience
        Stop after so many looks without a better `metric`, and go back to the best
        weights; None trains to the end.
    metric, maximize
        What `patience` watches, and whether more of it is better.

    Raises
    ------
    ValueError
        If a setting cannot be used.

    Examples
    --------
    >>> FineTuningConfig(epochs=3, batch_size=16).total_steps(examples=100)
    21
    """

    epochs: int | float = 3
    steps: int | None = None
    learning_rate: float = 5e-5
    layer_decay: float = 1.0
    frozen: str | int = "nothing"
    batch_size: int = 32
    warmup: float = 0.1
    schedule: str = "linear"
    weight_decay: float = 0.01
    clip_norm: float | None = 1.0
    consistency: float = 0.0
    averaging: float = 0.0
    seed: int = 0
    precision: str = "float32"
    evaluate_every: int | None = None
    patience: int | None = None
    metric: str = "loss"
    maximize: bool = False
    checkpoint: str | Path | None = None
    checkpoint_every: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        if not 0 < self.layer_decay <= 1:
            raise ValueError(
                f"layer_decay is {self.layer_decay}; it is a share, above 0 and at most"
                " 1, e.g. 0.95"
            )
        if not 0 <= self.warmup <= 1:
            raise ValueError(
                f"warmup is {self.warmup}; it is a share of the steps, from 0 to 1"
            )
        if not (math.isfinite(self.epochs) and self.epochs > 0):
            raise ValueError(f"epochs is {self.epochs}; it must be above 0")
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}; it must be at least 1")
        if not (math.isfinite(self.consistency) and self.consistency >= 0):
            raise ValueError(
                f"consistency is {self.consistency}; it is a weight, 0 or more,"
                " e.g. 1.0"
            )
        if not 0 <= self.averaging < 1:
            raise ValueError(
                f"averaging is {self.averaging}; it is a decay below 1, e.g. 0.999, or"
                " 0 for none"
            )
        if self.averaging and self.patience is not None:
            raise ValueError(
                "patience goes back to single weights, averaging to their average: use"
                " one of the two"
            )
        if isinstance(self.frozen, bool) or (
            isinstance(self.frozen, str) and self.frozen not in FROZEN
        ):
            raise ValueError(
                f"frozen is {self.frozen!r}; choose one of {', '.join(FROZEN)}, or a"
                " number of blocks"
            )
        self.training(
            examples=1,
            validated=self.patience is not None or self.evaluate_every is not None,
        )

    def total_steps(self, examples: int) -> int:
        """Return how many steps are made with so many examples."""
        return self.steps or math.ceil(
            self.epochs * math.ceil(examples / self.batch_size)
        )

    def training(self, examples: int, validated: bool) -> TrainingConfig:
        """Return what the training loop is told."""
        steps = self.total_steps(examples)
        epoch = math.ceil(examples / self.batch_size)
        theirs = {field.name for field in fields(TrainingConfig)}
        same = {name: value for name, value in vars(self).items() if name in theirs}
        return TrainingConfig(
            **same
            | {
                "steps": steps,
                "warmup_steps": round(self.warmup * steps),
                "evaluate_every": (self.evaluate_every or epoch) if validated else None,
            }
        )


def finetune(
    model: TaskModel,
    train_examples: Sequence[Example],
    validation_examples: Sequence[Example] | None = None,
    config: FineTuningConfig | None = None,
    score: Score | None = None,
) -> History:
    """Fine-tune a model in place.

    Parameters
    ----------
    model
        An encoder with a head; left in evaluation mode, on the device where it was
        trained.
    train_examples
        What it learns from.
    validation_examples
        What it is looked at on; None to look only with `score`, or not at all.
    config
        The settings; the defaults if not given.
    score
        More figures, such as a word-level F1 of `predict` on raw text, beside those of
        `evaluate`.

    Returns
    -------
    History
        Loss and rate of each step, and the figures of each look at validation. The rate
        is the head's.

    Raises
    ------
    ValueError
        If there is no example, one has no label, or the configuration does not fit the
        model.
    TrainingError
        As in `course_lib.training.loop.train`.

    Notes
    -----
    Devlin et al. 2019, section 4 and appendix A.3; rates by layer: Howard and Ruder
    2018, section 3.2.

    Examples
    --------
    >>> from course_lib.bert.config import BertConfig
    >>> from course_lib.finetuning.heads import SequenceClassifier
    >>> _ = torch.manual_seed(0)
    >>> model = SequenceClassifier(BertConfig.tiny(vocab_size=12), 2)
    >>> examples = [
    ...     Example([([2, word, 3], [0, 0, 0])], int(word > 8)) for word in range(5, 12)
    ... ]
    >>> history = finetune(
    ...     model,
    ...     examples,
    ...     examples,
    ...     FineTuningConfig(epochs=20, learning_rate=1e-3, batch_size=7),
    ... )
    >>> history.metrics["accuracy"][-1]
    1.0
    """
    config = config or FineTuningConfig()
    for name, examples in (
        ("train_examples", train_examples),
        ("validation_examples", validation_examples),
    ):
        if examples is not None:
            check_examples(name, examples)
    padded = partial(collate, pad_id=model.config.pad_token_id or 0)

    def epoch_batches(epoch: int) -> Iterator[TaskBatch]:
        size, seed, length = config.batch_size, config.seed, attrgetter("length")
        return batches(train_examples, size, seed, epoch, padded, length)

    optimizers: list[torch.optim.Optimizer] = []

    def make_optimizer(
        model: nn.Module, training: TrainingConfig
    ) -> torch.optim.Optimizer:
        optimizers.append(_optimizer(model, training, factors))
        if config.averaging:
            keep_average(optimizers[0], config.averaging)
        return optimizers[0]

    def look(model: nn.Module) -> dict[str, float]:
        assert isinstance(model, TaskModel)
        with _averaged(optimizers[0], config):
            figures = {}
            if validation_examples is not None:
                figures = evaluate(model, validation_examples, config.batch_size)
            return figures | (score(model) if score is not None else {})

    def loss(model: nn.Module, batch: TaskBatch) -> tuple[Tensor, int | Tensor]:
        assert isinstance(model, TaskModel)
        return (
            consistency_loss(model, batch, config.consistency)
            if config.consistency
            else task_loss(model, batch)
        )

    validated = validation_examples is not None or score is not None
    factors = rate_factors(model, config)
    with _frozen(model, factors):
        history = train(
            model,
            epoch_batches,
            loss,
            config.training(len(train_examples), validated),
            evaluate=look if validated else None,
            make_optimizer=make_optimizer,
        )
        if config.averaging:
            exchange(optimizers[0])
    model.eval()
    return history


def rate_factors(model: TaskModel, config: FineTuningConfig) -> dict[str, float]:
    """Say for each parameter by what the learning rate is multiplied; 0 where it is
    frozen.

    The head, the pooler and the last block have the full rate. Below it, the rate falls
    by `layer_decay` from block to block, and once more to the embeddings: what lies
    deeper is more general, and less of it is to change.

    Parameters
    ----------
    model
        An encoder with a head.
    config
        For `layer_decay` and `frozen`.

    Returns
    -------
    dict
        By name of the parameter.

    Raises
    ------
    ValueError
        If there are no such blocks to freeze.

    Notes
    -----
    Howard and Ruder 2018, section 3.2, "discriminative fine-tuning"; for BERT: Sun et
    al. 2019, section 5.3.

    Examples
    --------
    >>> from course_lib.bert.config import BertConfig
    >>> from course_lib.finetuning.heads import SequenceClassifier
    >>> factors = rate_factors(
    ...     SequenceClassifier(BertConfig.tiny(), 2), FineTuningConfig(layer_decay=0.5)
    ... )
    >>> names = (
    ...     "embeddings.token.weight",
    ...     "blocks.0.feed_forward.expand.bias",
    ...     "blocks.1.feed_forward.expand.bias",
    ... )
    >>> [factors[f"bert.{name}"] for name in names], factors["classifier.bias"]
    ([0.25, 0.5, 1.0], 1.0)
    """
    blocks = len(model.bert.blocks)
    if isinstance(config.frozen, str):
        lowest = {"nothing": 0, "embeddings": 1, "encoder": blocks + 2}
        lowest_trained = lowest[config.frozen]
    elif 1 <= config.frozen <= blocks:
        lowest_trained = config.frozen + 1
    else:
        raise ValueError(
            f"frozen is {config.frozen}, but the model has {blocks} blocks; choose 1 to"
            f" {blocks}"
        )
    heights = {name: _height(name, blocks) for name, _ in model.named_parameters()}
    return {
        name: (
            config.layer_decay ** max(blocks - height, 0)
            if height >= lowest_trained
            else 0.0
        )
        for name, height in heights.items()
    }


def _height(name: str, blocks: int) -> int:
    """0 for the embeddings, then the blocks, the pooler, and at the top the head."""
    part, _, rest = name.removeprefix("bert.").partition(".")
    if part == "blocks":
        return int(rest.split(".")[0]) + 1
    return {"embeddings": 0, "pooler": blocks + 1}.get(part, blocks + 2)


@contextmanager
def _frozen(model: nn.Module, factors: dict[str, float]) -> Iterator[None]:
    """Let gradients reach only what is trained, as long as this lasts; what the caller
    has frozen stays so."""
    before = {
        name: parameter.requires_grad for name, parameter in model.named_parameters()
    }
    try:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(before[name] and factors[name] > 0)
        yield
    finally:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(before[name])
            parameter.grad = None


def _optimizer(
    model: nn.Module, config: TrainingConfig, factors: dict[str, float]
) -> torch.optim.Optimizer:
    """AdamW with a group for each factor; the loop sets one rate for all, and each step
    multiplies it anew."""
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups.setdefault((factors[name], parameter.dim() >= 2), []).append(
                parameter
            )
    settings = [
        {
            "params": parameters,
            "factor": factor,
            "weight_decay": config.weight_decay if matrix else 0.0,
        }
        for (factor, matrix), parameters in groups.items()
    ]
    # one pass over weights, not ten
    optimizer = torch.optim.AdamW(settings, lr=config.learning_rate, fused=True)
    optimizer.register_step_pre_hook(_multiply_rates)
    return optimizer


@contextmanager
def _averaged(
    optimizer: torch.optim.Optimizer, config: FineTuningConfig
) -> Iterator[None]:
    """Let the model have its averaged weights as long as this lasts, if it
    keeps any."""
    if not config.averaging:
        yield
        return
    exchange(optimizer)
    try:
        yield
    finally:
        exchange(optimizer)


def _multiply_rates(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    for group in optimizer.param_groups:
        group["lr"] *= group["factor"]
