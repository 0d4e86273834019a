"""Attention: turn scores into weights and average the values with them; one head or
many.

Chapter 1 uses it between an encoder and a decoder, chapter 2 within one sequence. The
functions are the same.

Other letters: E, features of a value; Q, K, features of a query and of a
key; N, features of one head.

Masks are boolean, and True means "may attend" (:mod:`course_lib.attention.masks`).
Keys and values that decoding keeps are the affair of
:mod:`course_lib.transformer.cache`.
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.attention.checks import (
    check_attention_inputs,
    check_divides,
    check_heads,
    check_scores,
)
from course_lib.attention.masks import causal_mask, masked_softmax


def attend(
    scores: Float[Tensor, "B T S"],
    values: Float[Tensor, "B S E"],
    mask: Bool[Tensor, "B #T S"] | None = None,
) -> tuple[Float[Tensor, "B T E"], Float[Tensor, "B T S"]]:
    """Average the values with the softmax of the scores as weights (Bahdanau et al.
    2015, equations 5 and 6).

    Parameters
    ----------
    scores
        How relevant each of the S values is to each of the T queries.
    values
        What is averaged.
    mask
        True where attention is allowed.

    Returns
    -------
    tuple of Tensor
        The contexts, one for each query, and the weights that made them.

    Raises
    ------
    ValueError
        If the mask is not boolean, or a query may attend to no key at all.

    Examples
    --------
    >>> context, weights = attend(torch.zeros(1, 1, 2), torch.tensor([[[2.0], [4.0]]]))
    >>> context.item(), weights.tolist()
    (3.0, [[[0.5, 0.5]]])
    """
    weights = masked_softmax(scores, mask)
    return weights @ values, weights  # (B, T, S) @ (B, S, E) -> (B, T, E)


def scaled_dot_product_attention(
    query: Float[Tensor, "*batch T Q"],
    key: Float[Tensor, "*batch S K"],
    value: Float[Tensor, "*batch S E"],
    mask: Bool[Tensor, "*#batch #T S"] | None = None,
    dropout: nn.Module | None = None,
) -> tuple[Float[Tensor, "*batch T E"], Float[Tensor, "*batch T S"]]:
    r"""Attend with scaled dot products (Vaswani et al. 2017, equation 1).

    .. math:: \operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d}}\right)V

    Parameters
    ----------
    query, key, value
        Any number of leading dimensions (batch, heads), the same in all three; query
        and key share their features.
    mask
        True where attention is allowed; leading dimensions and T may be 1.
    dropout
        A layer that the weights pass before they are used: in training it sets some of
        them to zero.

    Returns
    -------
    tuple of Tensor
        The output, and the weights (before dropout).

    Raises
    ------
    ValueError
        If query and key differ in features, the mask is not boolean, or (on a CPU) a
        query may attend to no key at all.

    Examples
    --------
    >>> query, key, value = (
    ...     torch.eye(2)[:1],
    ...     torch.eye(2),
    ...     torch.tensor([[10.0], [20.0]]),
    ... )
    >>> scaled_dot_product_attention(query, key, value)  # the scores: 1/sqrt(2) and 0
    (tensor([[13.3024]]), tensor([[0.6698, 0.3302]]))
    """
    check_scores(query, key, mask)
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (*batch, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)  # a weight of exactly 0
    weights = scores.softmax(dim=-1)  # each row sums to 1
    kept = weights if dropout is None else dropout(weights)
    return kept @ value, weights  # (*batch, T, S) @ (*batch, S, E) -> (*batch, T, E)


def split_heads(
    hidden: Float[Tensor, "*batch T D"], num_heads: int
) -> Float[Tensor, "*batch H T _"]:
    """Cut the features into heads, so that each head attends on its own (Vaswani et al.
    2017, section 3.2.2).

    Parameters
    ----------
    hidden
        Features D = heads × features of a head.
    num_heads
        Number of heads H; must divide D.

    Returns
    -------
    Tensor
        Head h holds features h · D/H to (h + 1) · D/H - 1.

    Raises
    ------
    ValueError
        If `num_heads` does not divide the features.

    Examples
    --------
    >>> split_heads(torch.arange(6.0).view(1, 1, 6), num_heads=2)
    tensor([[[[0., 1., 2.]],
    <BLANKLINE>
             [[3., 4., 5.]]]])
    """
    check_divides(hidden.shape[-1], num_heads)
    heads = hidden.unflatten(-1, (num_heads, -1))  # (*batch, T, H, D/H)
    return heads.transpose(-3, -2)  # (*batch, H, T, D/H)


def merge_heads(heads: Float[Tensor, "*batch H T N"]) -> Float[Tensor, "*batch T _"]:
    """Put the heads' features side by side again: the inverse of `split_heads`.

    Parameters
    ----------
    heads
        Output of each head, N features each.

    Returns
    -------
    Tensor
        Features H · N.

    Notes
    -----
    Vaswani et al. 2017, section 3.2.2.

    Examples
    --------
    >>> hidden = torch.randn(2, 5, 12)
    >>> torch.equal(merge_heads(split_heads(hidden, num_heads=4)), hidden)
    True
    """
    side_by_side = heads.transpose(-3, -2)  # (*batch, T, H, N)
    return side_by_side.flatten(-2)  # (*batch, T, H * N)


def self_attention_loops(
    query: Float[Tensor, "T Q"],
    key: Float[Tensor, "S K"],
    value: Float[Tensor, "S E"],
    mask: Bool[Tensor, "T S"] | None = None,
) -> tuple[Float[Tensor, "T E"], Float[Tensor, "T S"]]:
    """Attend with nested loops, number by number: for reading and for tests, not for
    speed.

    Parameters
    ----------
    query, key, value
        Of one sentence and one head.
    mask
        True where attention is allowed.

    Returns
    -------
    tuple of Tensor
        What `scaled_dot_product_attention` returns with its weights.

    Raises
    ------
    ValueError
        If query and key differ in features, the mask is not boolean, or a query may
        attend to no key at all.

    Notes
    -----
    Vaswani et al. 2017, equation 1.

    Examples
    --------
    >>> query, key, value = (
    ...     torch.eye(2)[:1],
    ...     torch.eye(2),
    ...     torch.tensor([[10.0], [20.0]]),
    ... )
    >>> self_attention_loops(query, key, value)
    (tensor([[13.3024]]), tensor([[0.6698, 0.3302]]))
    """
    check_scores(query, key, mask)
    weights = query.new_zeros(len(query), len(key))
    output = query.new_zeros(len(query), value.shape[1])
    for t in range(len(query)):
        allowed = [s for s in range(len(key)) if mask is None or mask[t, s]]
        scores = {}
        for s in allowed:
            products = [query[t, i] * key[s, i] for i in range(key.shape[1])]
            scores[s] = torch.stack(products).sum() / math.sqrt(key.shape[1])
        # subtracted from all scores: no weight changes, and exp cannot overflow
        largest = max(scores.values())
        exponentials = {s: (scores[s] - largest).exp() for s in allowed}
        total = torch.stack(list(exponentials.values())).sum()
        for s in allowed:
            weights[t, s] = exponentials[s] / total
            for i in range(value.shape[1]):
                output[t, i] += exponentials[s] / total * value[s, i]
    return output, weights


class MultiHeadAttention(nn.Module):
    """Attend with several heads, each in its own projection (Vaswani et al. 2017,
    section 3.2.2).

    Parameters
    ----------
    dim
        Features D of queries, keys, values and output.
    num_heads
        Number of heads H; must divide `dim`.
    dropout
        Share of attention weights set to zero in training.
    bias
        Whether the projections add a bias.

    Raises
    ------
    ValueError
        If `num_heads` does not divide `dim`, or `dropout` is no share.

    Notes
    -----
    First weights are those of ``torch.nn.MultiheadAttention``, which keeps the three
    projections in one matrix: hence the gain.

    `kernel` is what computes equation 1. `course_lib.training.cpu.speed_up` puts
    torch's fused one in its place, which hands out no weights: where they are asked
    for, `scaled_dot_product_attention` computes them all the same.

    Examples
    --------
    >>> attention = MultiHeadAttention(dim=12, num_heads=3)
    >>> hidden = torch.randn(2, 5, 12)
    >>> output, weights = attention(hidden, causal=True, return_weights=True)
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 12]), torch.Size([2, 3, 5, 5]))
    """

    kernel = staticmethod(scaled_dot_product_attention)

    def __init__(
        self, dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ):
        super().__init__()
        check_heads(dim, num_heads, dropout)
        self.dim, self.num_heads = dim, num_heads
        self.query = nn.Linear(dim, dim, bias)
        self.key = nn.Linear(dim, dim, bias)
        self.value = nn.Linear(dim, dim, bias)
        self.output = nn.Linear(dim, dim, bias)
        self.dropout = nn.Dropout(dropout)
        for projection in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(projection.weight, gain=0.5**0.5)
        if bias:
            for layer in (self.query, self.key, self.value, self.output):
                nn.init.zeros_(layer.bias)

    def forward(
        self,
        query: Float[Tensor, "B T D"],
        key: Float[Tensor, "B S D"] | None = None,
        value: Float[Tensor, "B S D"] | None = None,
        mask: Bool[Tensor, "#B #T S"] | Bool[Tensor, "#T S"] | None = None,
        causal: bool = False,
        return_weights: bool = False,
    ) -> Any:
        """Attend from each query to the keys it may see.

        Parameters
        ----------
        query
            One vector for each position that asks.
        key
            One for each position that is asked; the queries themselves (self-attention)
            if not given.
        value
            One for each key; the keys themselves if not given.
        mask
            True where attention is allowed, the same for all heads: ``(B, 1, S)`` for
            padding, ``(T, S)`` or ``(B, T, S)`` in general.
        causal
            Whether position t may see positions up to t only; needs as many keys as
            queries.
        return_weights
            Whether to return the weights of each head too (before dropout).

        Returns
        -------
        Tensor or tuple of Tensor
            The output, or the output and the weights.

        Raises
        ------
        ValueError
            If the mask is not boolean or, on a CPU, (joined with `causal`) leaves a
            query no key, a shape does not fit, or `causal` meets more or fewer keys
            than queries.
        """
        key = query if key is None else key
        value = key if value is None else value
        check_attention_inputs(self.dim, query, key, value, mask, causal)
        if causal:
            order = causal_mask(query.shape[1], query.device)  # (T, T)
            mask = order if mask is None else mask & order
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]  # (B, T, S) -> (B, 1, T, S): the same for all heads
        heads = (
            split_heads(self.query(query), self.num_heads),  # (B, H, T, N)
            split_heads(self.key(key), self.num_heads),  # (B, H, S, N)
            split_heads(self.value(value), self.num_heads),
        )
        kernel = scaled_dot_product_attention if return_weights else self.kernel
        mixed, weights = kernel(*heads, mask, self.dropout)
        output = self.output(merge_heads(mixed))  # (B, T, D)
        return (output, weights) if return_weights else output
