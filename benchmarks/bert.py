"""BERT's training step and inference: seconds of `transformers`, and of a BERT around
`torch.nn`'s encoder, over ours.

Equal weights, batches and dropout, and each is called as its users call it
(`bert_sides`); before anything is timed, losses, gradients and final states are
compared. A "training step" is forward, loss and backward; "with optimizer" adds AdamW
(fused); "inference" is the encoder's final states.

"ladder" goes from there to our fastest training step, one switch after the other, each
held against `transformers` as it comes: in single precision, with dropout.
"transformers, ..." are the switches that `transformers` has, too.

On a GPU the batches are of `--cuda-batch` and `--cuda-length`, each row tells our share
of its matrix rate, and base climbs the ladder, too: its last rung is our fastest step
there.

    OMP_NUM_THREADS=2 python benchmarks/bert.py [--rounds 11] [--record]
"""

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any, TypeAlias

import torch
from bert_sides import (
    PEERS,
    Batch,
    Ours,
    Side,
    Transformers,
    check_same,
    make_batch,
    training_step,
)
from side_by_side import (
    PRECISIONS,
    Step,
    devices,
    inference,
    precisions,
    race,
    read_settings,
    save,
    setting,
)
from side_by_side import show as show_table
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from tqdm import tqdm

from course_lab.ch06_pretraining.pretrain_cost import matrix_rate
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining
from course_lib.pretraining.batches import pretraining_loss
from course_lib.training.cpu import keep_freed_memory, speed_up
from course_lib.training.loop import set_seed

# of Devlin et al. 2019, and of a transformers.BertConfig that is not told otherwise
DROPOUT = 0.1
Race: TypeAlias = tuple[dict[str, Any], Callable[[], dict[str, Any]]]
"""What tells a race from others, and what does it."""
LADDER_SIZES = {
    "cpu": ("tiny", "mini"),
    "cuda": ("tiny", "mini", "base"),
}  # base takes minutes on a CPU


@dataclass(frozen=True)
class Settings:
    """What is measured."""

    sizes: tuple[str, ...] = setting(("tiny", "mini", "base"), "sizes of the model")
    length: int = setting(128, "tokens of the longest sequence")
    vocab: int = setting(
        8192, "tokens in the vocabulary of tiny and mini, which the course trains"
    )
    base_vocab: int = setting(30522, "tokens in that of base, as published")
    tiny_batch: int = setting(16, "sequences in a batch of tiny")
    mini_batch: int = setting(8, "of mini")
    base_batch: int = setting(4, "of base")
    cuda_length: int = setting(512, "tokens of the longest sequence on a GPU")
    cuda_batch: int = setting(64, "sequences in a batch on a GPU")
    rounds: int = setting(11, "times that each of both is timed")
    base_rounds: int = setting(5, "times that each of both is timed at base, on a CPU")
    ladder_rounds: int = setting(
        11, "times that each of both is timed on the ladder; 0 leaves it out"
    )
    threads: int = setting(2, "threads of the CPU")


