"""The Transformer's decoder block; word by word it runs in
:mod:`course_lib.transformer.cache`.

Masks are boolean, and True means "may attend" (:mod:`course_lib.attention.masks`).
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.transformer.blocks import FeedForward, NoSkip, check_norm


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the encoder's output, feed-forward
    (Vaswani et al. 2017, figure 1).

    Parameters
    ----------
    dim, num_heads, hidden_dim, dropout, activation, norm, residual
        As in `EncoderBlock`.

    Raises
    ------
    ValueError
        As in `EncoderBlock`.

    Examples
    --------
    >>> import torch
    >>> block = DecoderBlock(dim=12, num_heads=3, hidden_dim=20)
    >>> block(torch.randn(2, 5, 12), memory=torch.randn(2, 7, 12)).shape
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
    ):
        super().__init__()
        check_norm(norm)
        self.pre_norm = norm == "pre"
        self.attention = MultiHeadAttention(dim, num_heads, dropout)
        self.cross_attention = MultiHeadAttention(dim, num_heads, dropout)
        self.feed_forward = FeedForward(dim, hidden_dim, dropout, activation)
        make_norm = nn.Identity if norm == "none" else nn.LayerNorm
        self.norm1, self.norm2, self.norm3 = (make_norm(dim) for _ in range(3))
        self.skip = nn.Identity() if residual else NoSkip()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        memory: Float[Tensor, "B S D"],
        memory_mask: Bool[Tensor, "#B #T S"] | Bool[Tensor, "#T S"] | None = None,
        mask: Bool[Tensor, "#B #T T"] | Bool[Tensor, "#T T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Run all positions of a known target at once; position t sees target positions
        up to t only.

        Parameters
        ----------
        hidden
            The target so far.
        memory
            Output of the top layer of the encoder; keys and values come from it.
        memory_mask
            True at source words, False at padding.
        mask
            True where self-attention is allowed, beside its being causal. Padding on
            the right needs none: no word before it can see it.

        Returns
        -------
        Tensor
            The new hidden states.

        Raises
        ------
        ValueError
            If a mask is not boolean or, on a CPU, leaves a position nothing to attend
            to.
        """
        x = hidden
        if self.pre_norm:
            mixed = self.attention(self.norm1(x), mask=mask, causal=True)
            x = self.skip(x) + self.dropout(mixed)
            mixed = self.cross_attention(self.norm2(x), memory, mask=memory_mask)
            x = self.skip(x) + self.dropout(mixed)
            return self.skip(x) + self.dropout(self.feed_forward(self.norm3(x)))
        mixed = self.attention(x, mask=mask, causal=True)
        x = self.norm1(self.skip(x) + self.dropout(mixed))
        mixed = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(self.skip(x) + self.dropout(mixed))
        return self.norm3(self.skip(x) + self.dropout(self.feed_forward(x)))
