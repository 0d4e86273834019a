"""BERT's training step and inference: seconds of `transformers`, and of a BERT around `torch.nn`'s encoder, over ours.

Equal weights, equal batches, equal dropout; before anything is timed, losses, gradients and final states are compared.
Each is run as its users run it. `transformers` (attention "sdpa") gets labels and a mask and scores all positions, as
does the BERT of torch.nn. Ours gets the masked positions, and no mask where nothing is padded: it is faster for what it
leaves out, and these are the rows "training step" (forward, loss, backward) and "with optimizer" (and AdamW, fused).

"ladder" goes from there to our fastest, one switch after the other, each held against `transformers` as it comes: in
single precision, with dropout. Its rows "transformers, ..." give the same switches to `transformers`, where it has them.

On a GPU base runs at `--cuda-length` in batches of `--cuda-batch`, and each row tells our share of its matrix rate.

    OMP_NUM_THREADS=2 python benchmarks/bert.py [--rounds 11] [--record]
"""

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
import transformers
from side_by_side import PRECISIONS, TOLERANCES, Step, devices, inference, precision, race, read_settings, save, setting
from side_by_side import show as show_table
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from tqdm import tqdm

from course_lib.bert import BertForPreTraining
from course_lib.bert_config import BertConfig
from course_lib.bert_weights import to_published
from course_lib.experiments.pretrain_cost import matrix_rate
from course_lib.experiments.torch_peers import parameter_pairs, peer
from course_lib.masked_language_model import IGNORE
from course_lib.pretraining import pretraining_loss
from course_lib.training import set_seed

DROPOUT = 0.1  # of Devlin et al. 2019, and of a transformers.BertConfig that is not told otherwise
MASKED = 0.15
LADDER_SIZES = ("tiny", "mini")


@dataclass(frozen=True)
class Settings:
    """What is measured."""

    sizes: tuple[str, ...] = setting(("tiny", "mini", "base"), "sizes of the model")
    length: int = setting(128, "tokens of the longest sequence")
    vocab: int = setting(8192, "tokens in the vocabulary of tiny and mini, which the course trains")
    base_vocab: int = setting(30522, "tokens in that of base, as published")
    tiny_batch: int = setting(16, "sequences in a batch of tiny")
    mini_batch: int = setting(8, "of mini")
    base_batch: int = setting(2, "of base")
    cuda_length: int = setting(512, "tokens of the longest sequence on a GPU")
    cuda_batch: int = setting(64, "sequences in a batch on a GPU")
    rounds: int = setting(11, "times that each of both is timed")
    base_rounds: int = setting(5, "times that each of both is timed at base, on a CPU")
    ladder_rounds: int = setting(11, "times that each of both is timed on the ladder; 0 leaves it out")
    threads: int = setting(2, "threads of the CPU")


@dataclass
class Batch:
    """Sequences of two segments with a share of their tokens to be guessed; no text is needed to measure speed."""

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


