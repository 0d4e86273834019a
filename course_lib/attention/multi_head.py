"""Attention: turn scores into weights and average the values with them; one head or
many.

Chapter 1 uses it between an encoder and a decoder, chapter 2 within one sequence. The
functions are the same.

Dimension letters, everywhere in this module::

    B  sentences in a batch          T  queries (target words)     S  keys (source words)
    D  features of a hidden state    E  features of a value        Q, K  features of a query and of a key
    H  heads                         N  features of one head

Masks are boolean, and True means "may attend" (:mod:`course_lib.attention.masks`). Attention
weights are computed in the open when they are asked for; otherwise torch's fused kernel
runs, which never stores the T × S matrix, but where it is the slower way
(`MultiHeadAttention.fused`). The file is longer than 400 lines because more than half
of it is docstrings with worked examples.
"""  # noqa: E501

import math
from dataclasses import dataclass
from typing import Literal, overload

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.attention.masks import (
    causal_mask,
    check_boolean,
    check_mask,
    masked_softmax,
)
from course_lib.attention.scores import check_same_features
from course_lib.training.dropout import dropout as set_to_zero
from course_lib.training.linear import Linear

__all__ = [
    "KeyValue",
    "MultiHeadAttention",
    "attend",
    "merge_heads",
    "scaled_dot_product_attention",
    "self_attention_loops",
    "split_heads",
]


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


@overload
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    return_weights: Literal[False] = False,
) -> Tensor: ...
@overload
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    return_weights: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def scaled_dot_product_attention(
    query: Float[Tensor, "*batch T Q"],
    key: Float[Tensor, "*batch S K"],
    value: Float[Tensor, "*batch S E"],
    mask: Bool[Tensor, "*#batch #T S"] | None = None,
    return_weights: bool = False,
) -> (
    Float[Tensor, "*batch T E"]
    | tuple[Float[Tensor, "*batch T E"], Float[Tensor, "*batch T S"]]
):
    r"""Attend with scaled dot products (Vaswani et al. 2017, equation 1).

    .. math:: \operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d}}\right)V

    Without weights it runs torch's fused kernel, which never stores the T × S matrix;
    with weights it computes them in the open. Both give the same output.

    Parameters
    ----------
    query, key, value
        Any number of leading dimensions (batch, heads), the same in all three; query
        and key share their features.
    mask
        True where attention is allowed; leading dimensions and T may be 1.
    return_weights
        Whether to return the weights too.

    Returns
    -------
    Tensor or tuple of Tensor
        The output, or the output and the weights.

    Raises
    ------
    ValueError
        If query and key differ in features, the mask is not boolean, or a query may
        attend to no key at all.

    Examples
    --------
    >>> query, key, value = (
    ...     torch.eye(2)[:1],
    ...     torch.eye(2),
    ...     torch.tensor([[10.0], [20.0]]),
    ... )
    >>> output, weights = scaled_dot_product_attention(
    ...     query, key, value, return_weights=True
    ... )
    >>> output, weights  # the scores are 1/sqrt(2) and 0
    (tensor([[13.3024]]), tensor([[0.6698, 0.3302]]))
    """
    check_same_features(query, key)
    if mask is not None:
        check_mask(mask)
    if not return_weights:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = (
        query @ key.mT / math.sqrt(query.shape[-1])
    )  # (*batch, T, D) @ (*batch, D, S) -> (*batch, T, S)
    weights = masked_softmax(scores, mask)
    return weights @ value, weights  # (*batch, T, S) @ (*batch, S, E) -> (*batch, T, E)


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
    _check_divides(hidden.shape[-1], num_heads)
    return hidden.unflatten(-1, (num_heads, -1)).transpose(
        -3, -2
    )  # (*batch, T, H, D/H) -> (*batch, H, T, D/H)


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
    return heads.transpose(-3, -2).flatten(
        -2
    )  # (*batch, T, H, N) -> (*batch, T, H * N)


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
    check_same_features(query, key)
    if mask is not None:
        check_mask(mask)
    weights = query.new_zeros(len(query), len(key))
    output = query.new_zeros(len(query), value.shape[1])
    for t in range(len(query)):
        allowed = [s for s in range(len(key)) if mask is None or mask[t, s]]
        scores = {}
        for s in allowed:
            products = [query[t, i] * key[s, i] for i in range(key.shape[1])]
            scores[s] = torch.stack(products).sum() / math.sqrt(key.shape[1])
        largest = max(
            scores.values()
        )  # taken from all scores it changes no weight, and exp cannot overflow
        exponentials = {s: (scores[s] - largest).exp() for s in allowed}
        total = torch.stack(list(exponentials.values())).sum()
        for s in allowed:
            weights[t, s] = exponentials[s] / total
            for i in range(value.shape[1]):
                output[t, i] += exponentials[s] / total * value[s, i]
    return output, weights


