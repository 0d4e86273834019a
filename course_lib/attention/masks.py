"""Masks: which keys a query may attend to, and a softmax that obeys.

Other letters: S, padded length.

Masks are boolean, and True means "may attend". :func:`masked_softmax` serves the
scores of chapter 1; ``multi_head.scaled_dot_product_attention``, on which BERT stands,
writes the same line out.

A wrong mask or length raises a ValueError that names it. A graph that ``torch.compile``
traces knows no values yet, so there the check becomes a part of the graph, and what is
wrong stops it with a RuntimeError.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def padding_mask(
    lengths: Int[Tensor, "B"], max_length: int | None = None
) -> Bool[Tensor, "B S"]:
    """Mark the positions of a padded batch that hold a word.

    Parameters
    ----------
    lengths
        Number of words of each sentence, each at least 1.
    max_length
        Padded length S; the longest sentence if not given.

    Returns
    -------
    Tensor
        True at words, False at padding.

    Raises
    ------
    ValueError
        If there is no sentence, or one has no word or is longer than `max_length`.

    Examples
    --------
    >>> padding_mask(torch.tensor([3, 1]))
    tensor([[ True,  True,  True],
            [ True, False, False]])
    """
    if len(lengths) == 0:
        raise ValueError("the batch holds no sentence; leave out empty batches")
    if max_length is not None and torch.compiler.is_compiling():
        fits = (lengths >= 1) & (lengths <= max_length)
        torch._assert_async(
            fits.all(), "a sentence has no word, or more words than max_length"
        )
    else:
        max_length = _padded_length(lengths, max_length)
    positions = torch.arange(max_length, device=lengths.device)
    return positions < lengths[:, None]  # (S) < (B, 1) -> (B, S)


def _padded_length(lengths: Tensor, max_length: int | None) -> int:
    shortest, longest = torch.stack(
        lengths.aminmax()
    ).tolist()  # one look at the device, which waits for its work
    if shortest < 1:
        raise ValueError(
            f"sentence {int(lengths.argmin())} has length {shortest}; every sentence"
            " needs at least one word, so drop empty sentences before batching"
        )
    if max_length is not None and longest > max_length:
        raise ValueError(
            f"sentence {int(lengths.argmax())} has {longest} words but max_length is"
            f" {max_length}; truncate it or pass max_length={longest}"
        )
    return longest if max_length is None else max_length


def causal_mask(
    length: int, device: torch.device | str | None = None
) -> Bool[Tensor, "T T"]:
    """Let each position attend to itself and to those before it (Vaswani et al. 2017,
    section 3.2.3).

    Parameters
    ----------
    length
        Number of positions T, at least 1.
    device
        Where the mask is made.

    Returns
    -------
    Tensor
        Row t is True at columns 0 to t.

    Raises
    ------
    ValueError
        If `length` is below 1.

    Examples
    --------
    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    if length < 1:
        raise ValueError(
            f"length is {length}; a causal mask needs at least one position"
        )
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def check_boolean(
    mask: Tensor, name: str = "mask", meaning: str = "may attend"
) -> None:
    """Refuse a mask of numbers: torch adds them to the scores, and then 0 forbids
    nothing."""
    if mask.dtype != torch.bool:
        dtype = str(mask.dtype).removeprefix("torch.")
        raise ValueError(
            f"{name} has dtype {dtype}; expected bool (True = {meaning}): pass"
            " mask.bool()"
        )


def check_mask(
    mask: Bool[Tensor, "*any"], dim: int = -1, causal: bool = False, name: str = "mask"
) -> None:
    """Refuse a mask of numbers, and one under which a query may attend to nothing: its
    softmax would be 0/0."""
    check_boolean(mask, name)
    if causal:
        mask = mask & causal_mask(mask.shape[-1], mask.device)
    answered = mask.any(dim=dim)
    if torch.compiler.is_compiling():
        torch._assert_async(
            answered.all(),
            "the mask forbids every key for a query, so its weights cannot sum to 1",
        )
    elif not bool(answered.all()):
        empty = int((~answered).sum())
        raise ValueError(
            f"the mask forbids every key for {empty} of the queries, so their weights"
            " cannot sum to 1; True means 'may attend': leave at least one True for"
            " each query (is the mask inverted?)"
        )


def masked_softmax(
    scores: Float[Tensor, "*shape"],
    mask: Bool[Tensor, "*#shape"] | None = None,
    dim: int = -1,
) -> Float[Tensor, "*shape"]:
    r"""Turn scores into weights that are 0 where the mask forbids and sum to 1
    elsewhere.

    .. math:: \alpha_{j} = \frac{m_j \exp(e_{j})}{\sum_k m_k \exp(e_{k})}

    Forbidden scores become minus infinity rather than a large negative number, so the
    weight is exactly 0 in every precision.

    Parameters
    ----------
    scores
        Any shape.
    mask
        True where attention is allowed; broadcasts against `scores`. None allows all.
    dim
        The dimension that is normalised: that of the keys.

    Returns
    -------
    Tensor
        Weights in [0, 1], of the shape and dtype of `scores`.

    Raises
    ------
    ValueError
        If the mask is not boolean, or a query may attend to no key at all.

    Notes
    -----
    Bahdanau et al. 2015, equation 6.

    Examples
    --------
    >>> masked_softmax(torch.tensor([0.0, 0.0, 5.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        mask = mask.expand_as(scores)
        check_mask(mask, dim)
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim)
