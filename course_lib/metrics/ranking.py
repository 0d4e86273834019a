"""How good a ranking is: recall@k, reciprocal rank and nDCG@k.

Q  queries     N  documents

Equal scores are ordered as TREC's program does: of two documents the one that stands
last comes first. Each measure has one value for each query, so that a mean can have an
interval (:func:`course_lib.metrics.scores.mean_interval`).
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def recall_at(
    scores: Float[Tensor, "Q N"], relevant: Bool[Tensor, "Q N"], k: int
) -> Float[Tensor, "Q"]:
    """Say which share of a query's relevant documents is among its first k."""
    found = _ranked(scores, relevant, k)
    return found.sum(dim=1) / relevant.sum(dim=1)


def reciprocal_rank(
    scores: Float[Tensor, "Q N"], relevant: Bool[Tensor, "Q N"], k: int | None = None
) -> Float[Tensor, "Q"]:
    """Return 1 / rank of a query's first relevant document, 0 if it is not among the
    first k; the mean is called MRR."""
    found = _ranked(scores, relevant, k)
    ranks = torch.arange(1, found.shape[1] + 1, device=found.device)
    return (found / ranks).amax(dim=1)


def ndcg(
    scores: Float[Tensor, "Q N"], gains: Float[Tensor, "Q N"], k: int = 10
) -> Float[Tensor, "Q"]:
    r"""Add up the gains of the first k documents, the less the later they come, and
    divide by the sum of the best order.

    .. math:: \frac{\sum_{i \le k} g_i / \log_2(1 + i)}{\sum_{i \le k} g^*_i /
       \log_2(1 + i)}

    Parameters
    ----------
    scores
        By which the documents are ranked.
    gains
        How relevant each document is: 0 if it is not.
    k
        How many of the first documents count.

    Returns
    -------
    Tensor
        From 0 to 1 for each query.

    Raises
    ------
    ValueError
        If shapes differ, a score is not finite, `k` is below 1, or a query has no
        relevant document.

    Notes
    -----
    Järvelin and Kekäläinen 2002, sections 2.2 and 2.3, with the discount of TREC's
    program and scikit-learn.

    Examples
    --------
    >>> scores = torch.tensor([[0.9, 0.5, 0.7]])
    >>> ndcg(
    ...     scores, torch.tensor([[0.0, 1.0, 3.0]])
    ... )  # (3 / log2(3) + 1/2) / (3 + 0.63)
    tensor([0.6590])
    """
    ranked = _ranked(scores, gains, k)
    best = gains.sort(dim=1, descending=True).values[:, :k]
    ranks = torch.arange(1, ranked.shape[1] + 1, device=ranked.device)
    discounts = 1 / (1 + ranks).to(gains.dtype).log2()
    return (ranked * discounts).sum(dim=1) / (best * discounts).sum(dim=1)


def _ranked(scores: Tensor, relevant: Tensor, k: int | None) -> Tensor:
    """Put what is known of the documents into the order of their scores."""
    if scores.shape != relevant.shape or (k is not None and k < 1):
        raise ValueError(
            f"{tuple(scores.shape)} scores, {tuple(relevant.shape)} judgements, k={k};"
            " give each document of each query both, and a k of at least 1"
        )
    if not bool(scores.isfinite().all() & (relevant >= 0).all()):
        raise ValueError("a score is not finite, or a gain is below 0; look at both")
    if missing := int((~(relevant > 0).any(dim=1)).sum()):
        raise ValueError(
            f"{missing} queries have no relevant document, so there is nothing to find;"
            " leave them out"
        )
    order = scores.flip(1).argsort(dim=1, descending=True, stable=True)
    return relevant.flip(1).gather(1, order)[:, :k]