def make_batch(size: int, length: int, vocab: int, padded: bool, device: torch.device) -> Batch:
    """Sequences of the full length, or of half to all of it."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1, vocab, (size, length), generator=generator)
    lengths = torch.linspace(length // 2 if padded else length, length, size).long()[:, None]
    places = torch.arange(length)
    chosen = (torch.rand(size, length, generator=generator) < MASKED) & (places > 0) & (places < lengths)
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
        output = self.model(batch.input_ids, batch.needed_mask, batch.token_type_ids, batch.positions)
        return pretraining_loss(*output, batch.masked_labels, batch.pairs)

    def states(self, batch: Batch) -> Tensor:
        return self.model.bert(batch.input_ids, batch.needed_mask, batch.token_type_ids).last_hidden_state

    def gradients(self) -> dict[str, Tensor]:
        return to_published({name: slope(parameter) for name, parameter in self.model.named_parameters()})


class Transformers:
    """`transformers.BertForPreTraining` with our weights, and labels at all positions."""

    name = "transformers"

    def __init__(self, ours: BertForPreTraining):
        config = transformers.BertConfig(**dataclasses.asdict(ours.config), attn_implementation="sdpa")
        self.model = transformers.BertForPreTraining(config)
        told = self.model.load_state_dict(to_published(ours.state_dict()), strict=False)
        if told.unexpected_keys or {name.split(".")[2] for name in told.missing_keys} - {"decoder"}:  # tied
            raise RuntimeError(f"transformers has other parameters than ours: {told}")
        self.model.to(next(ours.parameters()).device)

    def loss(self, batch: Batch) -> Tensor:
        mask = batch.attention_mask
        return self.model(
            batch.input_ids, mask, batch.token_type_ids, labels=batch.labels, next_sentence_label=batch.pairs
        ).loss

    def states(self, batch: Batch) -> Tensor:
        return self.model.bert(batch.input_ids, batch.attention_mask, batch.token_type_ids).last_hidden_state

    def gradients(self) -> dict[str, Tensor]:
        return {name: slope(parameter) for name, parameter in self.model.named_parameters()}


class Torch:
    """A BERT around `torch.nn.TransformerEncoder`, with copies of our embeddings and heads, and all positions scored."""

    name = "torch.nn"

    def __init__(self, ours: BertForPreTraining):
        self.model = copy.deepcopy(ours)
        self.blocks = ours.bert.blocks
        layers = [peer(block) for block in self.blocks]
        encoder = nn.TransformerEncoder(layers[0], len(layers), enable_nested_tensor=True)
        encoder.layers = nn.ModuleList(layers)
        self.model.bert.blocks = nn.ModuleList([encoder])

    def states(self, batch: Batch) -> Tensor:
        bert = self.model.bert
        (encoder,) = bert.blocks
        hidden = bert.embeddings(batch.input_ids, batch.token_type_ids)
        return encoder(hidden, src_key_padding_mask=~batch.attention_mask if batch.padded else None)

    def loss(self, batch: Batch) -> Tensor:
        hidden = self.states(batch)
        logits, pooled = self.model.mlm_head(hidden), self.model.bert.pooler(hidden)
        return pretraining_loss(logits, self.model.nsp_head(pooled), batch.labels, batch.pairs)

    def gradients(self) -> dict[str, Tensor]:
        (encoder,) = self.model.bert.blocks
        found = {name: slope(its) for name, its in self.model.named_parameters() if not name.startswith("bert.blocks")}
        for number, (mine, theirs) in enumerate(zip(self.blocks, encoder.layers, strict=True)):
            pairs = parameter_pairs(mine, theirs)
            found |= {f"bert.blocks.{number}.{name}": slope(its) for name, _, its in pairs}
        return to_published(found)


Side = Ours | Transformers | Torch
PEERS: dict[str, Callable[[BertForPreTraining], Side]] = {"transformers": Transformers, "torch.nn": Torch}


def slope(parameter: nn.Parameter) -> Tensor:
    """A parameter's gradient, which all of a BERT have."""
    if parameter.grad is None:
        raise RuntimeError("a parameter has no gradient: the loss does not reach it")
    return parameter.grad


def make_ours(settings: Settings, size: str, dropout: float, device: torch.device) -> BertForPreTraining:
    set_seed(0)
    vocab = settings.base_vocab if size == "base" else settings.vocab
    config: BertConfig = getattr(BertConfig, size)(
        vocab_size=vocab, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
    )
    return BertForPreTraining(config).to(device)


def batch_of(settings: Settings, size: str, padded: bool, device: torch.device) -> Batch:
    vocab = settings.base_vocab if size == "base" else settings.vocab
    if device.type == "cuda":
        return make_batch(settings.cuda_batch, settings.cuda_length, vocab, padded, device)
    return make_batch(getattr(settings, f"{size}_batch"), settings.length, vocab, padded, device)


def training_step(side: Side, batch: Batch, name: str, device: torch.device, optimizer: bool = False) -> Step:
    """Forward, loss, backward; and, if asked, a step of the optimizer that both use."""
    adamw = torch.optim.AdamW(side.model.parameters(), lr=1e-5, fused=True) if optimizer else None

    def step() -> Tensor:
        side.model.zero_grad(set_to_none=True)
        with precision(name, device):
            loss = side.loss(batch)
        loss.backward()
        if adamw is not None:
            adamw.step()
        return loss.detach()

    return step


