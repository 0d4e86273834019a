"""The Transformer: stacks of blocks that encode a source and decode a target (Vaswani
et al. 2017).

`Transformer` is called as `course_lib.seq2seq.model.Seq2Seq` is: the same training loop
trains it, the same searches decode with it. What this module does not do: no relative
positions, no sharing of weights between layers.
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import check_mask, padding_mask
from course_lib.transformer.blocks import EncoderBlock
from course_lib.transformer.cache import CachedDecoding
from course_lib.transformer.decoder import DecoderBlock
from course_lib.transformer.heads import LanguageModelHead
from course_lib.transformer.positions import WordAndPosition


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and choices of a `Transformer`; the defaults are the paper's choices at a
    small size.

    Parameters
    ----------
    source_vocab, target_vocab
        Number of different words on each side, special tokens included.
    dim
        Features D of a hidden state; 512 in the paper.
    num_heads
        Heads of each attention; 8 in the paper.
    num_layers
        Blocks in the encoder, and in the decoder; 6 in the paper.
    hidden_dim
        Features between the layers of each feed-forward; 2,048 in the paper.
    dropout, activation, norm, residual
        As in `EncoderBlock`.
    positions
        "sinusoidal", "learned" or "none".
    max_length
        Longest source or target.
    share_embeddings
        Whether source and target use one embedding; needs one vocabulary for both.
    tie_output
        Whether the output layer uses the target's embedding.

    Raises
    ------
    ValueError
        If a size cannot be used. The layers refuse what they do not know: a norm, an
        activation, a kind of positions.

    Examples
    --------
    >>> TransformerConfig(source_vocab=9, target_vocab=8).num_layers
    2
    """

    source_vocab: int
    target_vocab: int
    dim: int = 128
    num_heads: int = 4
    num_layers: int = 2
    hidden_dim: int = 512
    dropout: float = 0.0
    activation: str = "relu"
    norm: str = "post"
    residual: bool = True
    positions: str = "sinusoidal"
    max_length: int = 512
    share_embeddings: bool = False
    tie_output: bool = True

    def __post_init__(self) -> None:
        for name in (
            "source_vocab",
            "target_vocab",
            "dim",
            "num_heads",
            "num_layers",
            "hidden_dim",
            "max_length",
        ):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be at least 1"
                )
        if self.share_embeddings and self.source_vocab != self.target_vocab:
            raise ValueError(
                "share_embeddings needs one vocabulary for both sides, but"
                f" source_vocab is {self.source_vocab} and target_vocab"
                f" {self.target_vocab}; train one tokenizer on both languages"
            )


def _embedding(vocab_size: int, dim: int) -> nn.Embedding:
    embedding = nn.Embedding(vocab_size, dim)
    # times √D: variance 1, as the positions' order of size
    nn.init.normal_(embedding.weight, std=dim**-0.5)
    return embedding


def _block_options(config: TransformerConfig) -> dict[str, Any]:
    """What a block is told by the model's configuration."""
    names = ("dim", "num_heads", "hidden_dim", "dropout", "activation", "norm")
    return {name: getattr(config, name) for name in (*names, "residual")}


class TransformerEncoder(nn.Module):
    """A stack of encoder blocks over words and positions; each block has weights of its
    own.

    Parameters
    ----------
    embedding
        One row of D features for each word.
    config
        Sizes and choices.

    Notes
    -----
    With ``norm="pre"`` one more layer norm ends the stack, since nothing else
    normalises the last sum (Xiong et al. 2020).

    Examples
    --------
    >>> import torch
    >>> encoder = TransformerEncoder(
    ...     nn.Embedding(9, 12), TransformerConfig(9, 8, dim=12, num_heads=3)
    ... )
    >>> encoder(torch.tensor([[5, 7, 8]])).shape
    torch.Size([1, 3, 12])
    """

    def __init__(self, embedding: nn.Embedding, config: TransformerConfig):
        super().__init__()
        self.embed = WordAndPosition(
            embedding, config.positions, config.max_length, config.dropout
        )
        self.blocks = nn.ModuleList(
            EncoderBlock(**_block_options(config)) for _ in range(config.num_layers)
        )
        self.final_norm = (
            nn.LayerNorm(config.dim) if config.norm == "pre" else nn.Identity()
        )

    def forward(
        self,
        ids: Int[Tensor, "B S"],
        mask: Bool[Tensor, "#B #S S"] | Bool[Tensor, "#S S"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "B S D"]:
        """Return the top layer's states; the options are `MultiHeadAttention`'s."""
        if mask is not None:
            check_mask(mask, causal=causal)
        hidden = self.embed(ids)
        for block in self.blocks:
            hidden = block(hidden, mask, causal)
        return self.final_norm(hidden)


class Transformer(CachedDecoding):
    """Translate with attention alone: no recurrence, so all positions of a known target
    are computed at once.

    Parameters
    ----------
    config
        Sizes and choices.

    Notes
    -----
    Vaswani et al. 2017, section 3. `start` and `step` are what the searches of
    `course_lib.seq2seq.search` need; they keep keys and values, so each step computes
    one position only.

    Examples
    --------
    >>> import torch
    >>> model = Transformer(
    ...     TransformerConfig(
    ...         source_vocab=9, target_vocab=8, dim=12, num_heads=3, hidden_dim=20
    ...     )
    ... )
    >>> source_ids = torch.tensor([[5, 7, 8], [5, 0, 0]])
    >>> source_lengths = torch.tensor([3, 1])
    >>> model(
    ...     source_ids, source_lengths, target_ids=torch.tensor([[1, 6], [1, 7]])
    ... ).shape
    torch.Size([2, 2, 8])
    """

    encoder: TransformerEncoder

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        source = _embedding(config.source_vocab, config.dim)
        target = (
            source
            if config.share_embeddings
            else _embedding(config.target_vocab, config.dim)
        )
        self.encoder = TransformerEncoder(source, config)
        self.embed = WordAndPosition(
            target, config.positions, config.max_length, config.dropout
        )
        self.blocks = nn.ModuleList(
            DecoderBlock(**_block_options(config)) for _ in range(config.num_layers)
        )
        self.final_norm = (
            nn.LayerNorm(config.dim) if config.norm == "pre" else nn.Identity()
        )
        self.output = LanguageModelHead(
            target if config.tie_output else _embedding(config.target_vocab, config.dim)
        )

    def forward(
        self,
        source_ids: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target_ids: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T V"]:
        """Score a known target: teacher forcing.

        Parameters
        ----------
        source_ids, source_lengths
            The source, padded on the right with any id, and its lengths.
        target_ids
            The target, shifted: it begins with ``<bos>`` and lacks the last token.
            Position t predicts token t + 1.

        Returns
        -------
        Tensor
            Logits.

        Raises
        ------
        ValueError
            If a source sentence is empty, or a sequence is longer than ``max_length``.
        """
        mask = padding_mask(source_lengths, source_ids.shape[1])[:, None]  # (B, 1, S)
        memory = self.encoder(source_ids, mask)
        hidden = self.embed(target_ids)
        for block in self.blocks:
            hidden = block(hidden, memory, mask)
        return self.output(self.final_norm(hidden))
