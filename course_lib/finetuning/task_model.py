"""A fine-tuned BERT on disk: its encoder as in :mod:`course_lib.bert.files`, and beside
it the head and its labels.

The layout is that of ``transformers``' task models: the encoder's names begin with
``bert.``, the head is called ``classifier`` or ``qa_outputs``, and ``config.json``
names the kind of model and the labels.
"""

import copy
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.files import (
    CONFIG,
    WEIGHTS,
    LoadReport,
    checkpoint_folder,
    read_bert,
    save_bert,
    write_json,
)
from course_lib.bert.model import BertModel
from course_lib.bert.weights import some
from course_lib.files import write_whole
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece

POOLER = frozenset({"pooler.dense.weight", "pooler.dense.bias"})

Model = TypeVar("Model", bound="TaskModel")


class TaskModel(nn.Module):
    """What all fine-tuned models share: an encoder, a head, the names of the labels,
    and how they are kept."""

    head: ClassVar[str]
    architecture: ClassVar[str]
    pools: ClassVar[bool] = True
    fixed_labels: ClassVar[tuple[str, ...] | None] = None
    bert: BertModel

    def __init__(self, config: BertConfig, labels: int | Sequence[str]):
        super().__init__()
        self.config = config
        self.labels = label_names(labels)

    @property
    def guesses_number(self) -> bool:
        """Whether it has one output that is no score of a class: then it is trained on
        squared errors."""
        return self.fixed_labels is None and len(self.labels) == 1

    def loss_sum(self, logits: Any, labels: Tensor) -> tuple[Tensor, "int | Tensor"]:
        """Return the sum of the losses of a batch, and how many it adds up."""
        raise NotImplementedError

    def right(self, logits: Any, labels: Tensor) -> Tensor:
        """Say which guesses are right."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(
        cls: type[Model],
        path_or_hub_id: str | Path,
        dtype: torch.dtype | None = None,
        revision: str | None = None,
        *,
        labels: int | Sequence[str] | None = None,
        seed: int = 0,
    ) -> Model:
        """Take the encoder of any BERT, and the head that the checkpoint holds, or a
        new one."""
        folder = checkpoint_folder(path_or_hub_id, revision)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            bert, report = read_bert(folder, BertModel, dtype)
            held = _held_head(cls, folder, bert.config.hidden_size)
            names = _chosen_labels(cls, folder, labels, held)
            model = cls(bert.config) if cls.fixed_labels else cls(bert.config, names)  # type: ignore[call-arg]
        if not cls.pools:
            bert.pooler = model.bert.pooler
        model.bert = bert
        if held and len(held.labels) == len(names) and _agree(held.labels, names):
            head = {"weight": held.weight, "bias": held.bias}
            getattr(model, cls.head).load_state_dict(head)
        else:
            held = None
        _warn(cls, folder / WEIGHTS, report, head_is_new=held is None)
        return model.to(dtype or torch.get_default_dtype()).eval()

    def save_pretrained(
        self,
        folder: str | Path,
        tokenizer: WordPiece | FastWordPiece | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Write encoder, head and labels, and the tokenizer, so that ``transformers``
        reads them too."""
        folder = Path(folder)
        save_bert(self.bert, folder, tokenizer, dtype)
        encoder = load_file(folder / WEIGHTS)
        tensors = {f"bert.{name}": tensor for name, tensor in encoder.items()}
        for name, tensor in getattr(self, self.head).state_dict().items():
            kept = tensor.detach().to("cpu", dtype or tensor.dtype)
            tensors[f"{self.head}.{name}"] = kept.contiguous()
        settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        settings["architectures"] = [self.architecture]
        if self.fixed_labels is None:
            numbered = list(enumerate(self.labels))
            settings["id2label"] = {str(index): name for index, name in numbered}
            settings["label2id"] = {name: index for index, name in numbered}
        write_whole(
            folder / WEIGHTS,
            lambda path: save_file(tensors, path, metadata={"format": "pt"}),
        )
        write_json(folder / CONFIG, settings)


def average(models: Sequence[Model]) -> Model:
    """Make one model of several that were fine-tuned from the same checkpoint: each
    weight is the mean of theirs."""
    if not models:
        raise ValueError("there are no models to average")
    first = models[0]
    if any(
        (type(model), model.config, model.labels)
        != (type(first), first.config, first.labels)
        for model in models
    ):
        raise ValueError(
            "the models differ in their kind, their configuration or their labels;"
            " average like ones"
        )
    mean = copy.deepcopy(first)
    states = [model.state_dict() for model in models]
    with torch.no_grad():
        for name, tensor in mean.state_dict().items():
            if tensor.is_floating_point():
                like = [state[name].to(tensor.device) for state in states]
                tensor.copy_(torch.stack(like).mean(dim=0))
    return mean.eval()


