"""A BERT three times with one set of weights: ours, that of `transformers`, and one
around `torch.nn`'s encoder.

Each is called as its users call it: `transformers` (attention "sdpa") gets labels and a
mask and scores all positions, as does the BERT of torch.nn; ours is told where tokens
are to be guessed, and gets no mask where nothing is padded.
"""

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import transformers
from side_by_side import TOLERANCES, Step, inference, precision
from torch import Tensor, nn

from course_lab.peers import gradient_pairs, peer
from course_lib.bert.model import BertForPreTraining
from course_lib.bert.weights import to_published
from course_lib.pretraining.batches import pretraining_loss
from course_lib.pretraining.masking import IGNORE

MASKED = 0.15


@dataclass
class Batch:
    """Sequences of two segments with a share of their tokens to be guessed; no text is
    needed to measure speed."""

    input_ids: Tensor
    token_type_ids: Tensor
    attention_mask: Tensor
    labels: Tensor
    pairs: Tensor
    padded: bool

    def __post_init__(self) -> None:
        flat = self.labels.flatten()
        self.positions = (flat != IGNORE).nonzero().flatten()
        self.masked_labels = flat[self.positions]

    @property
    def needed_mask(self) -> Tensor | None:
        """None where nothing is padded."""
        return self.attention_mask if self.padded else None


def make_batch(
    size: int, length: int, vocab: int, padded: bool, device: torch.device
) -> Batch:
    """Sequences of the full length, or of half to all of it."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1, vocab, (size, length), generator=generator)
    lengths = torch.linspace(length // 2 if padded else length, length, size).long()[
        :, None
    ]
    places = torch.arange(length)
    chosen = (
        (torch.rand(size, length, generator=generator) < MASKED)
        & (places > 0)
        & (places < lengths)
    )
    chosen[:, 1] = True  # not even the shortest sequences are without
    return Batch(
        ids.to(device),
        (places >= lengths // 2).long().to(device),
        (places < lengths).to(device),
        ids.masked_fill(~chosen, IGNORE).to(device),
        torch.randint(2, (size,), generator=generator).to(device),
        padded,
    )


class Ours:
    """Ours, told where tokens are to be guessed."""

    name = "ours"

    def __init__(self, model: BertForPreTraining):
        self.model = model

    def loss(self, batch: Batch) -> Tensor:
        output = self.model(
            batch.input_ids, batch.needed_mask, batch.token_type_ids, batch.positions
        )
        return pretraining_loss(*output, batch.masked_labels, batch.pairs)

    def states(self, batch: Batch) -> Tensor:
        return self.model.bert(
            batch.input_ids, batch.needed_mask, batch.token_type_ids
        ).last_hidden_state

    def gradients(self) -> dict[str, Tensor]:
        return to_published(
            {
                name: slope(parameter)
                for name, parameter in self.model.named_parameters()
            }
        )


class Transformers:
    """`transformers.BertForPreTraining` with our weights, and labels at all
    positions."""

    name = "transformers"

    def __init__(self, ours: BertForPreTraining):
        config = transformers.BertConfig(
            **dataclasses.asdict(ours.config), attn_implementation="sdpa"
        )
        self.model = transformers.BertForPreTraining(config)
        told = self.model.load_state_dict(to_published(ours.state_dict()), strict=False)
        if told.unexpected_keys or {
            name.split(".")[2] for name in told.missing_keys
        } - {"decoder"}:  # tied
            raise RuntimeError(f"transformers has other parameters than ours: {told}")
        self.model.to(next(ours.parameters()).device)

    def loss(self, batch: Batch) -> Tensor:
        mask = batch.attention_mask
        return self.model(
            batch.input_ids,
            mask,
            batch.token_type_ids,
            labels=batch.labels,
            next_sentence_label=batch.pairs,
        ).loss

    def states(self, batch: Batch) -> Tensor:
        return self.model.bert(
            batch.input_ids, batch.attention_mask, batch.token_type_ids
        ).last_hidden_state

    def gradients(self) -> dict[str, Tensor]:
        return {
            name: slope(parameter) for name, parameter in self.model.named_parameters()
        }


class Torch:
    """A BERT around `torch.nn.TransformerEncoder`, with copies of our embeddings and
    heads; it scores all positions."""

    name = "torch.nn"

    def __init__(self, ours: BertForPreTraining):
        self.model = copy.deepcopy(ours)
        self.blocks = ours.bert.blocks
        layers = [peer(block) for block in self.blocks]
        encoder = nn.TransformerEncoder(
            layers[0], len(layers), enable_nested_tensor=True
        )
        encoder.layers = nn.ModuleList(layers)
        self.model.bert.blocks = nn.ModuleList([encoder])

    def states(self, batch: Batch) -> Tensor:
        bert = self.model.bert
        (encoder,) = bert.blocks
        hidden = bert.embeddings(batch.input_ids, batch.token_type_ids)
        return encoder(
            hidden, src_key_padding_mask=~batch.attention_mask if batch.padded else None
        )

    def loss(self, batch: Batch) -> Tensor:
        hidden = self.states(batch)
        logits, pooled = self.model.mlm_head(hidden), self.model.bert.pooler(hidden)
        return pretraining_loss(
            logits, self.model.nsp_head(pooled), batch.labels, batch.pairs
        )

    def gradients(self) -> dict[str, Tensor]:
        (encoder,) = self.model.bert.blocks
        found = {
            name: slope(its)
            for name, its in self.model.named_parameters()
            if not name.startswith("bert.blocks")
        }
        for number, (mine, theirs) in enumerate(
            zip(self.blocks, encoder.layers, strict=True)
        ):
            found |= {
                f"bert.blocks.{number}.{name}": its
                for name, _, its in gradient_pairs(mine, theirs)
            }
        return to_published(found)


Side = Ours | Transformers | Torch
PEERS: dict[str, Callable[[BertForPreTraining], Side]] = {
    "transformers": Transformers,
    "torch.nn": Torch,
}


def slope(parameter: nn.Parameter) -> Tensor:
    """A parameter's gradient, which all of a BERT have."""
    if parameter.grad is None:
        raise RuntimeError("a parameter has no gradient: the loss does not reach it")
    return parameter.grad


