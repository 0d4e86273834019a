"""ModernBERT: BERT's encoder with what was learnt about Transformers in six years
(Warner et al. 2024).

Other letters: N, tokens of a whole batch.

It is called as :class:`course_lib.bert.model.BertModel` is. What is not here: kernels
that skip the zeros of a block-diagonal mask, which is what makes unpadding fast.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.layers import MaskedLanguageModelHead, check_inputs, initialise
from course_lib.bert.model import BertOutput
from course_lib.family.distilbert import DistilBertForMaskedLM
from course_lib.modern.layers import PreNormBlock, local_mask
from course_lib.transformer.positions import sinusoidal_positions


@dataclass(frozen=True)
class ModernBertConfig(BertConfig):
    """Sizes and choices of a ModernBERT; the defaults are those of the published base
    model (Warner et al. 2024, table 4).

    Parameters
    ----------
    local_attention
        The window of a layer with local attention, as in `local_mask`.
    global_attn_every_n_layers
        Of so many layers the first attends to the whole text, the others locally.
    global_rope_theta, local_rope_theta
        The base of the rotary positions in the two kinds of layers.

    Raises
    ------
    ValueError
        If a setting cannot be used.

    Notes
    -----
    The other settings are `BertConfig`'s. There are no segments; dropout, 0 as
    published, acts on the embeddings and within GeGLU, and on attention weights.

    Examples
    --------
    >>> ModernBertConfig.base().num_hidden_layers, ModernBertConfig.large().hidden_size
    (22, 1024)
    """

    vocab_size: int = 50_368
    num_hidden_layers: int = 22
    intermediate_size: int = 1152
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 8192
    layer_norm_eps: float = 1e-5
    pad_token_id: int | None = 50_283
    local_attention: int = 128
    global_attn_every_n_layers: int = 3
    global_rope_theta: float = 160_000.0
    local_rope_theta: float = 10_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        thetas = (self.global_rope_theta, self.local_rope_theta)
        if min(self.local_attention, self.global_attn_every_n_layers, *thetas) < 1:
            raise ValueError("local_attention, layers and thetas must be at least 1")
        if self.hidden_act != "gelu":
            raise ValueError(f"hidden_act is {self.hidden_act!r}; GeGLU knows 'gelu'")

    def is_global(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, attends to the whole text."""
        return layer % self.global_attn_every_n_layers == 0

    @classmethod
    def base(cls, **changes: Any) -> "ModernBertConfig":
        """L=22, H=768, A=12: 149 million parameters."""
        return cls(**changes)

    @classmethod
    def large(cls, **changes: Any) -> "ModernBertConfig":
        """L=28, H=1024, A=16: 395 million parameters."""
        shape = {"num_hidden_layers": 28, "hidden_size": 1024}
        shape |= {"num_attention_heads": 16, "intermediate_size": 2624}
        return cls(**(shape | changes))


class Joined(NamedTuple):
    """The sequences of a batch, one behind the other in a single row."""

    input_ids: Int[Tensor, "1 N"]
    positions: Int[Tensor, "1 N"]
    mask: Bool[Tensor, "1 N N"]


def unpad(input_ids: Int[Tensor, "B T"], attention_mask: Bool[Tensor, "B T"]) -> Joined:
    """Join the sequences of a batch into one, so that no position is padding.

    Parameters
    ----------
    input_ids
        Padded, on either side.
    attention_mask
        True at tokens, False at padding.

    Returns
    -------
    Joined
        The tokens, the place of each in its own sequence, and a block-diagonal mask:
        True within a sequence. The layers save the padding's share; attention that
        stores a weight for each pair costs N², more than B · T² if little is padded.

    Notes
    -----
    Warner et al. 2024, section 2.1.2, "unpadding"; Zeng et al. 2022.

    Examples
    --------
    >>> joined = unpad(
    ...     torch.tensor([[5, 7, 8], [6, 0, 0]]),
    ...     torch.tensor([[True, True, True], [True, False, False]]),
    ... )
    >>> joined.input_ids.tolist(), joined.positions.tolist()
    ([[5, 7, 8, 6]], [[0, 1, 2, 0]])
    >>> joined.mask[0].int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 0],
            [1, 1, 1, 0],
            [0, 0, 0, 1]], dtype=torch.int32)
    """
    sequence, position = attention_mask.nonzero(as_tuple=True)  # (N), (N)
    same = sequence[:, None] == sequence[None]  # (N, N)
    return Joined(input_ids[attention_mask][None], position[None], same[None])


