"""The layers of a BERT beside its encoder: the input, the pooler and the two heads of
pre-training.

The numbers of lines are those of :mod:`course_lib.bert.model`.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import check_mask
from course_lib.bert.config import BertConfig
from course_lib.transformer.blocks import ACTIVATIONS, EncoderBlock
from course_lib.transformer.heads import LanguageModelHead


class BertEmbeddings(nn.Module):
    """The input: token + position + segment, then layer norm (Devlin et al. 2019,
    figure 2).

    Parameters
    ----------
    config
        Sizes and choices.

    Examples
    --------
    >>> BertEmbeddings(BertConfig.tiny(vocab_size=50))(torch.tensor([[2, 47, 3]])).shape
    torch.Size([1, 3, 128])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        width = config.hidden_size
        self.token = nn.Embedding(
            config.vocab_size, width, padding_idx=config.pad_token_id
        )
        self.position = nn.Embedding(config.max_position_embeddings, width)
        self.segment = nn.Embedding(config.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return the first hidden states; without `token_type_ids` all tokens are of
        segment 0."""
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        segments = (
            torch.zeros_like(positions) if token_type_ids is None else token_type_ids
        )
        hidden = self.token(input_ids) + self.position(positions)  # (B, T, D)
        return self.dropout(self.norm(hidden + self.segment(segments)))


class BertPooler(nn.Module):
    """One vector for the whole input: the state of [CLS] through a layer with tanh.

    Parameters
    ----------
    config
        Sizes and choices.

    Notes
    -----
    Devlin et al. 2019 call the state of [CLS] C; the layer is in their code, not in the
    text.

    Examples
    --------
    >>> BertPooler(BertConfig.tiny())(torch.zeros(2, 5, 128)).shape
    torch.Size([2, 128])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        """Return the vector of each sequence."""
        return self.dense(hidden[:, 0]).tanh()  # (B, T, D) -> (B, D)


class MaskedLanguageModelHead(nn.Module):
    """Predict the token behind each state: a layer, layer norm, and the embedding
    matrix as output layer.

    Parameters
    ----------
    config
        Sizes and choices.
    embedding
        The token embedding, which is shared.

    Notes
    -----
    Devlin et al. 2019, task 1 in section 3.1.

    Examples
    --------
    >>> config = BertConfig.tiny(vocab_size=40)
    >>> MaskedLanguageModelHead(config, nn.Embedding(40, 128))(
    ...     torch.zeros(7, 128)
    ... ).shape
    torch.Size([7, 40])
    """

    def __init__(self, config: BertConfig, embedding: nn.Embedding):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.output = LanguageModelHead(embedding)

    def forward(self, hidden: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape V"]:
        """Return the logits of the tokens."""
        hidden = self.activation(self.dense(hidden))  # line 10
        return self.output(self.norm(hidden))  # lines 11 and 12, without the softmax


class NextSentenceHead(nn.Module):
    """Predict from the pooled state whether the second segment follows the first in the
    text.

    Parameters
    ----------
    config
        Sizes and choices.

    Notes
    -----
    Devlin et al. 2019, task 2 in section 3.1. Logit 0 stands for IsNext, 1 for NotNext.

    Examples
    --------
    >>> NextSentenceHead(BertConfig.tiny())(torch.zeros(3, 128)).shape
    torch.Size([3, 2])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.output = nn.Linear(config.hidden_size, 2)

    def forward(self, pooled: Float[Tensor, "B D"]) -> Float[Tensor, "B 2"]:
        """Return the logits of IsNext and NotNext."""
        return self.output(pooled)


def initialise(module: nn.Module, std: float) -> None:
    """Draw weights from a normal distribution cut off at two standard deviations;
    biases 0, gains 1."""
    if isinstance(module, LanguageModelHead):
        return  # its weights are an embedding's
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.trunc_normal_(module.weight, std=std, a=-2 * std, b=2 * std)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, nn.Embedding) and module.padding_idx is not None:
        nn.init.zeros_(module.weight.data[module.padding_idx])


def check_ids(name: str, ids: Int[Tensor, "*shape"], size: int, remedy: str) -> None:
    """Refuse an id that is in no row of its table; torch would say "index out of range
    in self"."""
    if ids.device.type != "cpu" or torch.compiler.is_compiling() or not ids.numel():
        return
    smallest, largest = (int(bound) for bound in ids.aminmax())
    if smallest < 0 or largest >= size:
        wrong = smallest if smallest < 0 else largest
        raise ValueError(
            f"{name} holds {wrong}, but goes from 0 to {size - 1}; {remedy}"
        )


def check_positions(positions: Int[Tensor, "N"], input_ids: Tensor) -> None:
    """Refuse a position outside the flattened batch."""
    check_ids(
        "masked_positions",
        positions,
        input_ids.numel(),
        "count through the whole batch",
    )


def check_inputs(
    config: BertConfig,
    input_ids: Tensor,
    attention_mask: Tensor | None,
    token_type_ids: Tensor | None,
) -> None:
    """Refuse what torch would refuse without saying which argument is meant, or would
    take for something else; of the mask, once for all layers."""
    if input_ids.dim() != 2:
        raise ValueError(
            f"input_ids has shape {tuple(input_ids.shape)}, but a batch of sequences is"
            " (B, T); pass input_ids[None] for a single sequence"
        )
    if input_ids.shape[1] > config.max_position_embeddings:
        raise ValueError(
            f"the sequences are {input_ids.shape[1]} tokens long, but this BERT has"
            f" {config.max_position_embeddings} positions; truncate them, or split them"
            " into overlapping parts"
        )
    for name, tensor in (
        ("attention_mask", attention_mask),
        ("token_type_ids", token_type_ids),
    ):
        if tensor is not None and tensor.shape != input_ids.shape:
            raise ValueError(
                f"{name} is {tuple(tensor.shape)}, but input_ids is"
                f" {tuple(input_ids.shape)}; one a token"
            )
    if attention_mask is not None:
        check_mask(attention_mask, name="attention_mask")
    check_ids(
        "input_ids",
        input_ids,
        config.vocab_size,
        "take the tokenizer that belongs to this model",
    )
    if token_type_ids is not None:
        if token_type_ids.is_floating_point():
            raise ValueError(
                f"token_type_ids is {token_type_ids.dtype}; pass whole numbers"
            )
        check_ids(
            "token_type_ids",
            token_type_ids,
            config.type_vocab_size,
            "number the segments from 0",
        )


def encoder_block(config: BertConfig) -> EncoderBlock:
    """Make one block of the encoder, untrained."""
    return EncoderBlock(
        config.hidden_size,
        config.num_attention_heads,
        config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        activation=config.hidden_act,
        attention_dropout=config.attention_probs_dropout_prob,
        activation_dropout=0.0,
        norm_eps=config.layer_norm_eps,
    )