def check_same(ours: Side, theirs: Side, batch: Batch, name: str, device: torch.device) -> None:
    """Refuse to compare the speed of two programs whose losses, gradients or final states differ, dropout aside.

    Gradients are compared as a whole, by the norm of the difference over the norm; states where there are tokens.
    """
    found = []
    for side in (ours, theirs):
        training = side.model.training
        side.model.eval()
        loss = training_step(side, batch, name, device)()
        states = inference(partial(side.states, batch), name, device)()[batch.attention_mask]
        found.append(({"loss": loss, "final states": states}, side.gradients()))
        side.model.train(training)
    (one, slopes), (other, their_slopes) = found
    if slopes.keys() != their_slopes.keys():
        raise RuntimeError(f"ours and {theirs.name} have other parameters: {slopes.keys() ^ their_slopes.keys()}")
    for results, grads in ((one, slopes), (other, their_slopes)):
        results["gradient"] = torch.cat([grads[parameter].flatten() for parameter in slopes])
    for what in one:
        mine, its = one[what].float(), other[what].float()
        difference = float((mine - its).norm() / its.norm())
        if not difference <= TOLERANCES[name]:
            raise RuntimeError(
                f"{what}: ours and {theirs.name} differ by {difference:.2g} in {name}; a ratio would mean nothing"
            )


#: What is raced against which peer: mode, and the share of dropout.
RACES = {
    "transformers": (
        ("inference", 0.0),
        ("training step", 0.0),
        ("training step", DROPOUT),
        ("with optimizer", DROPOUT),
    ),
    "torch.nn": (("inference", 0.0), ("training step", DROPOUT)),
}


def race_peers(settings: Settings, device: torch.device, name: str) -> Iterator[dict[str, Any]]:
    """Race ours against each peer, at each size, in each mode, with padding and without."""
    rate = matrix_rate(device, torch.bfloat16 if name == "bf16" else torch.float32) if device.type == "cuda" else None
    for size, peer_name, padded in product(settings.sizes, PEERS, (False, True)):
        batch = batch_of(settings, size, padded, device)
        checked = False
        for mode, dropout in RACES[peer_name]:
            ours = Ours(make_ours(settings, size, dropout, device))
            theirs = PEERS[peer_name](ours.model)
            if not checked:
                check_same(ours, theirs, batch, name, device)
                checked = True
            steps = [steps_of(side, mode, batch, name, device) for side in (ours, theirs)]
            few = size == "base" and device.type == "cpu"
            row = {
                "device": device.type,
                "precision": name,
                "what": peer_name,
                "size": size,
                "mode": mode,
                "dropout": dropout,
                "batch": "padded" if padded else "full",
                **race(steps[0], steps[1], device, settings.base_rounds if few else settings.rounds),
            }
            if rate is not None:
                row["utilisation"] = operations(steps[0]) / (row["milliseconds"] / 1000) / rate
            yield row


def steps_of(side: Side, mode: str, batch: Batch, name: str, device: torch.device) -> Step:
    """What is timed of one side."""
    side.model.train(mode != "inference")
    if mode == "inference":
        return inference(partial(side.states, batch), name, device)
    return training_step(side, batch, name, device, optimizer=mode == "with optimizer")


def operations(step: Step) -> int:
    """Floating-point operations of the matrix products that one call makes."""
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


@dataclass(frozen=True)
class Switches:
    """What a rung of the ladder has switched on; none of it: what `transformers` does as it comes."""

    masked_logits: bool = False  # logits at masked positions only
    last_layer: bool = False  # and the last layer's feed-forward
    no_mask: bool = False  # where nothing is padded
    dropout: float = DROPOUT
    bf16: bool = False
    fused: bool = True  # attention; False: written out
    compiled: bool = False

    @property
    def precision(self) -> str:
        return PRECISIONS[self.bf16]


