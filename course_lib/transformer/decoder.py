"""The Transformer's decoder block, at once in training and word by word in decoding.

Dimension letters, everywhere in this module::

    B  sentences in a batch     S  source words (memory)     T  positions of the sequence at hand
    D  features of a hidden state     H  heads

Masks are boolean, and True means "may attend" (:mod:`course_lib.attention.masks`).
"""  # noqa: E501

from dataclasses import dataclass
from typing import Literal, overload

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.attention.masks import check_mask
from course_lib.attention.multi_head import KeyValue, MultiHeadAttention
from course_lib.transformer.blocks import FeedForward, Sublayer

__all__ = ["BlockCache", "DecoderBlock"]


@dataclass
class BlockCache:
    """What a `DecoderBlock` keeps between steps: keys and values of the words written,
    and of the source.

    Parameters
    ----------
    written
        Of its self-attention, one position longer after each step; None before the
        first.
    memory
        Of its cross-attention, computed once.
    """

    written: KeyValue | None
    memory: KeyValue


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
        self.attention = MultiHeadAttention(dim, num_heads, dropout)
        self.cross_attention = MultiHeadAttention(dim, num_heads, dropout)
        self.feed_forward = FeedForward(dim, hidden_dim, dropout, activation)
        self.around_attention = Sublayer(dim, dropout, norm, residual)
        self.around_cross_attention = Sublayer(dim, dropout, norm, residual)
        self.around_feed_forward = Sublayer(dim, dropout, norm, residual)

    @overload
    def forward(
        self,
        hidden: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        mask: Tensor | None = None,
        return_weights: Literal[False] = False,
    ) -> Tensor: ...
    @overload
    def forward(
        self,
        hidden: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        return_weights: Literal[True],
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        memory: Float[Tensor, "B S D"],
        memory_mask: Bool[Tensor, "#B #T S"] | Bool[Tensor, "#T S"] | None = None,
        mask: Bool[Tensor, "#B #T T"] | Bool[Tensor, "#T T"] | None = None,
        return_weights: bool = False,
    ) -> (
        Float[Tensor, "B T D"]
        | tuple[
            Float[Tensor, "B T D"], Float[Tensor, "B H T T"], Float[Tensor, "B H T S"]
        ]
    ):
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
        return_weights
            Whether to return the weights of self-attention and of cross-attention too.

        Returns
        -------
        Tensor or tuple of Tensor
            The new hidden states, or these and both kinds of weights.

        Raises
        ------
        ValueError
            If a mask is not boolean or leaves a position nothing to attend to.
        """
        if memory_mask is not None:
            check_mask(memory_mask, name="memory_mask")
        if mask is not None:
            check_mask(mask, causal=True)
        hidden, weights, cross_weights = self.run(
            hidden, memory, memory_mask, mask, return_weights
        )
        return (
            hidden
            if weights is None or cross_weights is None
            else (hidden, weights, cross_weights)
        )

    def run(
        self,
        hidden: Float[Tensor, "B T D"],
        memory: Float[Tensor, "B S D"],
        memory_mask: Bool[Tensor, "#B #T S"] | Bool[Tensor, "#T S"] | None = None,
        mask: Bool[Tensor, "#B #T T"] | Bool[Tensor, "#T T"] | None = None,
        return_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "B T D"],
        Float[Tensor, "B H T T"] | None,
        Float[Tensor, "B H T S"] | None,
    ]:
        """Do what `forward` does, without checking the masks; None stands for no
        weights."""
        normed = self.around_attention.before(hidden)
        attended, weights = self.attention.run(
            normed, mask=mask, causal=True, return_weights=return_weights
        )
        hidden = self.around_attention.after(hidden, attended)
        normed = self.around_cross_attention.before(hidden)
        attended, cross_weights = self.cross_attention.run(
            normed, memory, mask=memory_mask, return_weights=return_weights
        )
        hidden = self.around_cross_attention.after(hidden, attended)
        transformed = self.feed_forward(self.around_feed_forward.before(hidden))
        return (
            self.around_feed_forward.after(hidden, transformed),
            weights,
            cross_weights,
        )

    def start(self, memory: Float[Tensor, "B S D"]) -> BlockCache:
        """Compute the keys and values of the source once, before the first word is
        written."""
        return BlockCache(None, self.cross_attention.project(memory))

    def step(
        self,
        hidden: Float[Tensor, "B 1 D"],
        cache: BlockCache,
        memory_mask: Bool[Tensor, "B 1 S"] | None = None,
    ) -> tuple[Float[Tensor, "B 1 D"], BlockCache]:
        """Run one new position; what `forward` gives for it, without computing the
        others again."""
        attended, written = self.attention.extend(
            self.around_attention.before(hidden), cache.written
        )
        hidden = self.around_attention.after(hidden, attended)
        normed = self.around_cross_attention.before(hidden)
        attended = self.cross_attention.attend_cached(normed, cache.memory, memory_mask)
        hidden = self.around_cross_attention.after(hidden, attended)
        transformed = self.feed_forward(self.around_feed_forward.before(hidden))
        return self.around_feed_forward.after(hidden, transformed), BlockCache(
            written, cache.memory
        )
