"""ELMo: two recurrent language models, one for each direction, whose states are word
vectors (Peters et al. 2018).

Other letters: D, features of a token and of each direction's state.

Each direction guesses the word that it is about to read. Both share the token embedding
and the output layer, and nothing else (section 3.1). A layer's output is projected to D
features; from the second layer on its input is added to it (section 3.4). The mix of
the layers, which a task learns, is `course_lib.embeddings.contextual.LayerMix`.

What this module does not do: build tokens from characters. The original does, so that
no word is unknown; here WordPiece takes care of that, and the models of the chapter
read the same pieces.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import check_boolean
from course_lib.embeddings.gpt import (
    LanguageModelBatch,
    check_right_padding,
    cross_entropy_sum,
    neighbour_labels,
)
from course_lib.transformer.heads import LanguageModelHead


@dataclass(frozen=True)
class ELMoConfig:
    """Sizes of an `ELMo`; the defaults are the paper's (section 3.4), but for the
    vocabulary.

    Parameters
    ----------
    vocab_size
        Tokens V.
    dim
        Features D of a token, and of a state of each direction: a word vector has twice
        as many.
    hidden_dim
        Cells of each LSTM. More than `dim`: their output is projected to `dim`
        features.
    num_layers
        LSTMs of each direction.
    dropout
        Share of features set to zero in training: of each LSTM's input.

    Raises
    ------
    ValueError
        If a size cannot be used.

    Examples
    --------
    >>> ELMoConfig(vocab_size=50, dim=8, hidden_dim=8).num_layers
    2
    """

    vocab_size: int
    dim: int = 512
    hidden_dim: int = 4096
    num_layers: int = 2
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("vocab_size", "dim", "hidden_dim", "num_layers"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be at least 1"
                )
        if self.hidden_dim < self.dim:
            raise ValueError(
                f"hidden_dim is {self.hidden_dim}, but the output is projected to"
                f" dim={self.dim} features or left as it is; choose hidden_dim at least"
                " as large"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(
                f"dropout is {self.dropout}; it is a share, at least 0 and below 1"
            )


class ELMoOutput(NamedTuple):
    """What an `ELMo` returns."""

    forward_states: tuple[Tensor, ...]
    backward_states: tuple[Tensor, ...]

    @property
    def hidden_states(self) -> tuple[Tensor, ...]:
        """Both directions side by side, layer by layer: ``(B, T, 2 D)`` each, the
        embeddings twice."""
        return tuple(
            torch.cat(pair, dim=-1)
            for pair in zip(self.forward_states, self.backward_states, strict=True)
        )


def reverse_within_length(
    sequences: Float[Tensor, "B T D"], attention_mask: Bool[Tensor, "B T"] | None
) -> Float[Tensor, "B T D"]:
    """Turn each sequence around and leave its padding where it is; done twice it
    changes nothing."""
    if attention_mask is None:
        return sequences.flip(1)
    check_boolean(attention_mask, "attention_mask", "token")
    places = torch.arange(sequences.shape[1], device=sequences.device)
    lengths = attention_mask.sum(dim=1, keepdim=True)  # (B, 1)
    places = torch.where(places < lengths, lengths - 1 - places, places)  # (B, T)
    return sequences.gather(1, places[:, :, None].expand_as(sequences))


class ELMo(nn.Module):
    """Two stacks of LSTMs over one embedding; the left reader guesses the next token,
    the right reader the one before.

    Parameters
    ----------
    config
        Sizes.

    Notes
    -----
    Peters et al. 2018, sections 3.1 and 3.4.

    Examples
    --------
    >>> model = ELMo(ELMoConfig(vocab_size=50, dim=8, hidden_dim=12))
    >>> output = model(torch.tensor([[2, 47, 3]]))
    >>> len(output.hidden_states), output.hidden_states[-1].shape
    (3, torch.Size([1, 3, 16]))
    """

    def __init__(self, config: ELMoConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.dim)
        # the output layer's too: logits of size 1
        nn.init.normal_(self.embedding.weight, std=config.dim**-0.5)
        self.forward_layers = _stack(config)
        self.backward_layers = _stack(config)
        self.dropout = nn.Dropout(config.dropout)
        self.output = LanguageModelHead(self.embedding)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
    ) -> ELMoOutput:
        """Read each sequence from both sides.

        Parameters
        ----------
        input_ids
            Padded on the right with any id.
        attention_mask
            True at tokens; None when nothing is padded. States at padding mean nothing.

        Returns
        -------
        ELMoOutput
            The states of both directions after each layer.

        Raises
        ------
        ValueError
            If the mask is not boolean, or padding stands before a token.
        """
        check_right_padding(attention_mask, "an RNN")
        # Scaled as the Transformer scales its embedding: inputs of variance 1 from rows
        # of length 1.
        hidden = self.embedding(input_ids) * self.config.dim**0.5
        turned = reverse_within_length(hidden, attention_mask)
        backward = [
            reverse_within_length(state, attention_mask)
            for state in self._read(self.backward_layers, turned)
        ]
        return ELMoOutput(
            tuple(self._read(self.forward_layers, hidden)), tuple(backward)
        )

    def _read(self, layers: nn.ModuleList, hidden: Tensor) -> list[Tensor]:
        """Read from the first position to the last; return what went in and what came
        out of each layer."""
        states = [hidden]
        for number, layer in enumerate(layers):
            output, _ = layer(self.dropout(hidden))
            # residual from the first layer's output on
            hidden = output if number == 0 else hidden + output
            states.append(hidden)
        return states


def _stack(config: ELMoConfig) -> nn.ModuleList:
    projection = config.dim if config.hidden_dim > config.dim else 0
    return nn.ModuleList(
        nn.LSTM(config.dim, config.hidden_dim, batch_first=True, proj_size=projection)
        for _ in range(config.num_layers)
    )


def elmo_loss_sum(
    model: nn.Module, batch: LanguageModelBatch
) -> tuple[Float[Tensor, ""], int]:
    """Return the sum of both directions' losses and the number of guesses, as
    `course_lib.training.loop.train` takes them."""
    output = model(batch.input_ids, batch.attention_mask)
    total, count = torch.zeros((), device=batch.input_ids.device), 0
    for states, forward in (
        (output.forward_states, True),
        (output.backward_states, False),
    ):
        positions, labels = neighbour_labels(batch, forward)
        head = model.output
        assert isinstance(head, nn.Module)
        total = total + cross_entropy_sum(head, states[-1], positions, labels)
        count += len(labels)
    return total, count
