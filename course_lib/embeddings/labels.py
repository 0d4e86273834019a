"""Language models that guess the next word: their batches and labels, the same for a
recurrent one and for GPT.

Other letters: N, predictions.

The batches are those of pre-training with nothing hidden, so a masked and a causal
language model can be compared on the same sequences in the same order.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import check_boolean
from course_lib.pretraining.batches import PreTrainingBatch


class LanguageModelBatch(NamedTuple):
    """Text to guess, word by word."""

    input_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"] | None = None


def unhidden(
    epochs: Callable[[int], Sequence[PreTrainingBatch]],
) -> Callable[[int], Iterator[LanguageModelBatch]]:
    """Give back what was hidden: the same sequences, for a model that reads in one
    direction."""

    def clean(epoch: int) -> Iterator[LanguageModelBatch]:
        for batch in epochs(epoch):
            ids = batch.input_ids.flatten().scatter(
                0, batch.masked_positions, batch.masked_labels
            )
            yield LanguageModelBatch(ids.view_as(batch.input_ids), batch.attention_mask)

    return clean


def neighbour_labels(
    batch: LanguageModelBatch, forward: bool = True
) -> tuple[Int[Tensor, "N"], Int[Tensor, "N"]]:
    """Say where a neighbour is to be guessed, and which it is."""
    ids = batch.input_ids
    real = (
        torch.ones_like(ids, dtype=torch.bool)
        if batch.attention_mask is None
        else batch.attention_mask
    )
    check_boolean(real, "attention_mask", "token")
    step = 1 if forward else -1
    has_neighbour = real.clone()
    has_neighbour[:, -1 if forward else 0] = False
    # at the edge it rolls around, which the line above forbids
    has_neighbour &= real.roll(-step, dims=1)
    positions = has_neighbour.flatten().nonzero().squeeze(1)
    return positions, ids.flatten()[positions + step]


def cross_entropy_sum(
    head: nn.Module,
    hidden: Float[Tensor, "B T D"],
    positions: Int[Tensor, "N"],
    labels: Int[Tensor, "N"],
) -> Float[Tensor, ""]:
    """Add up how badly an output layer guesses, computed where something is asked
    only."""
    # (B, T, D) -> (B * T, D) -> (N, D) -> (N, V)
    logits = head(hidden.flatten(0, 1)[positions])
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
