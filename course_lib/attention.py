"""Attention: score every query against every key, turn the scores into weights, and average the values.

Chapter 1 uses it between an encoder and a decoder, later chapters within one sequence. The functions are the same.

Dimension letters, everywhere in this module::

    B  sentences in a batch          T  queries (target words)     S  keys (source words)
    D  features of a query or key    E  features of a value        Q, K  features of query and key where they differ
    H  heads                         A  hidden units of the additive score

Masks are boolean, and True means "may attend". What this module does not do: no dropout on weights, and no learned
projections of query, key and value (chapter 2). The file is longer than 400 lines because two thirds of it are
docstrings with worked examples; the code alone is a page and a half.
"""

import math
from typing import Literal, overload

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

__all__ = [
    "AdditiveScore",
    "BilinearScore",
    "DotScore",
    "attend",
    "causal_mask",
    "masked_softmax",
    "merge_heads",
    "padding_mask",
    "scaled_dot_product_attention",
    "split_heads",
]


def padding_mask(lengths: Int[Tensor, "B"], max_length: int | None = None) -> Bool[Tensor, "B S"]:
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
        If a sentence has no word, or is longer than `max_length`.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> padding_mask(torch.tensor([3, 1]))
    tensor([[ True,  True,  True],
            [ True, False, False]])
    """
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest < 1:
        raise ValueError(
            f"sentence {int(lengths.argmin())} has length {shortest}; every sentence needs at least one word, "
            "so drop empty sentences before batching"
        )
    if max_length is not None and longest > max_length:
        raise ValueError(
            f"sentence {int(lengths.argmax())} has {longest} words but max_length is {max_length}; "
            f"truncate it or pass max_length={longest}"
        )
    positions = torch.arange(max_length or longest, device=lengths.device)
    return positions < lengths[:, None]  # (S) < (B, 1) -> (B, S)


def causal_mask(length: int, device: torch.device | str | None = None) -> Bool[Tensor, "T T"]:
    """Let each position attend to itself and to those before it (Vaswani et al. 2017, section 3.2.3).

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

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    if length < 1:
        raise ValueError(f"length is {length}; a causal mask needs at least one position")
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def _check_mask(mask: Bool[Tensor, "*any"], dim: int = -1) -> None:
    """Refuse a query that may attend to nothing: its softmax would be 0/0."""
    if not bool(mask.any(dim=dim).all()):
        empty = int((~mask.any(dim=dim)).sum())
        raise ValueError(
            f"the mask forbids every key for {empty} of the queries, so their weights cannot sum to 1; "
            "True means 'may attend': leave at least one True for each query (is the mask inverted?)"
        )


def masked_softmax(
    scores: Float[Tensor, "*shape"], mask: Bool[Tensor, "*#shape"] | None = None, dim: int = -1
) -> Float[Tensor, "*shape"]:
    r"""Turn scores into weights that are 0 where the mask forbids and sum to 1 elsewhere.

    .. math:: \alpha_{j} = \frac{m_j \exp(e_{j})}{\sum_k m_k \exp(e_{k})}

    Forbidden scores become minus infinity rather than a large negative number, so the weight is exactly 0 in every
    precision.

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
        If a query may attend to no key at all.

    Notes
    -----
    Bahdanau et al. 2015, equation 6.

    Chapter: seq2seq-attention

    Examples
    --------
    >>> masked_softmax(torch.tensor([0.0, 0.0, 5.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        mask = mask.expand_as(scores)
        _check_mask(mask, dim)
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim)


class DotScore(nn.Module):
    """Score a query and a key by their dot product (Luong et al. 2015, section 3.1).

    It has no parameters; query and key need the same number of features.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> query, key = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [1.0, 0.0]]])
    >>> DotScore()(query, key)
    tensor([[[11.,  1.]]])
    """

    def forward(self, query: Float[Tensor, "B T Q"], key: Float[Tensor, "B S K"]) -> Float[Tensor, "B T S"]:
        """Return the score of each of the T queries with each of the S keys."""
        _check_same_features(query, key)
        return query @ key.mT  # (B, T, D) @ (B, D, S) -> (B, T, S)


class BilinearScore(nn.Module):
    """Score a query and a key through a learned matrix: query · W · key ("general" in Luong et al. 2015, section 3.1).

    Parameters
    ----------
    query_dim, key_dim
        Features of the queries and of the keys; they may differ.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> score = BilinearScore(query_dim=5, key_dim=3)
    >>> score(torch.zeros(2, 4, 5), torch.zeros(2, 7, 3)).shape
    torch.Size([2, 4, 7])
    """

    def __init__(self, query_dim: int, key_dim: int):
        super().__init__()
        self.project = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query: Float[Tensor, "B T Q"], key: Float[Tensor, "B S K"]) -> Float[Tensor, "B T S"]:
        """Return the score of each of the T queries with each of the S keys."""
        return query @ self.project(key).mT  # (B, T, Q) @ (B, Q, S) -> (B, T, S)


class AdditiveScore(nn.Module):
    """Score a query and a key with a small network: v · tanh(W query + U key) (Bahdanau et al. 2015, appendix A.1.2).

    Parameters
    ----------
    query_dim, key_dim
        Features of the queries and of the keys; they may differ.
    hidden_dim
        Hidden units A of the network.

    Notes
    -----
    Needs memory for B · T · S · A numbers, where the other scores need B · T · S.

    Chapter: seq2seq-attention

    Examples
    --------
    >>> score = AdditiveScore(query_dim=5, key_dim=3, hidden_dim=6)
    >>> score(torch.zeros(2, 4, 5), torch.zeros(2, 7, 3)).shape
    torch.Size([2, 4, 7])
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int):
        super().__init__()
        self.project_query = nn.Linear(query_dim, hidden_dim, bias=False)
        self.project_key = nn.Linear(key_dim, hidden_dim)
        self.reduce = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, query: Float[Tensor, "B T Q"], key: Float[Tensor, "B S K"]) -> Float[Tensor, "B T S"]:
        """Return the score of each of the T queries with each of the S keys."""
        pairs = self.project_query(query)[:, :, None] + self.project_key(key)[:, None]  # (B, T, 1, A) + (B, 1, S, A)
        return self.reduce(pairs.tanh()).squeeze(-1)  # (B, T, S, A) -> (B, T, S)


