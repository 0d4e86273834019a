"""BERT: an encoder that reads both ways, with what it is pre-trained by (Devlin et al.
2019).

Other letters: N, chosen positions of the whole batch.

The forward pass, as Phuong and Hutter 2022 number it (algorithm 9), with BERT's own
segments and layer norm in line 2; the numbers stand in the code::

    2   e_t = layer_norm(W_e[x_t] + W_p[t] + W_s[s_t])      BertEmbeddings
    4   for each layer:
    5       X = X + MultiHeadAttention(X)
    6       X = layer_norm(X)                               EncoderBlock
    7       X = X + GELU(X W_1 + b_1) W_2 + b_2
    8       X = layer_norm(X)
    10  X = GELU(X W_f + b_f)
    11  X = layer_norm(X)                                   MaskedLanguageModelHead
    12  P = softmax(X W_u + b_u), with W_u the transpose of W_e

Beside it stands the guess about the next sentence, softmax(tanh(x_1 W_c + b_c) W_n +
b_n), from the state of [CLS].
"""

from typing import NamedTuple

from jaxtyping import Bool, Int
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.layers import (
    BertEmbeddings,
    BertPooler,
    MaskedLanguageModelHead,
    NextSentenceHead,
    check_inputs,
    check_positions,
    encoder_block,
    initialise,
)


class BertOutput(NamedTuple):
    """What a `BertModel` returns."""

    last_hidden_state: Tensor
    pooler_output: Tensor
    hidden_states: tuple[Tensor, ...] | None = None


class BertModel(nn.Module):
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
        self.blocks = nn.ModuleList(
            encoder_block(config) for _ in range(config.num_hidden_layers)
        )
        self.pooler = BertPooler(config)
        self.apply(lambda module: initialise(module, config.initializer_range))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
        return_hidden_states: bool = False,
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
        return_hidden_states
            Whether to return all layers' states too.

        Returns
        -------
        BertOutput
            Final states, pooled states, and all states if asked for.

        Raises
        ------
        ValueError
            If `input_ids` is not a batch, a sequence is longer than
            ``max_position_embeddings`` or is all padding, the mask is not boolean,
            shapes differ, or, on a CPU, an id is outside its table.
        """
        check_inputs(self.config, input_ids, attention_mask, token_type_ids)
        # (B, T) -> (B, 1, T): the same keys for all queries
        mask = None if attention_mask is None else attention_mask[:, None]
        hidden = self.embeddings(input_ids, token_type_ids)  # line 2
        states = [hidden]
        for block in self.blocks:  # line 4
            hidden = block(hidden, mask)  # lines 5 to 8
            states.append(hidden)
        every = tuple(states) if return_hidden_states else None
        return BertOutput(hidden, self.pooler(hidden), every)


class PreTrainingOutput(NamedTuple):
    """What a `BertForPreTraining` returns."""

    prediction_logits: Tensor
    seq_relationship_logits: Tensor


class BertForPreTraining(nn.Module):
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
            Where tokens are to be predicted: indices into the flattened batch, t + T ·
            b for position t of sequence b. The output layer is the largest of all, and
            six positions in seven are not masked. None: everywhere.

        Returns
        -------
        PreTrainingOutput
            Logits of both heads.

        Raises
        ------
        ValueError
            As `BertModel`.
        """
        hidden, pooled, _ = self.bert(input_ids, attention_mask, token_type_ids)
        if masked_positions is not None:
            check_positions(masked_positions, input_ids)
            hidden = hidden.flatten(0, 1)[masked_positions]  # (B, T, D) -> (N, D)
        return PreTrainingOutput(self.mlm_head(hidden), self.nsp_head(pooled))
