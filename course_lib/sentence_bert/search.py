"""Search and order among sentence vectors: exact nearest neighbours in blocks, closest
pairs, clusters.

Other letters: Q, queries; N, vectors of the collection; K, hits of a query.

All scores of a million queries against a million vectors would take 4 terabytes. A
block of them is computed at a time, and of each only the best are kept, so memory does
not grow with Q times N. The result is exact: an index for approximate search is faster
on large collections and may miss a neighbour.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from sklearn.cluster import KMeans
from torch import Tensor

BLOCK = 16_384  # vectors of the collection in a block: 25 MB at 384 features
# rows and columns in a block of pairs: its scores take 1 MB, which stays in a
# processor's cache
PAIRS = 512
# queries in a block: their scores against a block of the collection take 67 MB
QUERIES = 1024


class Hits(NamedTuple):
    """The nearest vectors of each query, the nearest first."""

    scores: Tensor
    indices: Tensor


class Pairs(NamedTuple):
    """The most similar pairs of a collection, the most similar first."""

    scores: Tensor
    indices: Tensor


class Clusters(NamedTuple):
    """Groups of vectors."""

    labels: Tensor
    centres: Tensor
    nearest: Tensor


def top_k(
    queries: Float[Tensor, "Q D"],
    collection: Float[Tensor, "N D"],
    k: int = 10,
    cosine: bool = True,
    block: int = BLOCK,
    query_block: int = QUERIES,
) -> Hits:
    """Find the k vectors of a collection that are most similar to each query, without
    the full matrix of scores.

    Parameters
    ----------
    queries
        What is looked for.
    collection
        What is looked through, in any floating type and on any device: a block at a
        time goes to where the queries are, as float32 (float64 stays). Half precision
        halves what the collection takes; so does a file on disk that is mapped to
        memory.
    k
        Hits of each query.
    cosine
        Whether lengths are ignored. False compares by inner product, which is the same
        for unit vectors and saves their division.
    block, query_block
        Rows of the collection and of the queries that are compared at once; they change
        memory and speed only.

    Returns
    -------
    Hits
        Where the queries are. Among equal scores the order is not fixed.

    Raises
    ------
    ValueError
        If k is more than there are vectors, or a size is below 1; if features differ in
        number; or if a vector of a hit is not finite.

    Notes
    -----
    Beside its arguments it takes ``4 * (block * D + query_block * (block + D))`` bytes
    and the hits.

    Examples
    --------
    >>> collection = torch.tensor([[1.0, 0.0], [0.0, 9.0], [3.0, 4.0]])
    >>> hits = top_k(torch.tensor([[2.0, 0.0]]), collection, k=2, block=1)
    >>> hits.indices.tolist(), [round(score, 3) for score in hits.scores[0].tolist()]
    ([[0, 2]], [1.0, 0.6])
    """
    for name, size in (("k", k), ("block", block), ("query_block", query_block)):
        if size < 1:
            raise ValueError(f"{name} is {size}; it must be at least 1")
    if k > len(collection):
        raise ValueError(
            f"k is {k}, but the collection has {len(collection)} vectors; ask for at"
            " most as many"
        )
    if queries.shape[1] != collection.shape[1]:
        raise ValueError(
            f"the queries have {queries.shape[1]} features and the collection"
            f" {collection.shape[1]}; encode both with one model"
        )
    with torch.no_grad():
        found = [
            _best(_prepared(rows, cosine), collection, k, cosine, block)
            for _, rows in _blocks(queries, query_block)
        ]
    if not found:
        nothing = queries.new_empty(0, k, dtype=_type(queries))
        return Hits(nothing, nothing.long())
    hits = Hits(
        torch.cat([part.scores for part in found]),
        torch.cat([part.indices for part in found]),
    )
    _check_finite(hits.scores)
    return hits


def _best(
    queries: Tensor, collection: Tensor, k: int, cosine: bool, block: int
) -> Hits:
    """Hold the best hits so far, and let those of each block compete with them."""
    best = Hits(
        queries.new_empty(len(queries), 0),
        torch.empty(len(queries), 0, dtype=torch.long, device=queries.device),
    )
    for start, rows in _blocks(collection, block):
        # (Q, D) @ (D, N) -> (Q, N)
        of_block = queries @ _prepared(rows.to(queries.device, queries.dtype), cosine).T
        scores, indices = of_block.topk(min(k, len(rows)), dim=1)
        scores = torch.cat([best.scores, scores], 1)
        indices = torch.cat([best.indices, indices + start], 1)
        scores, kept = scores.topk(min(k, scores.shape[1]), dim=1)
        best = Hits(scores, indices.gather(1, kept))
    return best


@torch.no_grad()
def closest_pairs(
    vectors: Float[Tensor, "N D"], k: int = 10, block: int = PAIRS
) -> Pairs:
    """Find the k most similar pairs of a collection, of all N (N - 1) / 2.

    Parameters
    ----------
    vectors
        One for each sentence.
    k
        How many pairs.
    block
        Rows that are compared with as many others at once.

    Returns
    -------
    Pairs
        By cosine, where the vectors are. Among equal scores the order is not fixed.

    Raises
    ------
    ValueError
        If there are fewer than k pairs, a size is below 1, or a vector of a pair is not
        finite.

    Notes
    -----
    The task for which Reimers and Gurevych 2019, section 1, give 65 hours with a
    cross-encoder and 5 seconds with sentence vectors, at N = 10,000.

    Examples
    --------
    >>> closest_pairs(
    ...     torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]]), k=2, block=2
    ... ).indices.tolist()
    [[1, 2], [0, 2]]
    """
    _check_pairs(len(vectors), k, block)
    scores = torch.empty(0, dtype=_type(vectors), device=vectors.device)
    indices = torch.empty(0, 2, dtype=torch.long, device=vectors.device)
    for start, rows in _blocks(vectors, block):
        rows = _prepared(rows, cosine=True)
        for ahead, columns in _blocks(vectors[start:], block):
            # (block, D) @ (D, block) -> (block, block)
            of_block = rows @ _prepared(columns, cosine=True).T
            if ahead == 0:  # the diagonal: no vector with itself, and no pair twice
                once = torch.ones_like(of_block, dtype=torch.bool).triu(diagonal=1)
                of_block.masked_fill_(~once, -torch.inf)
            # Most blocks hold nothing new, and a maximum is found faster than the best
            # k. A NaN is no maximum below another: it is let through, to be found at
            # the end.
            if len(scores) == k and of_block.amax() <= scores[-1]:
                continue
            best, kept = of_block.flatten().topk(min(k, of_block.numel()))
            row, column = kept // len(columns), kept % len(columns)
            pairs = torch.stack([start + row, start + ahead + column], dim=1)
            there = best != -torch.inf
            scores = torch.cat([scores, best[there]])
            indices = torch.cat([indices, pairs[there]])
            scores, kept = scores.topk(min(k, len(scores)))
            indices = indices[kept]
    _check_finite(scores)
    return Pairs(scores, indices)


def _check_pairs(vectors: int, k: int, block: int) -> None:
    for name, size in (("k", k), ("block", block)):
        if size < 1:
            raise ValueError(f"{name} is {size}; it must be at least 1")
    if k > vectors * (vectors - 1) // 2:
        raise ValueError(
            f"k is {k}, but {vectors} vectors make {vectors * (vectors - 1) // 2} pairs"
        )


def cluster(
    vectors: Float[Tensor, "N D"], clusters: int, seed: int = 0, restarts: int = 1
) -> Clusters:
    """Group sentences by meaning: k-means on their unit vectors.

    The k-means of scikit-learn. For unit vectors, squared distance is 2 minus twice the
    cosine: near means similar."""
    if clusters < 1 or restarts < 1:
        raise ValueError(
            f"clusters is {clusters} and restarts is {restarts}; both must be at"
            " least 1"
        )
    if len(vectors) < clusters:
        raise ValueError(
            f"{len(vectors)} vectors cannot make {clusters} clusters; ask for at most"
            " as many"
        )
    unit = _prepared(vectors.detach().cpu(), cosine=True)
    _check_finite(unit)
    found = KMeans(clusters, n_init=restarts, random_state=seed).fit(unit.numpy())
    sizes = np.bincount(found.labels_, minlength=clusters)
    order = np.argsort(-sizes, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(clusters)
    labels = torch.from_numpy(number[found.labels_]).long()
    centres = torch.from_numpy(found.cluster_centers_[order]).to(unit.dtype)
    distances = (unit - centres[labels]).norm(dim=1)
    members = [(labels == index).nonzero()[:, 0] for index in range(clusters)]
    if empty := sum(len(rows) == 0 for rows in members):
        raise ValueError(
            f"{empty} of {clusters} clusters are empty: fewer vectors differ; ask for"
            " fewer clusters"
        )
    return Clusters(
        labels,
        centres,
        torch.stack([rows[distances[rows].argmin()] for rows in members]),
    )


def _blocks(vectors: Tensor, size: int) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(vectors), size):
        yield start, vectors[start : start + size]


def _type(vectors: Tensor) -> torch.dtype:
    return torch.promote_types(vectors.dtype, torch.float32)


def _prepared(vectors: Tensor, cosine: bool) -> Tensor:
    """Vectors in at least single precision, of length 1 if lengths are to be
    ignored."""
    vectors = vectors.to(_type(vectors))
    return F.normalize(vectors, dim=1) if cosine else vectors


def _check_finite(scores: Tensor) -> None:
    """Look at the best only: a vector with a NaN has it in each of its scores, and
    torch sorts those first."""
    if not bool(scores.isfinite().all()):
        raise ValueError(
            "a vector holds a number that is not finite; look at the model, or the"
            " file, it came from"
        )