@contextmanager
def looking(model: nn.Module) -> Iterator[torch.device]:
    """Put a model into evaluation mode, without gradients, and afterwards into the mode
    that it was in."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield next(model.parameters()).device
    finally:
        model.train(was_training)


def label_names(labels: int | Sequence[str]) -> tuple[str, ...]:
    """Name the labels of a model."""
    names = (
        tuple(f"LABEL_{index}" for index in range(labels))
        if isinstance(labels, int)
        else tuple(labels)
    )
    if not names:
        raise ValueError(
            f"labels is {labels!r}; a task has at least one label: pass their names, or"
            " how many there are"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"labels has {twice[0]!r} twice; each label needs a name of its own"
        )
    return names


class _Head(NamedTuple):
    """The head of a checkpoint."""

    weight: Tensor
    bias: Tensor
    labels: tuple[str, ...]


def _held_head(kind: type[TaskModel], folder: Path, width: int) -> _Head | None:
    """Read the head of a checkpoint whose configuration says that it is a model of this
    kind."""
    # the encoder has read it and found it good
    settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    listed = settings.get("architectures")
    if not isinstance(listed, list) or kind.architecture not in listed:
        return None
    path = folder / WEIGHTS
    with safe_open(path, framework="pt") as file:
        there = set(file.keys())
        for name in (f"{kind.head}.weight", f"{kind.head}.bias"):
            if name not in there:
                raise ValueError(
                    f"{path} lacks {name}, though {CONFIG} says that it is a"
                    f" {kind.architecture}"
                )
        shape, bias_shape = (
            tuple(file.get_slice(f"{kind.head}.{x}").get_shape())
            for x in ("weight", "bias")
        )
        if len(shape) != 2 or shape[1] != width or bias_shape != shape[:1]:
            raise ValueError(
                f"{path}: {kind.head} has a matrix of {shape} and an offset of"
                f" {bias_shape}, but a head on {width} features has (labels, {width})"
                " and (labels,)"
            )
        labels = _stored_labels(folder / CONFIG, settings.get("id2label"), shape[0])
        if kind.fixed_labels is not None and len(kind.fixed_labels) != shape[0]:
            raise ValueError(
                f"{path}: {kind.head} has {shape[0]} rows; a {kind.__name__} has"
                f" {len(kind.fixed_labels)}"
            )
        weight, bias = (file.get_tensor(f"{kind.head}.{x}") for x in ("weight", "bias"))
    return _Head(weight, bias, kind.fixed_labels or labels)


def _stored_labels(path: Path, id2label: Any, count: int) -> tuple[str, ...]:
    if id2label is None:
        return label_names(count)
    numbers = set(map(str, range(count)))
    if not isinstance(id2label, dict) or id2label.keys() != numbers:
        raise ValueError(
            f"{path}: id2label does not name the labels 0 to {count - 1}, as many as"
            " the head has rows"
        )
    names = [id2label[str(index)] for index in range(count)]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{path}: id2label holds a name that is no word")
    return label_names(names)


def _chosen_labels(
    kind: type[TaskModel],
    folder: Path,
    labels: int | Sequence[str] | None,
    held: _Head | None,
) -> tuple[str, ...]:
    if kind.fixed_labels is not None:
        if labels is not None:
            raise ValueError(
                f"the outputs of a {kind.__name__} are the same in all tasks; leave"
                " labels out"
            )
        return kind.fixed_labels
    if labels is None:
        if held is None:
            raise ValueError(
                f"{folder} holds no {kind.architecture} whose labels could be taken;"
                " pass labels, their names or how many there are"
            )
        return held.labels
    names = label_names(labels)
    return (
        held.labels
        if held and isinstance(labels, int) and labels == len(held.labels)
        else names
    )


def _agree(held: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Labels that a file numbers and does not name are whatever the caller
    calls them."""
    return held == names or held == label_names(len(names))


def _warn(
    kind: type[TaskModel], path: Path, report: LoadReport, head_is_new: bool
) -> None:
    used = set() if head_is_new else {f"{kind.head}.weight", f"{kind.head}.bias"}
    if not kind.pools:
        used |= POOLER | {f"bert.{name}" for name in POOLER}
    rest = [name for name in report.left_over if name not in used]
    new = report.new if kind.pools else []
    new = [*new, "the head"] if head_is_new else new
    if rest:
        warnings.warn(
            f"{path}: left aside, since this {kind.__name__} has no place for it:"
            f" {some(rest)}",
            stacklevel=3,
        )
    if new:
        verb = "is" if len(new) == 1 else "are"
        warnings.warn(
            f"{' and '.join(new)} of this {kind.__name__} {verb} new, to be trained",
            stacklevel=3,
        )
