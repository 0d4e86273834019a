"""Encoder, decoder and Transformer: seconds of `torch.nn`'s modules divided by ours.

Equal weights, shapes, masks and dropout; `side_by_side` says how it is timed.
Embeddings, positions and the output layer, which torch.nn leaves to you, are the same
code in both. In inference torch's encoder leaves padding out of all that it computes,
so the encoder is measured without padding too.

    python benchmarks/transformer.py [--rounds 60] [--record]
"""

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import torch
from side_by_side import Contest, race_all, read_settings, save, setting, show_races
from torch import Tensor, nn

from course_lab.peers import peer
from course_lib.attention.masks import causal_mask, padding_mask
from course_lib.training.cpu import speed_up
from course_lib.training.loop import set_seed
from course_lib.transformer.model import Transformer, TransformerConfig


@dataclass(frozen=True)
class Settings:
    """What is measured."""

    batch: int = setting(16, "sentence pairs in a batch")
    length: int = setting(
        48, "words in the longest source; targets are three quarters as long"
    )
    vocab: int = setting(1000, "words in each vocabulary")
    dim: int = setting(256, "features")
    heads: int = setting(8, "heads, each of dim / heads features")
    layers: int = setting(2, "blocks on each side")
    hidden_dim: int = setting(1024, "features between the layers of each feed-forward")
    rounds: int = setting(60, "times that each of both is timed")
    threads: int = setting(1, "threads of the CPU")


@dataclass
class Batch:
    """Padded sentences."""

    source_ids: Tensor
    source_lengths: Tensor
    target_ids: Tensor
    full: bool  # whether all sources are of the same length

    def source_mask(self) -> Tensor | None:
        """True at words; None where there is nothing but words."""
        return (
            None
            if self.full
            else padding_mask(self.source_lengths, self.source_ids.shape[1])
        )


class OurEncoder(nn.Module):
    """Our encoder, on padded sentences."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.encoder = model.encoder

    def forward(self, batch: Batch) -> Tensor:
        mask = batch.source_mask()
        return self.encoder(batch.source_ids, None if mask is None else mask[:, None])


class TheirEncoder(nn.Module):
    """torch's encoder behind a copy of our embeddings."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.embed = deepcopy(model.encoder.embed)
        self.encoder = peer(model.encoder)

    def forward(self, batch: Batch) -> Tensor:
        mask = batch.source_mask()
        return self.encoder(
            self.embed(batch.source_ids),
            src_key_padding_mask=None if mask is None else ~mask,
        )


class OurDecoder(nn.Module):
    """Our decoder blocks; the source's embeddings stand for the encoder's output."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.memory, self.embed, self.blocks = (
            model.encoder.embed,
            model.embed,
            model.blocks,
        )

    def forward(self, batch: Batch) -> Tensor:
        mask = padding_mask(batch.source_lengths, batch.source_ids.shape[1])[:, None]
        memory, hidden = self.memory(batch.source_ids), self.embed(batch.target_ids)
        for block in self.blocks:
            hidden = block(hidden, memory, mask)
        return hidden


class TheirDecoder(nn.Module):
    """torch's decoder behind a copy of our embeddings."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.memory, self.embed = deepcopy(model.encoder.embed), deepcopy(model.embed)
        self.decoder = peer(model).decoder

    def forward(self, batch: Batch) -> Tensor:
        mask = padding_mask(batch.source_lengths, batch.source_ids.shape[1])
        return self.decoder(
            self.embed(batch.target_ids),
            self.memory(batch.source_ids),
            tgt_mask=~causal_mask(batch.target_ids.shape[1], mask.device),
            tgt_is_causal=True,
            memory_key_padding_mask=~mask,
        )


class OurTransformer(nn.Module):
    """Ours, from ids to logits."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> Tensor:
        return self.model(batch.source_ids, batch.source_lengths, batch.target_ids)


class TheirTransformer(nn.Module):
    """torch's, between copies of our embeddings and output layer."""

    def __init__(self, model: Transformer):
        super().__init__()
        # One copy of all three, so that what is tied in ours is tied here.
        copies = deepcopy(
            nn.ModuleList([model.encoder.embed, model.embed, model.output])
        )
        self.embed_source, self.embed_target, self.output = copies
        self.transformer = peer(model)

    def forward(self, batch: Batch) -> Tensor:
        mask = padding_mask(batch.source_lengths, batch.source_ids.shape[1])
        hidden = self.transformer(
            self.embed_source(batch.source_ids),
            self.embed_target(batch.target_ids),
            tgt_mask=~causal_mask(batch.target_ids.shape[1], mask.device),
            tgt_is_causal=True,
            src_key_padding_mask=~mask,
            memory_key_padding_mask=~mask,
        )
        return self.output(hidden)


Module = Callable[[Transformer], nn.Module]
MODULES: dict[str, tuple[Module, Module]] = {
    "encoder": (OurEncoder, TheirEncoder),
    "encoder, no padding": (OurEncoder, TheirEncoder),
    "decoder": (OurDecoder, TheirDecoder),
    "Transformer": (OurTransformer, TheirTransformer),
}


def make_batch(settings: Settings, full: bool, device: torch.device) -> Batch:
    """Sentences of a quarter to the whole of the greatest length, or all of the
    greatest."""
    generator = torch.Generator().manual_seed(0)
    size, longest = settings.batch, settings.length
    return Batch(
        torch.randint(settings.vocab, (size, longest), generator=generator).to(device),
        torch.linspace(longest if full else longest // 4, longest, size)
        .long()
        .to(device),
        torch.randint(settings.vocab, (size, 3 * longest // 4), generator=generator).to(
            device
        ),
        full,
    )


def make_contest(
    settings: Settings, what: str, dropout: float, training: bool, device: torch.device
) -> Contest:
    """A part of one model and torch's of the same weights, on one batch."""
    batch = make_batch(settings, what == "encoder, no padding", device)
    model = make_model(settings, dropout).to(device).train(training)
    ours, theirs = (make(deepcopy(model)) for make in MODULES[what])
    # In inference torch leaves zeros at padding, which nothing reads.
    words = padding_mask(batch.source_lengths) if what == "encoder" else None
    return Contest(ours, theirs, partial(ours, batch), partial(theirs, batch), words)


def make_model(settings: Settings, dropout: float) -> Transformer:
    """The whole model, of which a part may be measured."""
    set_seed(0)
    config = TransformerConfig(
        source_vocab=settings.vocab,
        target_vocab=settings.vocab,
        dim=settings.dim,
        num_heads=settings.heads,
        num_layers=settings.layers,
        hidden_dim=settings.hidden_dim,
        dropout=dropout,
    )
    return speed_up(Transformer(config))


def main(words: Sequence[str] | None = None) -> None:
    settings, record = read_settings(Settings, words, __doc__)
    warnings.filterwarnings(
        "ignore", "The PyTorch API of nested tensors is in prototype stage"
    )  # torch uses its own
    torch.set_num_threads(settings.threads)
    rows = race_all(list(MODULES), partial(make_contest, settings), settings.rounds)
    show_races(
        f"Transformer, {settings.rounds} rounds, {settings.threads} thread(s)", rows
    )
    if record:
        save("benchmark-transformer", settings, rows)


if __name__ == "__main__":
    main()
