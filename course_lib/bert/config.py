"""The settings of a BERT: the names of Hugging Face's ``config.json``, and the six
published sizes.

It stands apart from :mod:`course_lib.bert.model` because a checkpoint's files
(:mod:`course_lib.bert.files`) need it too.
"""

from dataclasses import dataclass
from typing import Any

from course_lib.transformer.blocks import ACTIVATIONS

SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


@dataclass(frozen=True)
class BertConfig:
    """Sizes and choices of a BERT; the defaults are BERT-base's (Devlin et al. 2019,
    section 3).

    Parameters
    ----------
    vocab_size
        Number of different tokens V, special tokens included.
    hidden_size
        Features D of a hidden state; H in the paper.
    num_hidden_layers
        Encoder blocks L.
    num_attention_heads
        Heads of each attention; A in the paper.
    intermediate_size
        Features between the layers of each feed-forward; four times `hidden_size` in
        the paper.
    hidden_act
        "gelu", as published, or "relu".
    hidden_dropout_prob
        Share of features set to zero in training: after the embeddings and after each
        sub-layer.
    attention_probs_dropout_prob
        Share of attention weights set to zero in training.
    max_position_embeddings
        Longest sequence, in tokens.
    type_vocab_size
        Number of segments.
    initializer_range
        Standard deviation of the weights at the start.
    layer_norm_eps
        As `eps` in `course_lib.transformer.blocks.layer_norm`.
    pad_token_id
        The token that fills up a batch: its embedding is zero and stays so. None if
        there is none.

    Raises
    ------
    ValueError
        If a setting cannot be used.

    Notes
    -----
    `tiny` to `base` are the sizes of Turc et al. 2019; `base` and `large` those of
    Devlin et al. 2019. Each takes changes: ``BertConfig.mini(vocab_size=8192)``.

    Examples
    --------
    >>> BertConfig.large().num_hidden_layers
    24
    >>> BertConfig.tiny(vocab_size=100).vocab_size
    100
    """

    vocab_size: int = 30_522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0

    def __post_init__(self) -> None:
        for name in SIZES:
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be at least 1"
                )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} does not divide into"
                f" num_attention_heads={self.num_attention_heads}; choose a divisor, as"
                " published models do with 64 features a head"
            )
        if self.hidden_act not in ACTIVATIONS:
            raise ValueError(
                f"hidden_act is {self.hidden_act!r}; choose one of"
                f" {', '.join(ACTIVATIONS)}"
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it is a share, at least 0 and"
                    " below 1"
                )
        for name in ("initializer_range", "layer_norm_eps"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be a number above 0"
                )
        if (
            self.pad_token_id is not None
            and not 0 <= self.pad_token_id < self.vocab_size
        ):
            raise ValueError(
                f"pad_token_id is {self.pad_token_id}, but the vocabulary has ids 0 to"
                f" {self.vocab_size - 1}; pass one of these, or None"
            )

    @classmethod
    def tiny(cls, **changes: Any) -> "BertConfig":
        """L=2, H=128, A=2: 4.4 million parameters."""
        return cls._of_size(2, 128, changes)

    @classmethod
    def mini(cls, **changes: Any) -> "BertConfig":
        """L=4, H=256, A=4: 11 million parameters."""
        return cls._of_size(4, 256, changes)

    @classmethod
    def small(cls, **changes: Any) -> "BertConfig":
        """L=4, H=512, A=8: 29 million parameters."""
        return cls._of_size(4, 512, changes)

    @classmethod
    def medium(cls, **changes: Any) -> "BertConfig":
        """L=8, H=512, A=8: 41 million parameters."""
        return cls._of_size(8, 512, changes)

    @classmethod
    def base(cls, **changes: Any) -> "BertConfig":
        """L=12, H=768, A=12: 110 million parameters."""
        return cls._of_size(12, 768, changes)

    @classmethod
    def large(cls, **changes: Any) -> "BertConfig":
        """L=24, H=1024, A=16: 340 million parameters, as the paper counts; the code
        counts 335 million."""
        return cls._of_size(24, 1024, changes)

    @classmethod
    def _of_size(cls, layers: int, width: int, changes: dict[str, Any]) -> "BertConfig":
        """Every published size has heads of 64 features and a feed-forward four times
        as wide as a state."""
        shape = {"num_hidden_layers": layers, "hidden_size": width}
        shape |= {"num_attention_heads": width // 64, "intermediate_size": 4 * width}
        return cls(**(shape | changes))
