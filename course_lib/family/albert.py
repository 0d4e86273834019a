"""ALBERT: one block for all layers, and a narrow embedding that is widened (Lan et al.
2020).

It is :mod:`course_lib.bert.model` with two lines changed in each constructor; what the
models do with an input is BERT's code, not a copy of it. What is not here: sentence
order in place of next sentences, which is a matter of the batches, and ALBERT's
checkpoints.
"""

from dataclasses import replace

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.layers import (
    BertEmbeddings,
    BertPooler,
    MaskedLanguageModelHead,
    NextSentenceHead,
    encoder_block,
    initialise,
)
from course_lib.bert.model import BertForPreTraining, BertModel


def _narrow(config: BertConfig, embedding_size: int) -> BertConfig:
    """The settings of the embeddings, which have no heads."""
    if embedding_size < 1:
        raise ValueError(
            f"embedding_size is {embedding_size}; it must be at least 1, e.g. 128"
        )
    return replace(config, hidden_size=embedding_size, num_attention_heads=1)


class FactorisedEmbeddings(BertEmbeddings):
    """BERT's input in few features, and a matrix that widens it: so that the vocabulary
    costs little."""

    def __init__(self, config: BertConfig, embedding_size: int):
        super().__init__(_narrow(config, embedding_size))
        self.widen = nn.Linear(embedding_size, config.hidden_size)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return the first hidden states, as `BertEmbeddings` does."""
        narrow = super().forward(input_ids, token_type_ids)  # (B, T, E)
        return self.widen(narrow)  # (B, T, D)


class FactorisedHead(MaskedLanguageModelHead):
    """BERT's head that predicts tokens, with a layer that goes back from D to E
    features."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding):
        super().__init__(_narrow(config, embedding.embedding_dim), embedding)
        self.dense = nn.Linear(config.hidden_size, embedding.embedding_dim)


class AlbertModel(nn.Module):
    """A `BertModel` whose layers are one and the same block.

    Parameters
    ----------
    config
        Sizes and choices.
    embedding_size
        As in `FactorisedEmbeddings`; 128 in the paper at every width.

    Raises
    ------
    ValueError
        If `embedding_size` is below 1.

    Notes
    -----
    Lan et al. 2020, section 3.1, "cross-layer parameter sharing".

    Examples
    --------
    >>> model = AlbertModel(BertConfig.base(vocab_size=30_000))
    >>> sum(parameter.numel() for parameter in model.parameters())
    11683584
    """

    def __init__(self, config: BertConfig, embedding_size: int = 128):
        super().__init__()
        self.config = config
        self.embeddings = FactorisedEmbeddings(config, embedding_size)
        self.blocks = nn.ModuleList([encoder_block(config)] * config.num_hidden_layers)
        self.pooler = BertPooler(config)
        self.apply(lambda module: initialise(module, config.initializer_range))

    forward = BertModel.forward


class AlbertForPreTraining(nn.Module):
    """An `AlbertModel` with both heads that it is pre-trained by."""

    def __init__(self, config: BertConfig, embedding_size: int = 128):
        super().__init__()
        self.config = config
        self.bert = AlbertModel(config, embedding_size)
        self.mlm_head = FactorisedHead(config, self.bert.embeddings.token)
        self.nsp_head = NextSentenceHead(config)
        for head in (self.mlm_head, self.nsp_head):
            head.apply(lambda module: initialise(module, config.initializer_range))

    forward = BertForPreTraining.forward
