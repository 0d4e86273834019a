"""Adapting an encoder cheaply: LoRA of several ranks beside full fine-tuning, a frozen
encoder and SetFit, with the same labels (`pydocs-topic`).
"""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from course_lab import stand_ins
from course_lab.ch08_finetuning import few_rows
from course_lab.ch08_finetuning.finetuning_tasks import Task, read_task
from course_lab.probing import start
from course_lab.study import Study, shortened
from course_lib.files import CHECKPOINTS
from course_lib.finetuning.examples import collate
from course_lib.finetuning.finetune import FineTuningConfig, finetune
from course_lib.finetuning.heads import SequenceClassifier
from course_lib.modern.contrastive import setfit
from course_lib.modern.lora import add_lora, merge_lora
from course_lib.sentence_bert.model import SentenceBert
from course_lib.training.batches import set_seed
from course_lib.wordpiece.fast import FastWordPiece

WAYS = ("fine-tuned", "frozen", "LoRA", "SetFit")
LAYERS = ("query", "value")
LENGTH = 64


@dataclass(frozen=True)
class Adaptation:
    """One way to adapt an encoder, with so many labels."""

    way: str  # of `WAYS`
    labels: int
    config: FineTuningConfig = field(default_factory=FineTuningConfig)
    rank: int = 0  # of LoRA
    pairs: int = 0  # of SetFit

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise ValueError(f"way is {self.way!r}; choose one of {', '.join(WAYS)}")


def adapt(variant: Adaptation, task: Task, folder: str, seed: int) -> dict[str, Any]:
    """Train and score one variant."""
    tokenizer = FastWordPiece.load(folder)
    rows = task.train.sample(variant.labels, seed)
    config = replace(variant.config, seed=seed)
    set_seed(seed)
    model = SequenceClassifier.from_pretrained(folder, labels=task.labels, seed=seed)
    if variant.way == "SetFit":
        sentences = SentenceBert(start(model.bert), tokenizer, max_length=LENGTH)
        head = setfit(sentences, rows.inputs, rows.golds, variant.pairs, config, seed)
        guesses = head.predict(sentences.encode(task.test.inputs).numpy())
        size = sum(x.numel() for x in model.bert.parameters())
        return {"scores": task.score_numbers(guesses.tolist(), task.test), "size": size}
    if variant.way == "LoRA":
        add_lora(model.bert, variant.rank, LAYERS)
    if variant.way == "frozen":
        model.bert.requires_grad_(False)
    start(model)
    trained = [x for x in model.parameters() if x.requires_grad]
    examples = task.examples(rows, tokenizer, LENGTH)
    finetune(model, examples, config=config)
    found: dict[str, Any] = {"size": sum(x.numel() for x in trained)}
    if variant.way == "LoRA":
        found["moved"] = moved_by_merging(model, examples)
        merge_lora(model)
    found["scores"] = task.score(model, tokenizer, task.test, LENGTH)
    return found


@torch.no_grad()
def moved_by_merging(model: SequenceClassifier, examples: list[Any]) -> float:
    """Return by how much the largest logit moves when LoRA is merged."""
    batch = collate(examples[:16], 0)
    inputs = (batch.input_ids, batch.attention_mask, batch.token_type_ids)
    before = model.to("cpu").eval()(*inputs)
    merged = copy.deepcopy(model)
    merge_lora(merged)
    return float((merged(*inputs) - before).abs().max())


def run(study: Study, name: str, seed: int, read: tuple[Task, str]) -> dict[str, Any]:
    """Adapt and score one variant; `read` is the task and the checkpoint's folder."""
    return adapt(study.variants[name], read[0], read[1], seed)


def read(study: Study, source: str | None, _: str | None) -> tuple[Task, str]:
    """Read the task, and find the shipped checkpoint."""
    folder = str(CHECKPOINTS / study.shared["checkpoint"])
    return read_task(study.shared["task"], source), folder


def probe(study: Study, name: str) -> tuple[Study, tuple[Task, str]]:
    """Shorten a study, with few rows and a stand-in of the checkpoint."""
    short = shortened(
        study.variants, steps=4, precision="float32", batch_size=8, labels=24, pairs=32
    )
    inputs = few_rows.task(study.shared["task"]), str(stand_ins.checkpoint())
    return replace(study, variants=short), inputs


def _config(rate: float, **others: Any) -> FineTuningConfig:
    return FineTuningConfig(
        steps=200, learning_rate=rate, batch_size=16, progress=False, **others
    )


FEW, MANY = 80, 1000
STUDY = Study(
    "encoders-adapting",
    {
        f"{name}, {labels}": replace(variant, labels=labels)
        for labels in (FEW, MANY)
        for name, variant in {
            "fine-tuned": Adaptation("fine-tuned", FEW, _config(5e-4)),
            "frozen": Adaptation("frozen", FEW, _config(5e-3)),
            **{
                f"LoRA {rank}": Adaptation("LoRA", FEW, _config(5e-3), rank)
                for rank in (1, 4, 16)
            },
            "SetFit": Adaptation("SetFit", FEW, _config(5e-4), pairs=3200),
        }.items()
    },
    read,
    run,
    probe,
    {"task": "pydocs-topic", "checkpoint": "tiny"},
    ("pydocs-topic",),
    unprobed=("moved",),
)