def attend(
    scores: Float[Tensor, "B T S"], values: Float[Tensor, "B S E"], mask: Bool[Tensor, "B #T S"] | None = None
) -> tuple[Float[Tensor, "B T E"], Float[Tensor, "B T S"]]:
    """Average the values with the softmax of the scores as weights (Bahdanau et al. 2015, equations 5 and 6).

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
        If a query may attend to no key at all.

    Notes
    -----
    Chapter: seq2seq-attention

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
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, return_weights: Literal[False] = False
) -> Tensor: ...
@overload
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, return_weights: Literal[True]
) -> tuple[Tensor, Tensor]: ...
def scaled_dot_product_attention(
    query: Float[Tensor, "*batch T Q"],
    key: Float[Tensor, "*batch S K"],
    value: Float[Tensor, "*batch S E"],
    mask: Bool[Tensor, "*#batch #T S"] | None = None,
    return_weights: bool = False,
) -> Float[Tensor, "*batch T E"] | tuple[Float[Tensor, "*batch T E"], Float[Tensor, "*batch T S"]]:
    r"""Attend with scaled dot products (Vaswani et al. 2017, equation 1).

    .. math:: \operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d}}\right)V

    Without weights it runs torch's fused kernel, which never stores the T × S matrix; with weights it computes them
    in the open. Both give the same output.

    Parameters
    ----------
    query, key, value
        Any number of leading dimensions (batch, heads), the same in all three; query and key share their features.
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
        If query and key differ in features, or a query may attend to no key at all.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> query, key, value = torch.eye(2)[:1], torch.eye(2), torch.tensor([[10.0], [20.0]])
    >>> output, weights = scaled_dot_product_attention(query, key, value, return_weights=True)
    >>> output, weights  # the scores are 1/sqrt(2) and 0
    (tensor([[13.3024]]), tensor([[0.6698, 0.3302]]))
    """
    _check_same_features(query, key)
    if mask is not None:
        _check_mask(mask)
    if not return_weights:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (*batch, T, D) @ (*batch, D, S) -> (*batch, T, S)
    weights = masked_softmax(scores, mask)
    return weights @ value, weights  # (*batch, T, S) @ (*batch, S, E) -> (*batch, T, E)


def _check_same_features(query: Tensor, key: Tensor) -> None:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has {query.shape[-1]} features and key has {key.shape[-1]}, but a dot product needs as many; "
            "project one of them, or use BilinearScore or AdditiveScore"
        )


def split_heads(hidden: Float[Tensor, "*batch T D"], num_heads: int) -> Float[Tensor, "*batch H T _"]:
    """Cut the features into heads, so that each head attends on its own (Vaswani et al. 2017, section 3.2.2).

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

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> split_heads(torch.arange(6.0).view(1, 1, 6), num_heads=2)
    tensor([[[[0., 1., 2.]],
    <BLANKLINE>
             [[3., 4., 5.]]]])
    """
    dim = hidden.shape[-1]
    if num_heads < 1 or dim % num_heads:
        divisors = [str(n) for n in range(1, dim + 1) if dim % n == 0]
        raise ValueError(
            f"the features, {dim}, do not divide into num_heads={num_heads}; choose one of {', '.join(divisors)}"
        )
    return hidden.unflatten(-1, (num_heads, -1)).transpose(-3, -2)  # (*batch, T, H, D/H) -> (*batch, H, T, D/H)


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

    Chapter: seq2seq-attention

    Examples
    --------
    >>> hidden = torch.randn(2, 5, 12)
    >>> torch.equal(merge_heads(split_heads(hidden, num_heads=4)), hidden)
    True
    """
    return heads.transpose(-3, -2).flatten(-2)  # (*batch, T, H, N) -> (*batch, T, H * N)
