"""Words and positions: a row of the embedding for each word, and a vector that says
where the word stands.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

POSITIONS = ("sinusoidal", "learned", "none")


def one_hot_lookup(
    ids: Int[Tensor, "*shape"], embedding: Float[Tensor, "V D"]
) -> Float[Tensor, "*shape D"]:
    """Multiply one-hot rows with the embedding matrix: the same as looking rows up, at
    V times the cost.

    Parameters
    ----------
    ids
        Word ids, each from 0 to V - 1.
    embedding
        One row for each word.

    Returns
    -------
    Tensor
        ``embedding[ids]``.

    Raises
    ------
    ValueError
        If an id is outside the vocabulary.

    Notes
    -----
    Vaswani et al. 2017, section 3.4.

    Examples
    --------
    >>> one_hot_lookup(
    ...     torch.tensor([2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    ... )
    tensor([[5., 6.],
            [1., 2.]])
    """
    vocab_size = len(embedding)
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= vocab_size):
        raise ValueError(
            f"ids run from {int(ids.min())} to {int(ids.max())}, but the embedding has"
            f" {vocab_size} rows; ids must lie between 0 and {vocab_size - 1}"
        )
    # (*shape, V) @ (V, D) -> (*shape, D)
    return F.one_hot(ids, vocab_size).to(embedding.dtype) @ embedding


def sinusoidal_positions(
    length: int, dim: int, base: float = 10000.0
) -> Float[Tensor, "T D"]:
    r"""Give each position a vector of sines and cosines of falling frequency (Vaswani
    et al. 2017, section 3.5).

    .. math::
       P_{k,2i} = \sin\left(\frac{k}{n^{2i/d}}\right), \qquad
       P_{k,2i+1} = \cos\left(\frac{k}{n^{2i/d}}\right)

    Parameters
    ----------
    length
        Number of positions; k runs from 0 to ``length - 1``.
    dim
        Features d; even, since sine and cosine come in pairs.
    base
        The n of the formula: the longest wave is almost 2π · n positions long.

    Returns
    -------
    Tensor
        Row k belongs to position k. Computed in double precision, returned in torch's
        default dtype.

    Raises
    ------
    ValueError
        If `dim` is odd, `length` is negative or `base` is not positive.

    Examples
    --------
    >>> sinusoidal_positions(length=3, dim=4, base=100.0)
    tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
            [ 0.8415,  0.5403,  0.0998,  0.9950],
            [ 0.9093, -0.4161,  0.1987,  0.9801]])
    """
    if dim < 2 or dim % 2:
        raise ValueError(
            f"dim is {dim}, but sines and cosines come in pairs; choose an even number,"
            f" e.g. {dim + 1}"
        )
    if length < 0 or base <= 0:
        raise ValueError(
            f"length={length}, base={base}: length must be at least 0, and base"
            " positive"
        )
    position = torch.arange(length, dtype=torch.float64)[:, None]  # k
    exponent = torch.arange(0, dim, 2, dtype=torch.float64) / dim  # 2i / d
    angle = position / base**exponent  # (T, 1) / (D/2) -> (T, D/2)
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (T, D/2, 2)
    # (T, D): sine, cosine, sine, cosine, ...
    return pairs.flatten(1).to(torch.get_default_dtype())


class LearnedPositions(nn.Module):
    """One learned vector for each position (Gehring et al. 2017; BERT uses it too).

    Parameters
    ----------
    max_length
        Number of positions that have a vector.
    dim
        Features D.

    Examples
    --------
    >>> LearnedPositions(max_length=7, dim=4)(torch.arange(3)).shape
    torch.Size([3, 4])
    """

    def __init__(self, max_length: int, dim: int):
        super().__init__()
        self.table = nn.Embedding(max_length, dim)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, positions: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        """Return the vector of each position."""
        return self.table(positions)


class WordAndPosition(nn.Module):
    """The first layer: a word's embedding times √D, plus its position's vector (Vaswani
    et al. 2017, section 3.4)."""

    table: Tensor | None

    def __init__(
        self,
        embedding: nn.Embedding,
        positions: str = "sinusoidal",
        max_length: int = 512,
        dropout: float = 0.0,
    ):
        super().__init__()
        if positions not in POSITIONS:
            raise ValueError(
                f"positions is {positions!r}; choose one of {', '.join(POSITIONS)}"
            )
        dim = embedding.embedding_dim
        self.embedding = embedding
        self.scale = math.sqrt(dim)
        self.max_length = max_length
        self.learned = (
            LearnedPositions(max_length, dim) if positions == "learned" else None
        )
        table = (
            sinusoidal_positions(max_length, dim) if positions == "sinusoidal" else None
        )
        # computed, so a checkpoint need not hold it
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, ids: Int[Tensor, "B T"], first: int = 0
    ) -> Float[Tensor, "B T D"]:
        """Return the sum for each word; the words stand at positions `first`, `first` +
        1, ..."""
        end = first + ids.shape[1]
        if end > self.max_length:
            raise ValueError(
                f"the sequence is {end} words long, but max_length is"
                f" {self.max_length}; shorten it, or build the model with a larger"
                " max_length"
            )
        hidden = self.embedding(ids) * self.scale
        if self.table is not None:
            hidden = hidden + self.table[first:end]
        elif self.learned is not None:
            hidden = hidden + self.learned(torch.arange(first, end, device=ids.device))
        return self.dropout(hidden)
