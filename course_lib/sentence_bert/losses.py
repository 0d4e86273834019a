"""The formulas that sentence vectors are trained by: one loss for each example.

Dimension letters, everywhere in this module::

    B  examples in a batch     D  features of a vector     N  documents

The first three are those of Reimers and Gurevych 2019, section 3; the last is that of
Henderson et al. 2017, section 4.4, on cosines.
:mod:`course_lib.sentence_bert.objectives` makes of each something that a model can be
trained on.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

__all__ = [
    "cosine_losses",
    "in_batch_logits",
    "in_batch_losses",
    "softmax_features",
    "triplet_losses",
]


def softmax_features(
    u: Float[Tensor, "B D"], v: Float[Tensor, "B D"]
) -> Float[Tensor, "B 3*D"]:
    """Put two vectors and the distance of each feature beside one another: (u, v, abs(u
    - v)).

    Parameters
    ----------
    u, v
        The vectors of the first and of the second sentences.

    Returns
    -------
    Tensor
        Three times as many features. The difference has no sign: to a pair it makes no
        difference who comes first.

    Notes
    -----
    Reimers and Gurevych 2019, section 3, and table 6 for what else was tried.

    Examples
    --------
    >>> softmax_features(
    ...     torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, 4.0]])
    ... ).tolist()
    [[1.0, 5.0, 3.0, 4.0, 2.0, 1.0]]
    """
    return torch.cat([u, v, (u - v).abs()], dim=1)  # 3 x (B, D) -> (B, 3 D)


def cosine_losses(
    u: Float[Tensor, "B D"], v: Float[Tensor, "B D"], scores: Float[Tensor, "B"]
) -> Float[Tensor, "B"]:
    """Square by how much the cosine of two vectors misses the similarity that people
    gave the sentences.

    Parameters
    ----------
    u, v
        The vectors of the first and of the second sentences.
    scores
        The cosines that are wanted: of graded similarity from 0 to 5, a fifth.

    Returns
    -------
    Tensor
        One loss for each pair.

    Notes
    -----
    Reimers and Gurevych 2019, section 3, "regression objective function".

    Examples
    --------
    >>> u, v = (
    ...     torch.tensor([[3.0, 4.0]]),
    ...     torch.tensor([[4.0, 3.0]]),
    ... )  # the cosine is 0.96
    >>> round(cosine_losses(u, v, torch.tensor([0.5])).item(), 4)
    0.2116
    """
    return (F.cosine_similarity(u, v) - scores.to(u.dtype)).square()


def triplet_losses(
    anchor: Float[Tensor, "B D"],
    positive: Float[Tensor, "B D"],
    negative: Float[Tensor, "B D"],
    margin: float = 1.0,
) -> Float[Tensor, "B"]:
    r"""Want the positive nearer to the anchor than the negative is, by a margin, and
    nothing more.

    .. math:: \max(\lVert a - p \rVert - \lVert a - n \rVert + \epsilon, 0)

    Parameters
    ----------
    anchor, positive, negative
        The vectors of the three sentences.
    margin
        The ε of the equation, in the unit of the vectors.

    Returns
    -------
    Tensor
        One loss for each triplet; 0 where it is as it should be.

    Notes
    -----
    Reimers and Gurevych 2019, section 3, "triplet objective function", with Euclidean
    distance and ε = 1.

    Examples
    --------
    >>> a, p, n = (
    ...     torch.tensor([[0.0, 0.0]]),
    ...     torch.tensor([[3.0, 4.0]]),
    ...     torch.tensor([[0.0, 5.5]]),
    ... )
    >>> round(triplet_losses(a, p, n).item(), 3)
    0.5
    """
    # pairwise_distance shifts each difference by a millionth: at equal vectors the
    # plain root has no gradient.
    return F.relu(
        F.pairwise_distance(anchor, positive)
        - F.pairwise_distance(anchor, negative)
        + margin
    )


def in_batch_logits(
    queries: Float[Tensor, "B D"],
    documents: Float[Tensor, "N D"],
    temperature: float = 0.05,
) -> Float[Tensor, "B N"]:
    """Compare each query with each document of the batch: cosine over temperature."""
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0, e.g. 0.05")
    return (
        F.normalize(queries, dim=1) @ F.normalize(documents, dim=1).T / temperature
    )  # (B, D) @ (D, N) -> (B, N)


def in_batch_losses(
    queries: Float[Tensor, "B D"],
    documents: Float[Tensor, "N D"],
    temperature: float = 0.05,
    both_ways: bool = False,
) -> Float[Tensor, "B"]:
    r"""Let each query find its own document among all documents of the batch: the
    others' cost nothing to encode.

    .. math:: -\log \frac{\exp(\cos(q_i, d_i)/\tau)}{\sum_j \exp(\cos(q_i, d_j)/\tau)}

    Parameters
    ----------
    queries
        One for each example.
    documents
        First, in the order of the queries, the document that belongs to each; further
        rows are wrong for all of them.
    temperature
        The τ of the equation.
    both_ways
        Whether each document, too, is to find its query. The loss is then the mean of
        both.

    Returns
    -------
    Tensor
        One loss for each query; it depends on what else is in the batch. A batch that
        holds a document twice calls the right answer wrong once: leave duplicates out.

    Raises
    ------
    ValueError
        If there are fewer documents than queries, or the temperature is not above 0.

    Notes
    -----
    Henderson et al. 2017, section 4.4.

    Examples
    --------
    >>> vectors = torch.eye(2)
    >>> round(
    ...     in_batch_losses(vectors, vectors, temperature=1.0)[0].item(), 4
    ... )  # log(1 + exp(-1))
    0.3133
    """
    if len(documents) < len(queries):
        raise ValueError(
            f"{len(queries)} queries but {len(documents)} documents; each query needs"
            " its own, in the same order"
        )
    logits = in_batch_logits(queries, documents, temperature)
    own = torch.arange(len(queries), device=logits.device)
    losses = F.cross_entropy(logits, own, reduction="none")
    if not both_ways:
        return losses
    back = F.cross_entropy(
        logits[:, : len(queries)].T, own, reduction="none"
    )  # (B, B): a document -> its query
    return (losses + back) / 2
