"""What each position may see: BERT, GPT and ELMo side by side, by gradients and by
changing a word (chapter 5).

Untrained models, since what a position *can* depend on is decided by how a model is
wired; three seeds show it. All arithmetic is in float64, and a dependence that is not
there is a gradient of exactly 0: a weight that a mask forbids is 0, and a word that a
recurrent layer has not read yet does not exist for it.

Dimension letters::

    N  layers     T  positions (outputs)     S  positions (inputs)     D  features of an input     _  units of a state
"""  # noqa: E501

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.training.loop import set_seed
from course_lib.transformer.blocks import EncoderBlock, FeedForward

#: Maps the input vectors of one sentence to the states of each layer, the lowest first.
Encoder = Callable[[Tensor], Tensor]


class Blocks(nn.Module):
    """Transformer blocks, with a causal mask (GPT) or without one (BERT)."""

    def __init__(self, dim: int, num_heads: int, num_layers: int, causal: bool):
        super().__init__()
        self.blocks = nn.ModuleList(
            EncoderBlock(dim, num_heads, hidden_dim=4 * dim, activation="gelu")
            for _ in range(num_layers)
        )
        self.causal = causal

    def forward(self, inputs: Float[Tensor, "S D"]) -> Float[Tensor, "N S _"]:
        """Return the states after each block."""
        states, hidden = [], inputs[None]
        for block in self.blocks:
            hidden = block(hidden, causal=self.causal)
            states.append(hidden[0])
        return torch.stack(states)


class BidirectionalLSTM(nn.Module):
    """Two recurrent language models of their own, one each way, side by side (Peters et
    al. 2018, section 3.1)."""

    def __init__(self, dim: int, num_layers: int):
        super().__init__()
        self.forward_layers, self.backward_layers = (
            nn.ModuleList(
                nn.LSTM(dim, dim, batch_first=True) for _ in range(num_layers)
            )
            for _ in range(2)
        )

    def forward(self, inputs: Float[Tensor, "S D"]) -> Float[Tensor, "N S _"]:
        """Return the states of both directions after each layer, 2 D units in a
        state."""
        halves = []
        for layers, hidden in (
            (self.forward_layers, inputs),
            (self.backward_layers, inputs.flip(0)),
        ):
            states = []
            for layer in layers:
                hidden, _ = layer(hidden)
                states.append(hidden)
            halves.append(torch.stack(states))
        return torch.cat([halves[0], halves[1].flip(1)], dim=-1)


class PositionWise(nn.Module):
    """The control: feed-forward layers alone, which let nothing pass between
    positions."""

    def __init__(self, dim: int, num_layers: int):
        super().__init__()
        self.layers = nn.ModuleList(
            FeedForward(dim, 4 * dim, activation="gelu") for _ in range(num_layers)
        )

    def forward(self, inputs: Float[Tensor, "S D"]) -> Float[Tensor, "N S _"]:
        """Return the states after each layer."""
        states = []
        for layer in self.layers:
            inputs = inputs + layer(inputs)
            states.append(inputs)
        return torch.stack(states)


def make_encoders(
    seed: int, dim: int = 12, num_heads: int = 3, num_layers: int = 2
) -> dict[str, nn.Module]:
    """Return the untrained models that are compared, in float64; BERT's and GPT's
    weights are the same."""
    set_seed(seed)
    bert, gpt = (Blocks(dim, num_heads, num_layers, causal) for causal in (False, True))
    gpt.load_state_dict(bert.state_dict())
    models = {
        "BERT": bert,
        "GPT": gpt,
        "ELMo": BidirectionalLSTM(dim, num_layers),
        "no attention": PositionWise(dim, num_layers),
    }
    return {name: model.double().eval() for name, model in models.items()}


def by_gradient(
    encoder: Encoder, inputs: Float[Tensor, "S D"]
) -> Bool[Tensor, "N T _ S"]:
    """Say for each unit of each state which inputs it depends on: those with a gradient
    that is not exactly 0."""
    jacobian = torch.autograd.functional.jacobian(
        encoder, inputs
    )  # (N, T, units, S, D)
    return (jacobian != 0).any(dim=-1)


def by_change(
    encoder: Encoder, inputs: Float[Tensor, "S D"], others: Float[Tensor, "S D"]
) -> Bool[Tensor, "N T _ S"]:
    """Say the same by experiment: replace one input by another vector, and see which
    units change at all."""
    with torch.no_grad():
        before, changed = encoder(inputs), []
        for place in range(len(inputs)):
            replaced = inputs.clone()
            replaced[place] = others[place]
            changed.append(encoder(replaced) != before)  # (N, T, units)
    return torch.stack(changed, dim=-1)


def both_sides(depends: Bool[Tensor, "N T _ S"]) -> list[float]:
    """Return for each layer the share of units that depend on a word to the left and on
    one to the right."""
    length = depends.shape[1]
    shares = []
    for layer in depends:
        units = [
            layer[t, :, :t].any(dim=-1) & layer[t, :, t + 1 :].any(dim=-1)  # (units)
            for t in range(1, length - 1)
        ]
        shares.append(torch.stack(units).double().mean().item())
    return shares


def measure(
    seeds: Sequence[int], length: int = 5, dim: int = 12
) -> dict[str, list[Bool[Tensor, "N T _ S"]]]:
    """Measure each model with each seed, both ways."""
    found: dict[str, list[Tensor]] = {}
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        inputs, others = (
            torch.randn(length, dim, generator=generator, dtype=torch.float64)
            for _ in range(2)
        )
        for name, encoder in make_encoders(seed, dim).items():
            depends = by_gradient(encoder, inputs)
            if not torch.equal(depends, by_change(encoder, inputs, others)):
                raise RuntimeError(
                    f"{name}, seed {seed}: a word whose gradient is 0 changes a unit,"
                    " or the other way round"
                )
            found.setdefault(name, []).append(depends)
    return found


def connections(
    depends: Mapping[str, Sequence[Bool[Tensor, "N T _ S"]]],
) -> dict[str, Bool[Tensor, "T S"]]:
    """Return of each state of the first layer which words it depends on, with the first
    seed; ELMo's halves apart."""
    first = {name: of_model[0][0] for name, of_model in depends.items()}
    half = first["ELMo"].shape[1] // 2
    return {
        "BERT": first["BERT"].any(dim=1),
        "GPT": first["GPT"].any(dim=1),
        "ELMo, forward": first["ELMo"][:, :half].any(dim=1),
        "ELMo, backward": first["ELMo"][:, half:].any(dim=1),
    }
