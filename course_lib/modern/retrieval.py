"""Several rankings joined into one, and texts as sparse vectors over the vocabulary.

Other letters: Q, queries; N, documents.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.sentence_bert.model import pool


def reciprocal_rank_fusion(
    scores: Sequence[Float[Tensor, "Q N"]], k: float | int = 60
) -> Float[Tensor, "Q N"]:
    r"""Join rankings by ranks alone, since scores of two systems have no common unit.

    .. math:: \sum_s \frac{1}{k + \operatorname{rank}_s(d)}

    Parameters
    ----------
    scores
        Of each system; documents with equal scores share the best of their ranks.
    k
        How little the first places stand out.

    Returns
    -------
    Tensor
        Scores by which the documents are ranked anew.

    Notes
    -----
    Cormack et al. 2009, section 2.

    Examples
    --------
    >>> words, vectors = (
    ...     torch.tensor([[9.0, 5.0, 0.0]]),
    ...     torch.tensor([[0.1, 0.3, 0.2]]),
    ... )
    >>> reciprocal_rank_fusion(
    ...     [words, vectors], k=1.0
    ... )  # 1/2 + 1/4, 1/3 + 1/2, 1/4 + 1/3
    tensor([[0.7500, 0.8333, 0.5833]])
    """
    fused = torch.zeros_like(scores[0])
    for of_system in scores:
        below = of_system.sort(dim=1).values  # the worst first
        not_above = torch.searchsorted(below, of_system.contiguous(), right=True)
        rank = 1 + of_system.shape[1] - not_above  # 1 + how many are better
        fused = fused + 1 / (k + rank.to(fused.dtype))
    return fused


def sparse_vectors(
    prediction_logits: Float[Tensor, "B T V"],
    attention_mask: Bool[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B V"]:
    r"""Weigh each token of the vocabulary by the position that predicts it most.

    .. math:: \max_t \ln(1 + \operatorname{ReLU}(z_{tv}))

    Parameters
    ----------
    prediction_logits
        The z of the head that predicts tokens, at all positions.
    attention_mask
        True at tokens, False at padding; None says that nothing is padded.

    Returns
    -------
    Tensor
        One weight for each token of the vocabulary, at least 0; also for tokens that
        the text lacks. The score of two texts is the product of their vectors.

    Notes
    -----
    Formal et al. 2021a, equation 1, with the maximum of Formal et al. 2021b.

    Examples
    --------
    >>> logits = torch.tensor([[[-1.0, 0.0, 2.0], [0.5, -3.0, 1.0]]])
    >>> sparse_vectors(logits)  # ln 1.5, 0, ln 3
    tensor([[0.4055, 0.0000, 1.0986]])
    """
    # the largest z has the largest logarithm, so only that one is computed
    largest = pool(prediction_logits, attention_mask, "max")  # (B, T, V) -> (B, V)
    return largest.relu().log1p()


def flops_loss(vectors: Float[Tensor, "B V"]) -> Float[Tensor, ""]:
    r"""Punish tokens that many texts weigh: they cost the most when an index is read.

    .. math:: \sum_v \Bigl(\frac{1}{B} \sum_b w_{bv}\Bigr)^2

    Formal et al. 2021a, equation 4; Paria et al. 2020, section 4."""
    return vectors.mean(dim=0).square().sum()