LADDER: dict[str, dict[str, Any]] = {
    "ours, nothing switched on": {},
    "logits at masked positions only": {"masked_logits": True},
    "last feed-forward there only": {"last_layer": True},
    "no mask when nothing is padded": {"no_mask": True},
    "dropout 0": {"dropout": 0.0},
    "bf16 autocast": {"bf16": True},
    "attention written out": {"fused": False},
    "torch.compile": {"compiled": True},
}
THEIR_LADDER: dict[str, dict[str, Any]] = {
    "transformers, dropout 0": {"dropout": 0.0},
    "transformers, bf16 autocast": {"bf16": True},
}


class Rung(Ours):
    """Ours, with some of its switches on."""

    def __init__(self, model: BertForPreTraining, switches: Switches):
        super().__init__(model)
        self.switches = switches
        for block in model.bert.blocks:
            block.attention.fused = switches.fused
        self.call = torch.compile(self._output) if switches.compiled else self._output

    def _output(self, batch: Batch) -> tuple[Tensor, Tensor]:
        mask = batch.needed_mask if self.switches.no_mask else batch.attention_mask
        if self.switches.last_layer:
            return self.model(batch.input_ids, mask, batch.token_type_ids, batch.positions)
        hidden, pooled, *_ = self.model.bert(batch.input_ids, mask, batch.token_type_ids)
        if self.switches.masked_logits:
            hidden = hidden.flatten(0, 1).index_select(0, batch.positions)
        return self.model.mlm_head(hidden), self.model.nsp_head(pooled)

    def loss(self, batch: Batch) -> Tensor:
        labels = batch.masked_labels if self.switches.masked_logits else batch.labels
        return pretraining_loss(*self.call(batch), labels, batch.pairs)


def climb(settings: Settings, device: torch.device, rungs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Race each rung against `transformers` as it comes: in single precision, with dropout, on a full batch."""
    for size in (size for size in LADDER_SIZES if size in settings.sizes):
        batch = batch_of(settings, size, False, device)
        reference = Transformers(make_ours(settings, size, DROPOUT, device))
        reference_step = steps_of(reference, "training step", batch, "fp32", device)
        for ladder in (LADDER, THEIR_LADDER):
            switches = Switches()
            for switch, change in ladder.items():
                switches = dataclasses.replace(switches, **change)
                if switch not in rungs:
                    continue
                model = make_ours(settings, size, switches.dropout, device)
                side = Rung(model, switches) if ladder is LADDER else Transformers(model)
                check_same(side, reference, batch, switches.precision, device)
                step = steps_of(side, "training step", batch, switches.precision, device)
                yield {
                    "device": device.type,
                    "precision": switches.precision,
                    "what": "ladder",
                    "size": size,
                    "mode": switch,
                    "dropout": switches.dropout,
                    "batch": "full",
                    **race(step, reference_step, device, settings.ladder_rounds),
                }


def show(settings: Settings, rows: Sequence[Mapping[str, Any]]) -> None:
    names = ("device", "precision", "what", "size", "batch", "mode", "dropout")
    columns: dict[str, Callable[[Any], str]] = {name: partial(lambda key, row: str(row[key]), name) for name in names}
    columns |= {
        "ours, ms": lambda row: f"{row['milliseconds']:.1f}",
        "peer, ms": lambda row: f"{row['peer_milliseconds']:.1f}",
        "peer / ours": lambda row: f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
    }
    if any("utilisation" in row for row in rows):
        columns["utilisation"] = lambda row: f"{row['utilisation']:.0%}" if "utilisation" in row else ""
    show_table(f"BERT, {settings.threads} thread(s)", list(rows), columns)


def main(words: Sequence[str] | None = None) -> None:
    settings, record = read_settings(Settings, words, __doc__)
    warnings.filterwarnings("ignore", "The PyTorch API of nested tensors is in prototype stage")  # torch uses its own
    torch.set_num_threads(settings.threads)
    rows: list[dict[str, Any]] = []
    with tqdm(disable=None, leave=False) as bar:
        for device in devices():
            parts = [race_peers(settings, device, name) for name in PRECISIONS]
            if settings.ladder_rounds:
                parts.append(climb(settings, device, [*LADDER, *THEIR_LADDER]))
            for row in (row for part in parts for row in part):
                rows.append(row)
                bar.update()
    show(settings, rows)
    if record:
        save("benchmark-bert", settings, rows)


if __name__ == "__main__":
    main()