def training_step(
    side: Side, batch: Batch, name: str, device: torch.device, optimizer: bool = False
) -> Step:
    """Forward, loss, backward; and, if asked, a step of the optimizer that both use."""
    adamw = (
        torch.optim.AdamW(side.model.parameters(), lr=1e-5, fused=True)
        if optimizer
        else None
    )

    def step() -> Tensor:
        side.model.zero_grad(set_to_none=True)
        with precision(name, device):
            loss = side.loss(batch)
        loss.backward()
        if adamw is not None:
            adamw.step()
        return loss.detach()

    return step


def check_same(
    ours: Side, theirs: Side, batch: Batch, name: str, device: torch.device
) -> None:
    """Refuse to compare the speed of two programs whose losses, gradients or final
    states differ, dropout aside.

    Gradients are compared as a whole, by the norm of the difference over the norm;
    states where there are tokens.
    """
    found = []
    for side in (ours, theirs):
        training = side.model.training
        side.model.eval()
        loss = training_step(side, batch, name, device)()
        states = inference(partial(side.states, batch), name, device)()[
            batch.attention_mask
        ]
        found.append(({"loss": loss, "final states": states}, side.gradients()))
        side.model.train(training)
    (one, slopes), (other, their_slopes) = found
    if slopes.keys() != their_slopes.keys():
        raise RuntimeError(
            f"ours and {theirs.name} have other parameters:"
            f" {slopes.keys() ^ their_slopes.keys()}"
        )
    for results, grads in ((one, slopes), (other, their_slopes)):
        results["gradient"] = torch.cat(
            [grads[parameter].flatten() for parameter in slopes]
        )
    for what in one:
        mine, its = one[what].float(), other[what].float()
        difference = float((mine - its).norm() / its.norm())
        if not difference <= TOLERANCES[name]:
            raise RuntimeError(
                f"{what}: ours and {theirs.name} differ by {difference:.2g} in {name};"
                " a ratio would mean nothing"
            )
