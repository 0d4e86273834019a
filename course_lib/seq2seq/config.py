"""The sizes and options of chapter 1's encoder-decoder."""

from dataclasses import dataclass

__all__ = ["Seq2SeqConfig"]


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes of a `Seq2Seq`.

    Parameters
    ----------
    source_vocab, target_vocab
        Number of different words on each side, special tokens included.
    embedding_dim
        Features of a word embedding.
    hidden_dim
        Features D of the decoder's state and of an encoder state; even, since the
        encoder's two directions share it.
    attention
        The score that compares a decoder state with an encoder state: "dot",
        "bilinear", "scaled" (bilinear, over the root of D) or "additive"; None for no
        attention.
    dropout
        Share of features set to zero in training, on embeddings and before the output
        layer.
    input_feeding
        Whether each step of the decoder also reads what the step before gave to the
        output layer (Luong et al. 2015, section 3.3). A known target then runs word by
        word, and training takes longer.
    tie_output
        Whether the output layer's matrix is the target embedding (Press and Wolf 2017);
        needs `embedding_dim` equal to `hidden_dim`.
    conditional
        Whether a step of the decoder has two recurrent halves with attention between
        them (the conditional GRU of Sennrich et al. 2017, section 2): the first reads
        the last word, its state asks, and the second reads the answer. The output layer
        then reads the last word too, and dropout falls on the encoder's states as well.
    layer_norm
        Whether the encoder's states, and what goes to the output layer, are
        layer-normalised (Ba et al. 2016).

    Raises
    ------
    ValueError
        If a size cannot be used, or two options exclude each other.

    Examples
    --------
    >>> Seq2SeqConfig(
    ...     source_vocab=9, target_vocab=8, embedding_dim=4, hidden_dim=6
    ... ).attention
    'dot'
    """

    source_vocab: int
    target_vocab: int
    embedding_dim: int = 128
    hidden_dim: int = 128
    attention: str | None = "dot"
    dropout: float = 0.0
    input_feeding: bool = False
    tie_output: bool = False
    conditional: bool = False
    layer_norm: bool = False

    def __post_init__(self) -> None:
        for name in ("source_vocab", "target_vocab", "embedding_dim", "hidden_dim"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be at least 1"
                )
        if self.hidden_dim % 2:
            raise ValueError(
                f"hidden_dim is {self.hidden_dim}, but the encoder's two directions"
                f" share it; choose an even number, e.g. {self.hidden_dim + 1}"
            )
        if self.attention not in (None, "dot", "bilinear", "scaled", "additive"):
            raise ValueError(
                f"attention is {self.attention!r}; choose 'dot', 'bilinear', 'scaled',"
                " 'additive' or None"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(
                f"dropout is {self.dropout}; it is a share, at least 0 and below 1"
            )
        if self.tie_output and self.embedding_dim != self.hidden_dim:
            raise ValueError(
                "tie_output shares one matrix between embedding_dim"
                f" {self.embedding_dim} and hidden_dim {self.hidden_dim}; make them"
                " equal"
            )
        if self.conditional and self.input_feeding:
            raise ValueError(
                "a conditional decoder reads what it looks at within the step; leave"
                " out input_feeding or conditional"
            )
