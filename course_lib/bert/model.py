"""BERT: an encoder that reads both ways, with what it is pre-trained by (Devlin et al.
2019).

Dimension letters, everywhere in this module::

    B  sequences in a batch     T  positions     D  features of a hidden state     H  heads
    V  tokens in the vocabulary     N  chosen positions of the whole batch

The forward pass, as Phuong and Hutter 2022 number it (algorithm 9), with BERT's own
segments and layer norm in line 2; the numbers stand in the code::

    2   e_t = layer_norm(W_e[x_t] + W_p[t] + W_s[s_t])                    BertEmbeddings
    4   for each layer:
    5       X = X + MultiHeadAttention(X)
    6       X = layer_norm(X)                                             course_lib.transformer.blocks.EncoderBlock
    7       X = X + GELU(X W_1 + b_1) W_2 + b_2
    8       X = layer_norm(X)
    10  X = GELU(X W_f + b_f)
    11  X = layer_norm(X)                                                 MaskedLanguageModelHead
    12  P = softmax(X W_u + b_u), with W_u the transpose of W_e

Beside it stands the guess about the next sentence, softmax(tanh(x_1 W_c + b_c) W_n +
b_n), from the state of [CLS].
"""  # noqa: E501

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from course_lib.attention.masks import check_mask
from course_lib.bert.config import BertConfig
from course_lib.bert.files import PretrainedModel
from course_lib.bert.layers import (
    BertEmbeddings,
    BertPooler,
    MaskedLanguageModelHead,
    NextSentenceHead,
    check_ids,
    initialise,
    stack_of_blocks,
)
from course_lib.transformer.blocks import EncoderBlock

__all__ = ["BertForPreTraining", "BertModel", "BertOutput", "PreTrainingOutput"]


