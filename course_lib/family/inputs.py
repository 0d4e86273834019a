"""The family of BERT: what its members change in the input, in what is hidden, and in
what may be seen.

One function each for RoBERTa, ERNIE, XLNet and T5, whose models are otherwise ours:
:mod:`course_lib.pretraining.batches` has dynamic masking and sequences without next
sentences, :mod:`course_lib.transformer.model` is an encoder with a decoder. Members
whose model differs have a module: :mod:`course_lib.family.albert`,
:mod:`course_lib.family.distilbert`, :mod:`course_lib.family.colbert`; what to do with a
causal model is in :mod:`course_lib.family.prompting`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def roberta_positions(
    input_ids: Int[Tensor, "B T"], pad_token_id: int = 1
) -> Int[Tensor, "B T"]:
    """Number the positions as published RoBERTa models do: the first token has the
    number behind that of padding.

    Parameters
    ----------
    input_ids
        Padded.
    pad_token_id
        The id of padding, and the row of the position table that padding has: 1 in the
        published vocabulary.

    Returns
    -------
    Tensor
        Rows of the position table. It needs `pad_token_id` + 1 rows more than a
        sequence has tokens: 514 for 512.

    Notes
    -----
    Liu et al. 2019, in their code; the paper does not say it.

    Examples
    --------
    >>> roberta_positions(torch.tensor([[0, 31, 64, 2], [0, 31, 2, 1]]))
    tensor([[2, 3, 4, 5],
            [2, 3, 4, 1]])
    """
    real = input_ids != pad_token_id
    return real.cumsum(dim=1) * real + pad_token_id


def entity_ids(
    input_ids: Int[Tensor, "B T"], entities: Sequence[Sequence[int]]
) -> Int[Tensor, "B T"]:
    """Number what is hidden as a whole: an entity is one unit, any other token is one
    of its own.

    Sun et al. 2019 (ERNIE), section 3.2."""
    continues = torch.zeros_like(input_ids, dtype=torch.bool)
    taken = torch.zeros_like(continues)
    for entity in sorted(entities, key=len, reverse=True):
        if not entity:
            raise ValueError("an entity has no token; leave it out")
        size = len(entity)
        if size > input_ids.shape[1]:
            continue
        pattern = torch.tensor(entity, device=input_ids.device)
        found = (input_ids.unfold(1, size, 1) == pattern).all(dim=-1)
        for row, start in found.nonzero().tolist():
            place = slice(start, start + size)
            if not taken[row, place].any():
                taken[row, place] = True
                continues[row, start + 1 : start + size] = True
    return (~continues).cumsum(dim=1) - 1


class StreamMasks(NamedTuple):
    """Who sees whom when tokens are guessed in an order of one's own; True means "may
    attend"."""

    content: Bool[Tensor, "T T"]
    query: Bool[Tensor, "T T"]


def permutation_masks(order: Sequence[int] | Int[Tensor, "T"]) -> StreamMasks:
    """Let each position see those that come before it in an order, wherever they stand
    in the text.

    Parameters
    ----------
    order
        The positions, each once: the first is guessed from nothing, the last from all
        others.

    Returns
    -------
    StreamMasks
        With the order 0, 1, 2, ... the first mask is
        `course_lib.attention.masks.causal_mask`. The first of the order sees nobody in
        the second: nothing can be computed there, so it is not trained on.

    Raises
    ------
    ValueError
        If a position is missing or stands there twice.

    Notes
    -----
    Yang et al. 2019, section 2.3 and figure 4.

    Examples
    --------
    >>> masks = permutation_masks([2, 1, 3, 0])  # the third word first
    >>> masks.content.int()
    tensor([[1, 1, 1, 1],
            [0, 1, 1, 0],
            [0, 0, 1, 0],
            [0, 1, 1, 1]], dtype=torch.int32)
    >>> masks.query[0].int()
    tensor([0, 1, 1, 1], dtype=torch.int32)
    """
    places = torch.as_tensor(order)
    if sorted(places.tolist()) != list(range(len(places))):
        raise ValueError(
            f"the order is {places.tolist()}; it must hold each position from 0 once"
        )
    rank = torch.empty_like(places)
    rank[places] = torch.arange(len(places), device=places.device)
    return StreamMasks(rank[None, :] <= rank[:, None], rank[None, :] < rank[:, None])


def corrupt_spans(
    ids: Sequence[int], spans: Sequence[tuple[int, int]], sentinels: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Turn masked language modelling into text to text: cut stretches out, and ask for
    them one behind the other.

    Raffel et al. 2020, section 3.1.4 and figure 2."""
    if len(sentinels) <= len(spans):
        raise ValueError(
            f"{len(spans)} spans need {len(spans) + 1} sentinels, one to end with; got"
            f" {len(sentinels)}"
        )
    source: list[int] = []
    target: list[int] = []
    end = -1
    for (first, behind), mark in zip(spans, sentinels, strict=False):
        if not end < first < behind <= len(ids):
            raise ValueError(
                f"span ({first}, {behind}) is empty, not behind the one before, or not"
                f" in {len(ids)} ids"
            )
        source += [*ids[max(end, 0) : first], mark]
        target += [mark, *ids[first:behind]]
        end = behind
    return source + list(ids[max(end, 0) :]), [*target, sentinels[len(spans)]]