@dataclass
class KeyValue:
    """Keys and values that decoding keeps from step to step, so that no word is
    projected twice.

    Parameters
    ----------
    key, value
        Split into heads, ``(B, H, S, N)``.
    """

    key: Tensor
    value: Tensor

    def append(self, other: "KeyValue") -> "KeyValue":
        """Return a cache that holds `other`'s positions after its own."""
        return KeyValue(
            torch.cat([self.key, other.key], dim=-2),
            torch.cat([self.value, other.value], dim=-2),
        )


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
        Whether the projections add an offset.

    Raises
    ------
    ValueError
        If `num_heads` does not divide `dim`, or `dropout` is no share.

    Notes
    -----
    The projections of all heads, for query, key and value, are rows of one matrix, in
    that order, as in ``torch.nn.MultiheadAttention.in_proj_weight``: self-attention
    then needs one matrix product instead of three.

    The attribute `fused` says whether torch's fused kernel is used where no weights are
    asked for. None, the default, uses it but in bfloat16 on a CPU: there its backward
    pass takes about three times as long as attention written out, and its forward pass
    longer too, at every length that BERT has (``benchmarks/bert.py``).

    Examples
    --------
    >>> attention = MultiHeadAttention(dim=12, num_heads=3)
    >>> hidden = torch.randn(2, 5, 12)
    >>> output, weights = attention(hidden, causal=True, return_weights=True)
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 12]), torch.Size([2, 3, 5, 5]))
    """

    def __init__(
        self, dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ):
        super().__init__()
        _check_divides(dim, num_heads)
        if not 0 <= dropout < 1:
            raise ValueError(
                f"dropout is {dropout}; it is a share, at least 0 and below 1"
            )
        self.dim, self.num_heads = dim, num_heads
        self.dropout = dropout
        self.fused: bool | None = None
        self.in_proj = Linear(dim, 3 * dim, bias=bias)
        self.out_proj = Linear(dim, dim, bias=bias)
        nn.init.xavier_uniform_(self.in_proj.weight)
        if bias:
            nn.init.zeros_(self.in_proj.bias)
            nn.init.zeros_(self.out_proj.bias)

    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        return_weights: Literal[False] = False,
    ) -> Tensor: ...
    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        *,
        return_weights: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...
    def forward(
        self,
        query: Float[Tensor, "B T D"],
        key: Float[Tensor, "B S D"] | None = None,
        value: Float[Tensor, "B S D"] | None = None,
        mask: Bool[Tensor, "#B #T S"] | Bool[Tensor, "#T S"] | None = None,
        causal: bool = False,
        return_weights: bool = False,
    ) -> (
        Float[Tensor, "B T D"] | tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"]]
    ):
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
            If the mask is not boolean or (joined with `causal`) leaves a query no key,
            a shape does not fit, or `causal` meets more or fewer keys than queries.
        """
        if mask is not None:
            check_mask(mask, causal=causal)
        output, weights = self.run(query, key, value, mask, causal, return_weights)
        return output if weights is None else (output, weights)

    def run(
        self,
        query: Float[Tensor, "B T D"],
        key: Float[Tensor, "B S D"] | None = None,
        value: Float[Tensor, "B S D"] | None = None,
        mask: Bool[Tensor, "#B #T S"] | Bool[Tensor, "#T S"] | None = None,
        causal: bool = False,
        return_weights: bool = False,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"] | None]:
        """Do what `forward` does, without checking that the mask leaves each query a
        key; None stands for no weights.

        A stack of layers checks its mask once and calls this, since on a GPU each check
        waits for all work before it.
        """
        self._check_inputs(query, key, value, mask, causal)
        query_heads, key_heads, value_heads = self._project(query, key, value)
        output, weights = self._attend(
            query_heads, key_heads, value_heads, mask, causal, return_weights
        )
        return self.out_proj(merge_heads(output)), weights

    def project(self, memory: Float[Tensor, "B S D"]) -> KeyValue:
        """Compute the keys and values of all positions once, to attend to them at every
        step of decoding."""
        weight, bias = self._rows(slice(self.dim, None))
        key, value = F.linear(memory, weight, bias).chunk(2, dim=-1)
        return KeyValue(
            split_heads(key, self.num_heads), split_heads(value, self.num_heads)
        )

    def attend_cached(
        self,
        query: Float[Tensor, "B T D"],
        cache: KeyValue,
        mask: Bool[Tensor, "#B #T S"] | Bool[Tensor, "#T S"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Attend to keys and values that `project` made; that each query has a key left
        is not checked again."""
        if mask is not None:
            check_boolean(mask)
        heads = split_heads(
            F.linear(query, *self._rows(slice(self.dim))), self.num_heads
        )
        output, _ = self._attend(
            heads, cache.key, cache.value, mask, causal=False, return_weights=False
        )
        return self.out_proj(merge_heads(output))

    def extend(
        self, query: Float[Tensor, "B 1 D"], cache: KeyValue | None
    ) -> tuple[Float[Tensor, "B 1 D"], KeyValue]:
        """Let one new position attend to all before it and to itself; return the cache
        with it appended."""
        heads, key, value = self._project(query)
        new = KeyValue(key, value)
        cache = new if cache is None else cache.append(new)
        output, _ = self._attend(
            heads, cache.key, cache.value, None, causal=False, return_weights=False
        )
        return self.out_proj(merge_heads(output)), cache

    def _check_inputs(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        mask: Tensor | None,
        causal: bool,
    ) -> None:
        """Refuse what torch would refuse without naming the argument, or not at all; it
        looks at no values."""
        for name, hidden in (("query", query), ("key", key), ("value", value)):
            if hidden is not None and hidden.shape[-1] != self.dim:
                raise ValueError(
                    f"{name} has {hidden.shape[-1]} features, but this attention is"
                    f" made for {self.dim}"
                )
        length, key_length = query.shape[-2], (query if key is None else key).shape[-2]
        if key_length == 0:
            raise ValueError(
                "there are 0 keys to attend to, so no weights can sum to 1; leave out"
                " empty sentences"
            )
        if mask is not None:
            check_boolean(mask)
        if mask is not None and mask.shape[-1] != key_length:
            raise ValueError(
                f"the mask speaks of {mask.shape[-1]} keys, but there are {key_length}"
            )
        if causal and length != key_length:
            raise ValueError(
                f"causal=True compares positions one by one, but there are {length}"
                f" queries and {key_length} keys; pass a mask of shape (T, S) that says"
                " which key comes after which query"
            )

    def _project(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None
    ) -> list[Tensor]:
        """Queries, keys and values of each head, ``(B, H, length, N)``."""
        if key is None and value is None:
            projected = self.in_proj(query).chunk(3, dim=-1)
        else:
            key = query if key is None else key
            inputs = (query, key, key if value is None else value)
            starts = (0, self.dim, 2 * self.dim)
            projected = tuple(
                F.linear(hidden, *self._rows(slice(start, start + self.dim)))
                for hidden, start in zip(inputs, starts, strict=True)
            )
        return [split_heads(hidden, self.num_heads) for hidden in projected]

    def _rows(self, rows: slice) -> tuple[Tensor, Tensor | None]:
        """Part of the packed projection: queries are its first D rows, keys the next,
        values the last."""
        return self.in_proj.weight[rows], (
            None if self.in_proj.bias is None else self.in_proj.bias[rows]
        )

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        causal: bool,
        return_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        dropout = self.dropout if self.training else 0.0
        fused = not return_weights and self._use_fused(query)
        if causal and (
            mask is not None or not fused
        ):  # the kernel takes one or the other, not both
            order = causal_mask(query.shape[-2], query.device)
            mask, causal = order if mask is None else mask & order, False
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]  # (B, T, S) -> (B, 1, T, S), the same for all heads
        if fused:
            return (
                F.scaled_dot_product_attention(
                    query, key, value, mask, dropout, is_causal=causal
                ),
                None,
            )
        query = query / math.sqrt(
            query.shape[-1]
        )  # here rather than in the scores: fewer numbers where T > N
        scores = query @ key.mT  # (B, H, T, N) @ (B, H, N, S) -> (B, H, T, S)
        if mask is not None:
            scores = scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(
                ~mask, -torch.inf
            )
        weights = scores.softmax(dim=-1)
        return set_to_zero(weights, dropout) @ value, (
            weights if return_weights else None
        )

    def _use_fused(self, query: Tensor) -> bool:
        if self.fused is not None:
            return self.fused
        return not (query.device.type == "cpu" and query.dtype == torch.bfloat16)


def _check_divides(dim: int, num_heads: int) -> None:
    if num_heads < 1 or dim % num_heads:
        divisors = [str(n) for n in range(1, dim + 1) if dim % n == 0]
        raise ValueError(
            f"the features, {dim}, do not divide into num_heads={num_heads}; choose one"
            f" of {', '.join(divisors)}"
        )