class BertOutput(NamedTuple):
    """What a `BertModel` returns.

    Parameters
    ----------
    last_hidden_state
        One vector for each token, ``(B, T, D)``.
    pooler_output
        One vector for each sequence, ``(B, D)``.
    hidden_states
        The embeddings and then each layer's output, ``(B, T, D)`` each; None unless
        asked for.
    attentions
        Each layer's attention weights, ``(B, H, T, T)``; None unless asked for.
    """

    last_hidden_state: Tensor
    pooler_output: Tensor
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class BertModel(PretrainedModel):
    """The encoder: a vector for each token that has seen all tokens, left and right.

    Parameters
    ----------
    config
        Sizes and choices.

    Notes
    -----
    Devlin et al. 2019, section 3.

    Examples
    --------
    >>> import torch
    >>> output = BertModel(BertConfig.tiny(vocab_size=50)).eval()(
    ...     torch.tensor([[2, 47, 3]])
    ... )
    >>> output.last_hidden_state.shape, output.pooler_output.shape
    (torch.Size([1, 3, 128]), torch.Size([1, 128]))
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.blocks: Sequence[EncoderBlock] = stack_of_blocks(config)
        self.pooler = BertPooler(config)
        self.apply(lambda module: initialise(module, config.initializer_range))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
        return_hidden_states: bool = False,
        return_weights: bool = False,
        positions: Int[Tensor, "N"] | None = None,
    ) -> BertOutput:
        """Encode a batch of token sequences.

        Parameters
        ----------
        input_ids
            [CLS] first, [SEP] behind each segment, padded with any id.
        attention_mask
            True at tokens, False at padding. None says that nothing is padded, and is
            faster.
        token_type_ids
            0 for the first segment, 1 for the second; None: all 0.
        return_hidden_states, return_weights
            Whether to return all layers' states, and all attention weights, too.
        positions
            Where the final states are needed, if not everywhere: indices into the
            flattened batch, t + T · b for position t of sequence b. The last layer's
            feed-forward then computes these and [CLS] only.

        Returns
        -------
        BertOutput
            Final states (``(N, D)`` at `positions`), pooled states, and what else was
            asked for.

        Raises
        ------
        ValueError
            If `input_ids` is not a batch, a sequence is longer than
            ``max_position_embeddings`` or is all padding, the mask is not boolean,
            shapes differ, or, on a CPU, an id is outside its table or a position
            outside the batch; or if hidden states are asked for together with
            `positions`.
        """
        _check_inputs(self.config, input_ids, attention_mask, token_type_ids)
        rows = (
            None
            if positions is None
            else _with_first(positions, input_ids, return_hidden_states)
        )
        mask = None if attention_mask is None else _key_mask(attention_mask)
        hidden = self.embeddings(input_ids, token_type_ids)  # line 2
        states, maps = [hidden], []
        for number, block in enumerate(self.blocks, start=1):  # line 4
            wanted = rows if number == len(self.blocks) else None
            hidden, weights = block.run(
                hidden, mask, False, return_weights, wanted
            )  # lines 5 to 8
            if return_hidden_states:
                states.append(hidden)
            if weights is not None:
                maps.append(weights)
        if rows is None:
            pooled = self.pooler(hidden)
        else:
            firsts, hidden = hidden.tensor_split(
                [len(input_ids)]
            )  # (B + N, D) -> (B, D), (N, D)
            pooled = self.pooler(firsts[:, None])  # (B, D) -> (B, 1, D)
        return BertOutput(
            hidden,
            pooled,
            tuple(states) if return_hidden_states else None,
            tuple(maps) if return_weights else None,
        )


def _key_mask(attention_mask: Tensor) -> Tensor:
    """Which keys every query may see, ``(B, 1, T)``; checked once for all layers."""
    check_mask(attention_mask, name="attention_mask")
    return attention_mask[:, None]  # (B, T) -> (B, 1, T)


def _with_first(
    positions: Tensor, input_ids: Tensor, return_hidden_states: bool
) -> Tensor:
    """Where the flattened batch has [CLS], which the pooler reads, and then
    `positions`."""
    check_ids(
        "positions", positions, input_ids.numel(), "count through the whole batch"
    )
    if return_hidden_states:
        raise ValueError(
            "with positions there are final states at these only; leave out"
            " return_hidden_states, or them"
        )
    firsts = torch.arange(
        0, input_ids.numel(), input_ids.shape[1], device=input_ids.device
    )
    return torch.cat([firsts, positions])


def _check_inputs(
    config: BertConfig,
    input_ids: Tensor,
    attention_mask: Tensor | None,
    token_type_ids: Tensor | None,
) -> None:
    """Refuse what torch would refuse without saying which argument is meant, or would
    take for something else."""
    if input_ids.dim() != 2:
        raise ValueError(
            f"input_ids has shape {tuple(input_ids.shape)}, but a batch of sequences is"
            " (B, T); pass input_ids[None] for a single sequence"
        )
    if input_ids.shape[1] > config.max_position_embeddings:
        raise ValueError(
            f"the sequences are {input_ids.shape[1]} tokens long, but this BERT has"
            f" {config.max_position_embeddings} positions; cut them, or split them into"
            " overlapping parts"
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


class PreTrainingOutput(NamedTuple):
    """What a `BertForPreTraining` returns.

    Parameters
    ----------
    prediction_logits
        Of the tokens: ``(N, V)`` at the chosen positions, or ``(B, T, V)``.
    seq_relationship_logits
        Of IsNext and NotNext, ``(B, 2)``.
    """

    prediction_logits: Tensor
    seq_relationship_logits: Tensor


class BertForPreTraining(PretrainedModel):
    """A `BertModel` with both heads that it is pre-trained by.

    Parameters
    ----------
    config
        Sizes and choices.

    Notes
    -----
    Devlin et al. 2019, section 3.1.

    Examples
    --------
    >>> import torch
    >>> model = BertForPreTraining(BertConfig.tiny(vocab_size=50))
    >>> output = model(torch.tensor([[2, 4, 3]]), masked_positions=torch.tensor([1]))
    >>> output.prediction_logits.shape, output.seq_relationship_logits.shape
    (torch.Size([1, 50]), torch.Size([1, 2]))
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.bert = BertModel(config)
        self.mlm_head = MaskedLanguageModelHead(config, self.bert.embeddings.token)
        self.nsp_head = NextSentenceHead(config)
        for head in (self.mlm_head, self.nsp_head):
            head.apply(lambda module: initialise(module, config.initializer_range))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
        masked_positions: Int[Tensor, "N"] | None = None,
    ) -> PreTrainingOutput:
        """Score the tokens, and whether the second segment follows the first.

        Parameters
        ----------
        input_ids, attention_mask, token_type_ids
            As in `BertModel`.
        masked_positions
            Where tokens are to be guessed: indices into the flattened batch, t + T · b
            for position t of sequence b. The output layer is the largest of all, and
            six positions in seven are not asked. None: everywhere.

        Returns
        -------
        PreTrainingOutput
            Logits of both heads.

        Raises
        ------
        ValueError
            As `BertModel`.
        """
        if masked_positions is not None:
            check_ids(
                "masked_positions",
                masked_positions,
                input_ids.numel(),
                "count through the whole batch",
            )
        hidden, pooled, *_ = self.bert(
            input_ids, attention_mask, token_type_ids, positions=masked_positions
        )
        return PreTrainingOutput(self.mlm_head(hidden), self.nsp_head(pooled))