def make_ours(
    settings: Settings, size: str, dropout: float, device: torch.device
) -> BertForPreTraining:
    set_seed(0)
    vocab = settings.base_vocab if size == "base" else settings.vocab
    config: BertConfig = getattr(BertConfig, size)(
        vocab_size=vocab,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return BertForPreTraining(config).to(device)


def batch_of(
    settings: Settings, size: str, padded: bool, device: torch.device
) -> Batch:
    vocab = settings.base_vocab if size == "base" else settings.vocab
    if device.type == "cuda":
        return make_batch(
            settings.cuda_batch, settings.cuda_length, vocab, padded, device
        )
    return make_batch(
        getattr(settings, f"{size}_batch"), settings.length, vocab, padded, device
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


def race_peers(
    settings: Settings, device: torch.device, name: str
) -> Iterator[dict[str, Any]]:
    """Race ours against each peer, at each size, in each mode, with padding and
    without."""
    for size, peer_name, padded in product(settings.sizes, PEERS, (False, True)):
        batch = batch_of(settings, size, padded, device)
        checked = False
        for mode, dropout in RACES[peer_name]:
            ours = Ours(speed_up(make_ours(settings, size, dropout, device)))
            theirs = PEERS[peer_name](ours.model)
            if not checked:
                check_same(ours, theirs, batch, name, device)
                checked = True
            steps = [
                steps_of(side, mode, batch, name, device) for side in (ours, theirs)
            ]
            few = size == "base" and device.type == "cpu"
            raced = race(
                steps[0],
                steps[1],
                device,
                settings.base_rounds if few else settings.rounds,
            )
            yield {
                "device": device.type,
                "precision": name,
                "what": peer_name,
                "size": size,
                "mode": mode,
                "dropout": dropout,
                "batch": "padded" if padded else "full",
                **raced,
                **utilisation(steps[0], raced["milliseconds"], name, device),
            }


def steps_of(
    side: Side, mode: str, batch: Batch, name: str, device: torch.device
) -> Step:
    """What is timed of one side."""
    side.model.train(mode != "inference")
    if mode == "inference":
        return inference(partial(side.states, batch), name, device)
    return training_step(side, batch, name, device, optimizer=mode == "with optimizer")


def utilisation(
    step: Step, milliseconds: float, name: str, device: torch.device
) -> dict[str, float]:
    """The share of a GPU's matrix rate at which a step makes its operations; nothing
    for a CPU."""
    if device.type != "cuda":
        return {}
    return {
        "utilisation": operations(step) / (milliseconds / 1000) / rate_of(device, name)
    }


@cache
def rate_of(device: torch.device, name: str) -> float:
    """What the device makes of large matrices, measured once."""
    return matrix_rate(device, getattr(torch, PRECISIONS[name]))


def operations(step: Step) -> int:
    """Floating-point operations of the matrix products that one call makes."""
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


@dataclass(frozen=True)
class Switches:
    """What a rung of the ladder has switched on; none of it: what `transformers` does
    as it comes."""

    masked_logits: bool = False  # logits at masked positions only
    no_mask: bool = False  # where nothing is padded
    onednn: bool = False  # for products in single precision
    words: bool = False  # of random bits for dropout
    dropout: float = DROPOUT
    bf16: bool = False
    fused: bool = True  # attention; False: written out
    compiled: bool = False
    compiler: str = "inductor"

    @property
    def precision(self) -> str:
        return "bf16" if self.bf16 else "fp32"


LADDER: dict[str, dict[str, Any]] = {
    "ours, nothing switched on": {},
    "logits at masked positions only": {"masked_logits": True},
    "no mask when nothing is padded": {"no_mask": True},
    "oneDNN in single precision": {"onednn": True},
    "dropout in 16 bits": {"words": True},
    "dropout 0": {"dropout": 0.0},
    "bf16 autocast": {"bf16": True},
    "attention written out": {"fused": False},
    "torch.compile": {"compiled": True},
}
THEIR_LADDER: dict[str, dict[str, Any]] = {
    "transformers, dropout 0": {"dropout": 0.0},
    "transformers, bf16 autocast": {"bf16": True},
}
#: Two that change nothing on a GPU, and one that the library itself takes on CPUs
#: alone.
ON_CPU_ALONE = {
    "oneDNN in single precision",
    "dropout in 16 bits",
    "attention written out",
}


class Rung(Ours):
    """Ours, with some of its switches on."""

    def __init__(self, model: BertForPreTraining, switches: Switches):
        super().__init__(model)
        self.switches = switches
        speed_up(model, switches.onednn, switches.words, switches.fused)
        self.call = self._output
        if switches.compiled:
            self.call = torch.compile(self._output, backend=switches.compiler)

    def _output(self, batch: Batch) -> tuple[Tensor, Tensor]:
        mask = batch.needed_mask if self.switches.no_mask else batch.attention_mask
        hidden, pooled, *_ = self.model.bert(
            batch.input_ids, mask, batch.token_type_ids
        )
        if self.switches.masked_logits:
            hidden = hidden.flatten(0, 1).index_select(0, batch.positions)
        return self.model.mlm_head(hidden), self.model.nsp_head(pooled)

    def loss(self, batch: Batch) -> Tensor:
        labels = batch.masked_labels if self.switches.masked_logits else batch.labels
        return pretraining_loss(*self.call(batch), labels, batch.pairs)


def rungs_of(
    device: torch.device, ladder: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """A ladder on a device: without what it does not pay for there."""
    kept = {
        rung: change
        for rung, change in ladder.items()
        if device.type == "cpu" or rung not in ON_CPU_ALONE
    }
    return {
        rung: change
        for rung, change in kept.items()
        if "bf16" not in change or "bf16" in precisions(device)
    }


def climb(
    settings: Settings, device: torch.device, compiler: str = "inductor"
) -> Iterator[Race]:
    """Give the race of each rung against `transformers` as it comes: in single
    precision, with dropout, on a full batch."""
    for size in (size for size in LADDER_SIZES[device.type] if size in settings.sizes):
        batch = batch_of(settings, size, False, device)
        reference = Transformers(make_ours(settings, size, DROPOUT, device))
        for make_side, ladder in ((Rung, LADDER), (make_theirs, THEIR_LADDER)):
            switches = Switches(compiler=compiler)
            for switch, change in rungs_of(device, ladder).items():
                switches = dataclasses.replace(switches, **change)
                key = {
                    "device": device.type,
                    "precision": switches.precision,
                    "what": "ladder",
                    "size": size,
                    "mode": switch,
                    "dropout": switches.dropout,
                    "batch": "full",
                }
                make = partial(make_side, switches=switches)
                yield (
                    key,
                    partial(
                        race_rung, settings, size, make, switches, reference, batch
                    ),
                )


def race_rung(
    settings: Settings,
    size: str,
    make: Callable[..., Side],
    switches: Switches,
    reference: Transformers,
    batch: Batch,
) -> dict[str, Any]:
    """Race one rung."""
    device, name = batch.input_ids.device, switches.precision
    model = make_ours(settings, size, switches.dropout, device)
    side = make(model)
    check_same(side, reference, batch, name, device)
    step = steps_of(side, "training step", batch, name, device)
    standing = steps_of(reference, "training step", batch, "fp32", device)
    raced = race(step, standing, device, settings.ladder_rounds)
    # its operations cannot be counted, and are those of the same step uncompiled
    if switches.compiled:
        plain = make(model, switches=dataclasses.replace(switches, compiled=False))
        step = steps_of(plain, "training step", batch, name, device)
    return {**raced, **utilisation(step, raced["milliseconds"], name, device)}


def make_theirs(model: BertForPreTraining, switches: Switches) -> Transformers:
    """Transformers has none of our switches: dropout is its model's, and the precision
    that of the step."""
    return Transformers(model)


def show(settings: Settings, rows: Sequence[Mapping[str, Any]]) -> None:
    names = ("device", "precision", "what", "size", "batch", "mode", "dropout")
    columns: dict[str, Callable[[Any], str]] = {
        name: partial(lambda key, row: str(row[key]), name) for name in names
    }
    columns |= {
        "ours, ms": lambda row: f"{row['milliseconds']:.1f}",
        "peer, ms": lambda row: f"{row['peer_milliseconds']:.1f}",
        "peer / ours": lambda row: (
            f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        ),
    }
    if any("utilisation" in row for row in rows):
        columns["utilisation"] = lambda row: (
            f"{row['utilisation']:.0%}" if "utilisation" in row else ""
        )
    show_table(f"BERT, {settings.threads} thread(s)", list(rows), columns, width=160)


def main(words: Sequence[str] | None = None) -> None:
    settings, record = read_settings(Settings, words, __doc__)
    warnings.filterwarnings(
        "ignore", "The PyTorch API of nested tensors is in prototype stage"
    )  # torch uses its own
    torch.set_num_threads(settings.threads)
    keep_freed_memory()
    rows: list[dict[str, Any]] = []
    with tqdm(disable=None, leave=False) as bar:
        for device in devices():
            parts = [race_peers(settings, device, name) for name in precisions(device)]
            if settings.ladder_rounds:
                parts.append({**key, **run()} for key, run in climb(settings, device))
            for row in (row for part in parts for row in part):
                rows.append(row)
                bar.update()
    show(settings, rows)
    if record:
        save("benchmark-bert", settings, rows)


if __name__ == "__main__":
    main()