def pad_again(
    hidden: Float[Tensor, "1 N D"], attention_mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T D"]:
    """Put the states of joined sequences back into their rows, and 0 at padding."""
    padded = hidden.new_zeros(*attention_mask.shape, hidden.shape[-1])
    padded[attention_mask] = hidden[0]  # (N, D) -> (B, T, D)
    return padded


class ModernBertModel(nn.Module):
    """The encoder: a vector for each token, from layers of which most look at near
    tokens only.

    Parameters
    ----------
    config
        Sizes and choices.
    unpadded
        Whether padded batches are joined by `unpad` first; the states of tokens are the
        same.

    Notes
    -----
    Warner et al. 2024, section 2.1. There is no pooler: what stands in its place is the
    state of [CLS], as it is.

    Examples
    --------
    >>> config = ModernBertConfig.tiny(vocab_size=50, pad_token_id=0)
    >>> output = ModernBertModel(config).eval()(torch.tensor([[2, 47, 3]]))
    >>> output.last_hidden_state.shape, output.pooler_output.shape
    (torch.Size([1, 3, 128]), torch.Size([1, 128]))
    """

    def __init__(self, config: ModernBertConfig, unpadded: bool = False):
        super().__init__()
        self.config, self.unpadded = config, unpadded
        dim, eps = config.hidden_size, config.layer_norm_eps
        token = nn.Embedding(config.vocab_size, dim, padding_idx=config.pad_token_id)
        norm = nn.LayerNorm(dim, eps, bias=False)
        dropout = nn.Dropout(config.hidden_dropout_prob)
        self.embeddings = nn.Sequential(
            OrderedDict(token=token, norm=norm, dropout=dropout)
        )
        options = (config.num_attention_heads, config.intermediate_size)
        dropouts = (config.hidden_dropout_prob, config.attention_probs_dropout_prob)
        self.blocks = nn.ModuleList(
            PreNormBlock(dim, *options, *dropouts, eps, first=layer == 0)
            for layer in range(config.num_hidden_layers)
        )
        self.final_norm = nn.LayerNorm(dim, eps, bias=False)
        self.apply(lambda module: initialise(module, config.initializer_range))
        for name, weight in self.named_parameters():  # what is added to the states
            if name.endswith(("attention.output.weight", "contract.weight")):
                weight.data /= (2 * config.num_hidden_layers) ** 0.5

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
        return_hidden_states: bool = False,
    ) -> BertOutput:
        """Encode a batch of token sequences; arguments as in `BertModel`, but
        `token_type_ids` have no part in it."""
        check_inputs(self.config, input_ids, attention_mask, token_type_ids)
        if attention_mask is not None and self.unpadded:
            joined = self.encode(*unpad(input_ids, attention_mask))
            states = [pad_again(hidden, attention_mask) for hidden in joined]
        else:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
            mask = None
            if attention_mask is not None:
                # padding sees itself, far from any token too
                mask = attention_mask[:, None] | local_mask(positions, window=0)
            states = self.encode(input_ids, positions, mask)
        every = tuple(states) if return_hidden_states else None
        return BertOutput(states[-1], states[-1][:, 0], every)

    def encode(
        self,
        input_ids: Int[Tensor, "B T"],
        positions: Int[Tensor, "#B T"],
        mask: Bool[Tensor, "#B T T"] | None,
    ) -> list[Float[Tensor, "B T D"]]:
        """Return the states of all layers, the last of which are normalised."""
        config = self.config
        near = local_mask(positions, config.local_attention)  # (B, T, T)
        near = near if mask is None else near & mask
        length = int(positions.max()) + 1
        dim = config.hidden_size // config.num_attention_heads
        far_waves, near_waves = (
            sinusoidal_positions(length, dim, base).to(positions.device)[positions]
            for base in (config.global_rope_theta, config.local_rope_theta)
        )
        states = [self.embeddings(input_ids)]
        for layer, block in enumerate(self.blocks):
            seen = (far_waves, mask) if config.is_global(layer) else (near_waves, near)
            states.append(block(states[-1], *seen))
        return [*states[:-1], self.final_norm(states[-1])]


class ModernBertForMaskedLM(nn.Module):
    """A `ModernBertModel` with the head that predicts tokens, and no other: it is not
    asked about the next sentence (Warner et al. 2024, section 2.2)."""

    def __init__(self, config: ModernBertConfig, unpadded: bool = False):
        super().__init__()
        self.config = config
        self.bert = ModernBertModel(config, unpadded)
        token: Any = self.bert.embeddings.token
        self.mlm_head = MaskedLanguageModelHead(config, token)
        dim, eps = config.hidden_size, config.layer_norm_eps
        self.mlm_head.dense = nn.Linear(dim, dim, bias=False)
        self.mlm_head.norm = nn.LayerNorm(dim, eps, bias=False)
        self.mlm_head.apply(lambda module: initialise(module, config.initializer_range))

    forward = DistilBertForMaskedLM.forward
