"""What fine-tuning makes small, and how it is looked at meanwhile: the loss of a batch,
the figures of a whole split.

`consistency_loss` asks a model twice about the same batch. Dropout leaves out other
features each time, and the model is to say the same (R-Drop, Liang et al. 2021).
"""

from collections.abc import Sequence
from operator import attrgetter

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.finetuning.examples import Example, TaskBatch, collate
from course_lib.finetuning.task_model import TaskModel, looking
from course_lib.training.batches import to_device


def task_loss(
    model: TaskModel, batch: TaskBatch
) -> tuple[Float[Tensor, ""], int | Tensor]:
    """Return the sum of the losses of a batch, and how many it adds up."""
    assert batch.labels is not None
    return model.loss_sum(
        model(batch.input_ids, batch.attention_mask, batch.token_type_ids), batch.labels
    )


def consistency_loss(
    model: TaskModel, batch: TaskBatch, weight: float
) -> tuple[Float[Tensor, ""], int | Tensor]:
    """Return the loss of two passes that differ in their dropout, and what they
    disagree by.

    Parameters
    ----------
    model
        One that chooses a class for each input, in training mode: without dropout both
        passes are the same.
    batch
        With its labels.
    weight
        Of the disagreement, beside the mean of the two losses.

    Returns
    -------
    tuple
        The mean of the two sums of losses plus `weight` times the sum of the
        disagreements; the number of inputs.

    Raises
    ------
    ValueError
        If the model does not choose one class for each input.

    Notes
    -----
    Liang et al. 2021, section 2.1; they add the two losses up where we take the mean,
    so their weight is twice ours.

    Examples
    --------
    >>> from course_lib.bert.config import BertConfig
    >>> from course_lib.finetuning.heads import SequenceClassifier
    >>> model = SequenceClassifier(BertConfig.tiny(vocab_size=12), 2)
    >>> batch = collate([Example([([2, 3], [0, 0])], 1)])
    >>> alone = task_loss(model.eval(), batch)
    >>> both = consistency_loss(model, batch, weight=1.0)
    >>> torch.allclose(alone[0], both[0]), both[1]
    (True, 1)
    """
    assert batch.labels is not None
    inputs = (batch.input_ids, batch.attention_mask, batch.token_type_ids)
    logits = model(
        *(None if part is None else torch.cat([part, part]) for part in inputs)
    )
    if model.guesses_number or not isinstance(logits, Tensor) or logits.dim() != 2:
        raise ValueError(
            f"{type(model).__name__} does not choose one class for each input; set"
            " consistency to 0"
        )
    first, second = logits.chunk(2)
    (one, count), (other, _) = (
        model.loss_sum(half, batch.labels) for half in (first, second)
    )
    return (one + other) / 2 + weight * disagreement(first, second).sum(), count


def disagreement(
    first: Float[Tensor, "B L"], second: Float[Tensor, "B L"]
) -> Float[Tensor, "B"]:
    """Return how far two guesses are apart: the mean of the Kullback-Leibler
    divergences in both directions."""
    precise = torch.promote_types(first.dtype, torch.float32)
    one, other = (logits.to(precise).log_softmax(dim=-1) for logits in (first, second))
    return ((one.exp() - other.exp()) * (one - other)).sum(dim=-1) / 2


def evaluate(
    model: TaskModel, examples: Sequence[Example], batch_size: int = 32
) -> dict[str, float]:
    """Return a model's mean loss, and the share of its guesses that are right."""
    check_examples("examples", examples)
    total, count, right, guesses = 0.0, 0, 0, 0
    ordered = sorted(examples, key=attrgetter("length"))
    with looking(model) as where:
        for start in range(0, len(ordered), batch_size):
            batch = to_device(
                collate(
                    ordered[start : start + batch_size], model.config.pad_token_id or 0
                ),
                where,
            )
            logits = model(batch.input_ids, batch.attention_mask, batch.token_type_ids)
            loss, terms = model.loss_sum(logits, batch.labels)
            total, count = total + float(loss), count + int(terms)
            if not model.guesses_number:
                found = model.right(logits, batch.labels)
                right, guesses = right + int(found.sum()), guesses + found.numel()
    figures = {"loss": total / count}
    return figures if model.guesses_number else figures | {"accuracy": right / guesses}


def check_examples(name: str, examples: Sequence[Example]) -> None:
    """Refuse examples that nothing can be learnt from."""
    if not examples:
        raise ValueError(f"{name} is empty; give at least one example")
    if any(example.label is None for example in examples):
        raise ValueError(f"an example in {name} has no label; make them with labels")
