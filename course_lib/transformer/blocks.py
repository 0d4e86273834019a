"""The Transformer's layers: layer norm, feed-forward, and the encoder's block, which
BERT is built from too.

Masks are boolean, and True means "may attend" (:mod:`course_lib.attention.masks`).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.attention.multi_head import MultiHeadAttention

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
NORMS = ("post", "pre", "none")


def layer_norm(
    hidden: Float[Tensor, "*shape D"],
    gain: Float[Tensor, "D"],
    bias: Float[Tensor, "D"],
    eps: float = 1e-5,
) -> Float[Tensor, "*shape D"]:
    r"""Normalise the features of each token to mean 0 and variance 1, then scale and
    shift (Ba et al. 2016).

    .. math:: \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta

    Parameters
    ----------
    hidden
        Any number of leading dimensions: each vector of D features is normalised on its
        own.
    gain, bias
        The learned γ and β.
    eps
        Keeps a constant vector from being divided by zero.

    Returns
    -------
    Tensor
        As `hidden`.

    Notes
    -----
    Written out for reading; the blocks use ``torch.nn.LayerNorm``, which computes the
    same.

    Examples
    --------
    >>> import torch
    >>> layer_norm(
    ...     torch.tensor([[1.0, 3.0]]),
    ...     gain=torch.tensor([1.0, 2.0]),
    ...     bias=torch.tensor([0.0, 0.5]),
    ... )
    tensor([[-1.0000,  2.5000]])
    """
    mean = hidden.mean(dim=-1, keepdim=True)
    # divided by D, not by D - 1
    variance = (hidden - mean).square().mean(dim=-1, keepdim=True)
    return gain * (hidden - mean) / (variance + eps).sqrt() + bias


class FeedForward(nn.Module):
    """Transform each position on its own, with the same weights at all (Vaswani et al.
    2017, equation 2).

    Parameters
    ----------
    dim
        Features D of input and output.
    hidden_dim
        Features between; the paper uses 4 · D.
    dropout
        Share of the features between that is set to zero in training.
    activation
        "relu" as published, or "gelu" (Hendrycks and Gimpel 2016) as in BERT.

    Raises
    ------
    ValueError
        If the activation is not known.

    Examples
    --------
    >>> import torch
    >>> FeedForward(dim=4, hidden_dim=16)(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(
        self, dim: int, hidden_dim: int, dropout: float = 0.0, activation: str = "relu"
    ):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"activation is {activation!r}; choose one of {', '.join(ACTIVATIONS)}"
            )
        self.expand = nn.Linear(dim, hidden_dim)
        self.contract = nn.Linear(hidden_dim, dim)
        self.activation = ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)
        for layer in (self.expand, self.contract):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, hidden: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape D"]:
        """Return the transformed features."""
        return self.contract(self.dropout(self.activation(self.expand(hidden))))


def check_norm(norm: str) -> None:
    """Refuse a place where no layer norm can stand."""
    if norm not in NORMS:
        raise ValueError(f"norm is {norm!r}; choose one of {', '.join(NORMS)}")


class NoSkip(nn.Module):
    """What stands for the skip connection where there is none: for an ablation only."""

    def forward(self, hidden: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return zeros, to which a sub-layer's output is added."""
        return torch.zeros_like(hidden)


class EncoderBlock(nn.Module):
    """Self-attention and feed-forward, each with a residual connection and layer norm
    (Vaswani et al. 2017, figure 1).

    Parameters
    ----------
    dim, num_heads
        As in `MultiHeadAttention`.
    hidden_dim, activation
        As in `FeedForward`.
    dropout
        On the output of both sub-layers before they are added back; and, unless these
        say otherwise:
    norm
        Where layer norm stands: "post", after the sum, as published; "pre", before each
        sub-layer (Xiong et al. 2020); or "none".
    residual
        Whether each sub-layer's input is added to its output. False is for an ablation
        only.
    attention_dropout
        On attention weights.
    activation_dropout
        Between the feed-forward's layers, where BERT has none.
    norm_eps
        As `eps` in `layer_norm`.

    Raises
    ------
    ValueError
        If `num_heads` does not divide `dim`, or `norm` or `activation` is not known.

    Examples
    --------
    >>> import torch
    >>> block = EncoderBlock(dim=12, num_heads=3, hidden_dim=20)
    >>> block(torch.randn(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        hidden_dim: int,
        dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "post",
        residual: bool = True,
        attention_dropout: float | None = None,
        activation_dropout: float | None = None,
        norm_eps: float = 1e-5,
    ):
        super().__init__()
        attention_dropout = dropout if attention_dropout is None else attention_dropout
        between = dropout if activation_dropout is None else activation_dropout
        check_norm(norm)
        self.pre_norm = norm == "pre"
        self.attention = MultiHeadAttention(dim, num_heads, attention_dropout)
        self.feed_forward = FeedForward(dim, hidden_dim, between, activation)
        make_norm = nn.Identity if norm == "none" else nn.LayerNorm
        self.norm1, self.norm2 = make_norm(dim, norm_eps), make_norm(dim, norm_eps)
        self.skip = nn.Identity() if residual else NoSkip()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "#B #T T"] | Bool[Tensor, "#T T"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "B T D"]:
        """Return the new hidden states; the options are `MultiHeadAttention`'s."""
        if self.pre_norm:
            mixed = self.attention(self.norm1(hidden), mask=mask, causal=causal)
            hidden = self.skip(hidden) + self.dropout(mixed)
            mixed = self.feed_forward(self.norm2(hidden))
            return self.skip(hidden) + self.dropout(mixed)
        mixed = self.attention(hidden, mask=mask, causal=causal)
        hidden = self.norm1(self.skip(hidden) + self.dropout(mixed))
        mixed = self.feed_forward(hidden)
        return self.norm2(self.skip(hidden) + self.dropout(mixed))
