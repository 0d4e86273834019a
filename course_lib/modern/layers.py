"""The layers of a modern encoder: rotary positions, local attention, GeGLU, and the
block that holds them (Warner et al. 2024).

Other letters: N, features of one head.

Masks are boolean, and True means "may attend" (:mod:`course_lib.attention.masks`). What
is not here: scaling of the angles for texts longer than those of training.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.checks import check_heads
from course_lib.attention.multi_head import (
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)


def rotate(
    heads: Float[Tensor, "*batch T N"], waves: Float[Tensor, "*#batch T _"]
) -> Float[Tensor, "*batch T N"]:
    r"""Turn each pair of features by an angle that grows with the position, so that a
    product of query and key depends on the distance of both alone.

    .. math:: \begin{pmatrix} a \\ b \end{pmatrix} \mapsto \begin{pmatrix}
       a \cos k\theta_i - b \sin k\theta_i \\ b \cos k\theta_i + a \sin k\theta_i
       \end{pmatrix}, \qquad \theta_i = n^{-2i/d}

    Parameters
    ----------
    heads
        Queries or keys. Feature i of the first half and feature i of the second are the
        pair (a, b).
    waves
        The row of each position k in
        `course_lib.transformer.positions.sinusoidal_positions`, whose `base` is the n:
        the sines and cosines that the Transformer adds to its input.

    Returns
    -------
    Tensor
        As `heads`; no vector changes its length.

    Raises
    ------
    ValueError
        If `waves` has other features than `heads`.

    Notes
    -----
    Su et al. 2021, equations 15 and 34, who pair neighbours; published ModernBERTs pair
    the halves, which is another order of the same features.

    Examples
    --------
    >>> from course_lib.transformer.positions import sinusoidal_positions
    >>> rotate(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), sinusoidal_positions(2, dim=2))
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]])
    """
    if waves.shape[-1] != heads.shape[-1]:
        raise ValueError(
            f"a head has {heads.shape[-1]} features, but the waves have"
            f" {waves.shape[-1]}; make them with"
            f" sinusoidal_positions(length, dim={heads.shape[-1]})"
        )
    sine, cosine = waves[..., 0::2], waves[..., 1::2]  # they alternate: (T, N/2) each
    a, b = heads.chunk(2, dim=-1)  # (*batch, T, N/2) each
    turned = torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)
    return turned.to(heads.dtype)  # the waves may be more precise


def local_mask(
    positions: Int[Tensor, "*batch T"], window: int
) -> Bool[Tensor, "*batch T T"]:
    """Let each position attend to itself and to its neighbours on both sides.

    Parameters
    ----------
    positions
        Where each token stands in its text.
    window
        Positions that are seen, half of them on either side: 128 in ModernBERT, which
        makes 64 to the left, 64 to the right, and the position itself.

    Returns
    -------
    Tensor
        True where two positions are at most half a window apart.

    Notes
    -----
    Warner et al. 2024, section 2.1.2, "alternating attention"; Beltagy et al. 2020,
    section 3.1, "sliding window".

    Examples
    --------
    >>> local_mask(torch.arange(4), window=2).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 1, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    # (*batch, T, 1) - (*batch, 1, T) -> (*batch, T, T)
    apart = (positions[..., :, None] - positions[..., None, :]).abs()
    return apart <= window // 2


class RotaryAttention(nn.Module):
    """Self-attention of several heads, whose queries and keys are turned by their
    positions; `kernel` is as in `course_lib.attention.multi_head.MultiHeadAttention`.

    Warner et al. 2024, section 2.1.1."""

    kernel = staticmethod(scaled_dot_product_attention)

    def __init__(self, dim: int, num_heads: int, dropout: float = 0.0):
        super().__init__()
        check_heads(dim, num_heads, dropout)
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.output = nn.Linear(dim, dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        waves: Float[Tensor, "#B T N"],
        mask: Bool[Tensor, "#B #T T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return the mixed states; `waves` as in `rotate`, the same for all heads."""
        query, key, value = (
            split_heads(part, self.num_heads)  # (B, H, T, N)
            for part in self.qkv(hidden).chunk(3, dim=-1)
        )
        waves = waves[:, None]  # (B, 1, T, N)
        mask = None if mask is None else mask[:, None]  # (B, 1, T, T)
        query, key = rotate(query, waves), rotate(key, waves)
        mixed, _ = self.kernel(query, key, value, mask, self.dropout)
        return self.output(merge_heads(mixed))  # (B, T, D)


class GeGLU(nn.Module):
    r"""Transform each position on its own, in features that a gate lets through.

    .. math:: \left(\operatorname{GELU}(x W) \odot x V\right) W_2

    Parameters
    ----------
    dim
        Features D of input and output.
    hidden_dim
        Features between: with two matrices that lead to them, two thirds of those of a
        `course_lib.transformer.blocks.FeedForward` cost as much.
    dropout
        Share of the features between that is set to zero in training.

    Notes
    -----
    Shazeer 2020, equation 6, without biases. W and V lie one behind the other in one
    matrix, as published checkpoints have them.

    Examples
    --------
    >>> layer = GeGLU(dim=1, hidden_dim=1)
    >>> _ = layer.requires_grad_(False)
    >>> _ = layer.expand.weight.copy_(torch.tensor([[1.0], [3.0]]))
    >>> _ = layer.contract.weight.fill_(10.0)
    >>> round(layer(torch.tensor([2.0])).item(), 3)  # 10 * GELU(2) * 6
    117.27
    """

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0):
        super().__init__()
        self.expand = nn.Linear(dim, 2 * hidden_dim, bias=False)
        self.contract = nn.Linear(hidden_dim, dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape D"]:
        """Return the transformed features."""
        wide, gate = self.expand(hidden).chunk(2, dim=-1)
        return self.contract(self.dropout(F.gelu(wide) * gate))


class PreNormBlock(nn.Module):
    """Attention and GeGLU, each of which reads a normalised copy of the states and adds
    to the states themselves; no biases. The `first` block reads embeddings that have
    just been normalised, so its attention needs no norm.

    Warner et al. 2024, section 2.1.1; pre-norm: Xiong et al. 2020, figure 1b."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        hidden_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm_eps: float = 1e-5,
        first: bool = False,
    ):
        super().__init__()
        norm = nn.LayerNorm(dim, norm_eps, bias=False)
        self.norm1 = nn.Identity() if first else norm
        self.attention = RotaryAttention(dim, num_heads, attention_dropout)
        self.norm2 = nn.LayerNorm(dim, norm_eps, bias=False)
        self.feed_forward = GeGLU(dim, hidden_dim, dropout)

    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        waves: Float[Tensor, "#B T N"],
        mask: Bool[Tensor, "#B #T T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return the new hidden states; the options are `RotaryAttention`'s."""
        hidden = hidden + self.attention(self.norm1(hidden), waves, mask)
        return hidden + self.feed_forward(self.norm2(hidden))
