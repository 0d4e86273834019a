"""GPT: a Transformer that guesses the next word and sees the words before it only
(Radford et al. 2018).

It is BERT's stack under a causal mask. Its sizes are a
`course_lib.bert.config.BertConfig`, so that both can be built equal. Its input is token
+ position, without segments and without a layer norm.

What this module does not do: keep keys and values while it writes, as
`course_lib.transformer.model` does.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import check_boolean
from course_lib.bert.config import BertConfig
from course_lib.bert.layers import check_ids, encoder_block, initialise
from course_lib.pretraining.batches import PreTrainingBatch
from course_lib.transformer.heads import LanguageModelHead


class LanguageModelBatch(NamedTuple):
    """Text to guess, word by word."""

    input_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"] | None = None


def unhidden(
    epochs: Callable[[int], Sequence[PreTrainingBatch]],
) -> Callable[[int], Iterator[LanguageModelBatch]]:
    """Give back what was hidden: the same sequences, for a model that reads in one
    direction."""

    def clean(epoch: int) -> Iterator[LanguageModelBatch]:
        for batch in epochs(epoch):
            ids = batch.input_ids.flatten().scatter(
                0, batch.masked_positions, batch.masked_labels
            )
            yield LanguageModelBatch(ids.view_as(batch.input_ids), batch.attention_mask)

    return clean


def neighbour_labels(
    batch: LanguageModelBatch, forward: bool = True
) -> tuple[Int[Tensor, "N"], Int[Tensor, "N"]]:
    """Say where a neighbour is to be guessed, and which it is."""
    ids = batch.input_ids
    real = (
        torch.ones_like(ids, dtype=torch.bool)
        if batch.attention_mask is None
        else batch.attention_mask
    )
    check_boolean(real, "attention_mask", "token")
    step = 1 if forward else -1
    has_neighbour = real.clone()
    has_neighbour[:, -1 if forward else 0] = False
    # at the edge it rolls around, which the line above forbids
    has_neighbour &= real.roll(-step, dims=1)
    positions = has_neighbour.flatten().nonzero().squeeze(1)
    return positions, ids.flatten()[positions + step]


def cross_entropy_sum(
    head: nn.Module,
    hidden: Float[Tensor, "B T D"],
    positions: Int[Tensor, "N"],
    labels: Int[Tensor, "N"],
) -> Float[Tensor, ""]:
    """Add up how badly an output layer guesses, computed where something is asked
    only."""
    # (B, T, D) -> (B * T, D) -> (N, D) -> (N, V)
    logits = head(hidden.flatten(0, 1)[positions])
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")


def check_right_padding(attention_mask: Tensor | None, reader: str) -> None:
    """Refuse a mask that is not boolean, or has padding before a token."""
    if attention_mask is not None:
        check_boolean(attention_mask, "attention_mask", "token")
        if (attention_mask[:, 1:] & ~attention_mask[:, :-1]).any():
            raise ValueError(
                f"attention_mask is True behind False; {reader} wants its padding on"
                " the right"
            )


class CausalOutput(NamedTuple):
    """What a `CausalLanguageModel` returns."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...]


class CausalLanguageModel(nn.Module):
    """Encoder blocks under a causal mask, with the embedding as output layer.

    Parameters
    ----------
    config
        Sizes and choices; `type_vocab_size` and `layer_norm_eps` of the embeddings have
        nothing to decide here.

    Notes
    -----
    Radford et al. 2018, section 3.1: post-norm blocks, GELU, learned positions, tied
    output.

    Examples
    --------
    >>> model = CausalLanguageModel(BertConfig.tiny(vocab_size=50)).eval()
    >>> output = model(torch.tensor([[2, 47, 3]]))
    >>> output.last_hidden_state.shape, model.output(output.last_hidden_state).shape
    (torch.Size([1, 3, 128]), torch.Size([1, 3, 50]))
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.blocks = nn.ModuleList(
            encoder_block(config) for _ in range(config.num_hidden_layers)
        )
        self.output = LanguageModelHead(self.token)
        self.apply(lambda module: initialise(module, config.initializer_range))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
    ) -> CausalOutput:
        """Read each sequence from the left.

        Parameters
        ----------
        input_ids
            Padded on the right with any id.
        attention_mask
            True at tokens. It is checked and then left aside: padding on the right is
            behind every token, and no token sees what is behind it. States at padding
            mean nothing.

        Returns
        -------
        CausalOutput
            States of all layers. ``model.output`` makes logits of the next token of
            them.

        Raises
        ------
        ValueError
            If a sequence is longer than ``max_position_embeddings``, the mask is not
            boolean, padding stands before a token, or, on a CPU, an id is not of the
            vocabulary.
        """
        length, longest = input_ids.shape[1], self.config.max_position_embeddings
        if length > longest:
            raise ValueError(
                f"the sequences are {length} tokens long, but the model has {longest}"
                " positions; cut them"
            )
        check_right_padding(attention_mask, "a causal model")
        check_ids(
            "input_ids",
            input_ids,
            self.config.vocab_size,
            "take the tokenizer that belongs to this model",
        )
        positions = torch.arange(length, device=input_ids.device)
        hidden = self.dropout(self.token(input_ids) + self.position(positions))
        states = [hidden]
        for block in self.blocks:
            hidden = block(hidden, causal=True)
            states.append(hidden)
        return CausalOutput(hidden, tuple(states))


def causal_loss_sum(
    model: nn.Module, batch: LanguageModelBatch
) -> tuple[Float[Tensor, ""], int]:
    """Return the sum of the losses of all next tokens and their number, as
    `course_lib.training.loop.train` takes them."""
    output, head = model(batch.input_ids, batch.attention_mask), model.output
    assert isinstance(head, nn.Module)
    positions, labels = neighbour_labels(batch)
    return cross_entropy_sum(head, output.last_hidden_state, positions, labels), len(
        labels
    )
