"""The same fine-tuned BERT twice: ours and that of ``transformers``, with one set of
weights."""

import dataclasses
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.weights import to_published
from course_lib.finetuning.heads import (
    MultipleChoiceClassifier,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from course_lib.finetuning.task_model import TaskModel

# Sizes that all differ, and everything that can be chosen chosen otherwise than by
# default.
CONFIG = BertConfig(
    vocab_size=41,
    hidden_size=15,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=22,
    max_position_embeddings=19,
    type_vocab_size=3,
    hidden_dropout_prob=0.3,
    attention_probs_dropout_prob=0.2,
    layer_norm_eps=0.01,
)
KINDS: dict[str, tuple[type[TaskModel], tuple[Any, ...]]] = {
    "classes": (SequenceClassifier, (["neutral", "good", "bad", "mixed"],)),
    "number": (SequenceClassifier, (1,)),
    "tags": (TokenClassifier, (["O", "B-PER", "I-PER", "B-LOC", "I-LOC"],)),
    "spans": (SpanClassifier, ()),
    "choices": (MultipleChoiceClassifier, ()),
}


def lively_task(kind: str, seed: int = 0, config: BertConfig = CONFIG) -> TaskModel:
    """Give every parameter a value that the initialisation to 0 or 1 would hide; what
    is computed stays unsaturated."""
    model_class, labels = KINDS[kind]
    model = model_class(config, *labels).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.7 / parameter.shape[-1] ** 0.5 if parameter.dim() == 2 else 0.2
            if parameter.dim() == 2 and (
                "pooler" in name or not name.startswith("bert.")
            ):
                # else the states of [CLS], and so the logits, would hardly differ
                spread *= 4
            parameter.copy_(
                spread
                * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            )
            if parameter.dim() == 1:
                parameter.add_(0.6)
    return model


def theirs_for(ours: TaskModel) -> nn.Module:
    """Build the model of ``transformers`` with our weights, in our mode."""
    names = {} if ours.fixed_labels else {"id2label": dict(enumerate(ours.labels))}
    settings = transformers.BertConfig(**dataclasses.asdict(ours.config), **names)
    theirs = getattr(transformers, ours.architecture)(settings).to(
        next(ours.parameters()).dtype
    )
    theirs.load_state_dict(by_their_names(ours, ours.state_dict()), strict=True)
    return theirs.train(ours.training)


def by_their_names(ours: TaskModel, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Name an encoder's tensors as published, and leave the head's names as they are:
    they are to be equal."""
    encoder = {
        name: tensor for name, tensor in tensors.items() if name.startswith("bert.")
    }
    return to_published(encoder) | {
        name: tensor for name, tensor in tensors.items() if name not in encoder
    }


class TaskInputs:
    """Sequences of unequal lengths with labels of a kind of task; sizes and paddings
    that all differ."""

    def __init__(
        self,
        kind: str,
        seed: int = 0,
        length: int = 13,
        size: int = 6,
        choices: int = 4,
    ):
        generator = torch.Generator().manual_seed(seed)
        shape = (size, choices, length) if kind == "choices" else (size, length)

        def draw(high: int, *of: int) -> Tensor:
            return torch.randint(high, of or shape, generator=generator)

        self.input_ids, self.token_type_ids = (
            draw(CONFIG.vocab_size),
            draw(2).sort(dim=-1).values,
        )
        self.attention_mask = torch.arange(length) < draw(length, *shape[:-1], 1) + 1
        self.labels = {
            "classes": lambda: draw(4, size),
            "number": (
                lambda: torch.rand(size, generator=generator, dtype=torch.float64) * 5
            ),
            "tags": lambda: draw(5).where(self.attention_mask & (draw(3) > 0), -100),
            "spans": lambda: draw(length, size, 2).sort(dim=1).values,
            "choices": lambda: draw(choices, size),
        }[kind]()

    def inputs(self) -> dict[str, Tensor]:
        return {
            "input_ids": self.input_ids,
            "attention_mask": self.attention_mask,
            "token_type_ids": self.token_type_ids,
        }

    def their_labels(self, kind: str) -> dict[str, Tensor]:
        if kind == "spans":
            return {
                "start_positions": self.labels[:, 0],
                "end_positions": self.labels[:, 1],
            }
        return {"labels": self.labels}
