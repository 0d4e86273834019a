"""Language models that guess the next word: their batches and labels, the same for a
recurrent one and for GPT.

Dimension letters, everywhere in this module::

    B  sequences in a batch     T  positions     V  tokens in the vocabulary     N  predictions

The batches are those of pre-training with nothing hidden, so a masked and a causal
language model can be compared on the same sequences in the same order.
"""  # noqa: E501

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import check_boolean
from course_lib.pretraining.batches import PreTrainingBatch

__all__ = ["LanguageModelBatch", "cross_entropy_sum", "neighbour_labels", "unhidden"]


class LanguageModelBatch(NamedTuple):
    """Text to guess, word by word.

    Parameters
    ----------
    input_ids
        [CLS], the tokens, [SEP]; padded. ``(B, T)``.
    attention_mask
        True at tokens, False at padding, which is on the right; None when nothing is
        padded.

    Notes
    -----
    Chapter: contextual-embeddings
    """

    input_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"] | None = None


def unhidden(
    epochs: Callable[[int], Sequence[PreTrainingBatch]],
) -> Callable[[int], Iterator[LanguageModelBatch]]:
    """Give back what was hidden: the same sequences, for a model that reads in one
    direction.

    Parameters
    ----------
    epochs
        Epoch -> its batches: a `course_lib.pretraining.batches.PreTrainingBatches`.

    Returns
    -------
    Callable
        Epoch -> the same batches with their original tokens.

    Notes
    -----
    Chapter: contextual-embeddings

    Examples
    --------
    >>> ids = torch.tensor([[1, 9, 4, 2]])  # 4 stands for [MASK], and 7 was there
    >>> batch = PreTrainingBatch(
    ...     ids, ids * 0, None, torch.tensor([2]), torch.tensor([7]), None, 1.0, 1.0
    ... )
    >>> next(unhidden(lambda epoch: [batch])(0)).input_ids.tolist()
    [[1, 9, 7, 2]]
    """

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
    """Say where a neighbour is to be guessed, and which it is.

    Parameters
    ----------
    batch
        The text.
    forward
        Whether the next token is asked for; else the one before.

    Returns
    -------
    positions, labels : Tensor
        Indices into the flattened batch, t + T · b for position t of sequence b, and
        the ids of their neighbours. No position of padding is asked, and none asks for
        padding.

    Raises
    ------
    ValueError
        If the mask is not boolean.

    Notes
    -----
    Chapter: contextual-embeddings

    Examples
    --------
    >>> mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
    >>> batch = LanguageModelBatch(torch.tensor([[1, 7, 8, 2], [1, 2, 0, 0]]), mask)
    >>> [found.tolist() for found in neighbour_labels(batch)]
    [[0, 1, 2, 4], [7, 8, 2, 2]]
    >>> [found.tolist() for found in neighbour_labels(batch, forward=False)]
    [[1, 2, 3, 5], [1, 7, 8, 1]]
    """
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
    has_neighbour &= real.roll(
        -step, dims=1
    )  # at the edge it rolls around, which the line above forbids
    positions = has_neighbour.flatten().nonzero().squeeze(1)
    return positions, ids.flatten()[positions + step]


def cross_entropy_sum(
    head: nn.Module,
    hidden: Float[Tensor, "B T D"],
    positions: Int[Tensor, "N"],
    labels: Int[Tensor, "N"],
) -> Float[Tensor, ""]:
    """Add up how badly an output layer guesses, computed where something is asked only.

    Parameters
    ----------
    head
        States -> logits of the tokens.
    hidden
        The states.
    positions, labels
        From `neighbour_labels`.

    Returns
    -------
    Tensor
        The sum over predictions, in nats.

    Notes
    -----
    Chapter: contextual-embeddings

    Examples
    --------
    >>> zeros = nn.Linear(3, 8)
    >>> _ = zeros.apply(
    ...     lambda layer: [
    ...         nn.init.zeros_(parameter) for parameter in layer.parameters()
    ...     ]
    ... )
    >>> cross_entropy_sum(
    ...     zeros, torch.ones(2, 4, 3), torch.tensor([0, 5]), torch.tensor([7, 1])
    ... )  # 2 ln 8
    tensor(4.1589, grad_fn=<NllLossBackward0>)
    """
    logits = head(
        hidden.flatten(0, 1)[positions]
    )  # (B, T, D) -> (B * T, D) -> (N, D) -> (N, V)
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
