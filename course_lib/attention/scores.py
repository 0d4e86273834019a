"""Scores: how relevant each key is to each query, before any softmax (chapter 1).

Other letters: D, features of a query or key, or Q and K where they differ;
A, hidden units of the additive score.
"""

from jaxtyping import Float
from torch import Tensor, nn


class DotScore(nn.Module):
    """Score a query and a key by their dot product (Luong et al. 2015, section 3.1).

    It has no parameters; query and key need the same number of features.

    Examples
    --------
    >>> import torch
    >>> query = torch.tensor([[[1.0, 2.0]]])
    >>> key = torch.tensor([[[3.0, 4.0], [1.0, 0.0]]])
    >>> DotScore()(query, key)
    tensor([[[11.,  1.]]])
    """

    def forward(
        self, query: Float[Tensor, "B T Q"], key: Float[Tensor, "B S K"]
    ) -> Float[Tensor, "B T S"]:
        """Return the score of each of the T queries with each of the S keys."""
        check_same_features(query, key)
        return query @ key.mT  # (B, T, D) @ (B, D, S) -> (B, T, S)


class BilinearScore(nn.Module):
    """Score a query and a key through a learned matrix: query · W · key ("general" in
    Luong et al. 2015, section 3.1).

    Parameters
    ----------
    query_dim, key_dim
        Features of the queries and of the keys; they may differ.
    scaled
        Whether to divide by the root of `key_dim`, as Vaswani et al. 2017, section
        3.2.1, do with a dot product.

    Examples
    --------
    >>> import torch
    >>> score = BilinearScore(query_dim=5, key_dim=3)
    >>> score(torch.zeros(2, 4, 5), torch.zeros(2, 7, 3)).shape
    torch.Size([2, 4, 7])
    """

    def __init__(self, query_dim: int, key_dim: int, scaled: bool = False):
        super().__init__()
        self.project = nn.Linear(key_dim, query_dim, bias=False)
        self.scale = key_dim**-0.5 if scaled else 1.0

    def forward(
        self, query: Float[Tensor, "B T Q"], key: Float[Tensor, "B S K"]
    ) -> Float[Tensor, "B T S"]:
        """Return the score of each of the T queries with each of the S keys."""
        # multiply the queries: decoding has one at a time, but S keys
        projected = self.scale * query @ self.project.weight  # (B, T, Q) -> (B, T, K)
        return projected @ key.mT  # (B, T, K) @ (B, K, S) -> (B, T, S)


class AdditiveScore(nn.Module):
    """Score a query and a key with a small network: v · tanh(W query + U key) (Bahdanau
    et al. 2015, appendix A.1.2).

    Parameters
    ----------
    query_dim, key_dim
        Features of the queries and of the keys; they may differ.
    hidden_dim
        Hidden units A of the network.

    Notes
    -----
    Needs memory for B · T · S · A numbers, where the other scores need B · T · S.

    Examples
    --------
    >>> import torch
    >>> score = AdditiveScore(query_dim=5, key_dim=3, hidden_dim=6)
    >>> score(torch.zeros(2, 4, 5), torch.zeros(2, 7, 3)).shape
    torch.Size([2, 4, 7])
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int):
        super().__init__()
        self.project_query = nn.Linear(query_dim, hidden_dim, bias=False)
        self.project_key = nn.Linear(key_dim, hidden_dim)
        self.reduce = nn.Linear(hidden_dim, 1, bias=False)

    def forward(
        self, query: Float[Tensor, "B T Q"], key: Float[Tensor, "B S K"]
    ) -> Float[Tensor, "B T S"]:
        """Return the score of each of the T queries with each of the S keys."""
        queries = self.project_query(query)[:, :, None]  # (B, T, 1, A)
        pairs = queries + self.project_key(key)[:, None]  # (B, T, S, A)
        return self.reduce(pairs.tanh()).squeeze(-1)  # (B, T, S)


def check_same_features(query: Tensor, key: Tensor) -> None:
    """Refuse a query and a key whose features cannot be multiplied one by one."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has {query.shape[-1]} features and key has {key.shape[-1]}, but a"
            " dot product needs as many; project one of them, or use BilinearScore or"
            " AdditiveScore"
        )
