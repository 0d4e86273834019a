"""Multi-head attention: seconds of `torch.nn.MultiheadAttention` divided by ours, and
memory against length.

Equal weights, shapes, masks and dropout; `side_by_side` says how it is timed. Memory is
what torch's allocator gives out during one call on one sentence, with the fused kernel
and with the weights computed in the open.

    python benchmarks/attention.py [--rounds 60] [--record]
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from side_by_side import (
    Contest,
    devices,
    peak_bytes,
    race_all,
    read_settings,
    save,
    setting,
    show,
    show_races,
)
from torch import Tensor

from course_lab.ch02_self_attention.attention_cost import fitted_exponent
from course_lab.peers import peer
from course_lib.attention.masks import causal_mask, padding_mask
from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.training.cpu import speed_up
from course_lib.training.loop import set_seed


@dataclass(frozen=True)
class Settings:
    """What is measured."""

    batch: int = setting(8, "sentences in a batch")
    length: int = setting(
        128,
        "words in the longest sentence; keys of cross-attention are three quarters as"
        " many",
    )
    dim: int = setting(256, "features")
    heads: int = setting(8, "heads, each of dim / heads features")
    rounds: int = setting(60, "times that each of both is timed")
    threads: int = setting(1, "threads of the CPU")
    memory_dim: int = setting(64, "features where memory is measured")
    memory_heads: int = setting(4, "heads where memory is measured")
    memory_lengths: tuple[int, ...] = setting(
        (256, 512, 1024, 2048, 4096), "lengths at which memory is measured"
    )


CALLS = ("self", "self, causal", "self, padding", "cross, padding")


def make_contest(
    settings: Settings, what: str, dropout: float, training: bool, device: torch.device
) -> Contest:
    """Both modules, and the call of each that says the same."""
    set_seed(0)
    ours = (
        speed_up(MultiHeadAttention(settings.dim, settings.heads, dropout))
        .to(device)
        .train(training)
    )
    theirs = peer(ours)
    query = torch.randn(settings.batch, settings.length, settings.dim, device=device)
    memory = torch.randn(
        settings.batch, 3 * settings.length // 4, settings.dim, device=device
    )
    keys = memory if what == "cross, padding" else query
    lengths = torch.linspace(keys.shape[1] // 2, keys.shape[1], settings.batch).long()
    words = padding_mask(lengths).to(device)
    later = ~causal_mask(settings.length, device)
    torch_s = partial(theirs, query, keys, keys, need_weights=False)
    calls: dict[str, tuple[Callable[[], Tensor], Callable[[], tuple[Tensor, None]]]] = {
        "self": (partial(ours, query), torch_s),
        "self, causal": (
            partial(ours, query, causal=True),
            partial(torch_s, attn_mask=later, is_causal=True),
        ),
        "self, padding": (
            partial(ours, query, mask=words[:, None]),
            partial(torch_s, key_padding_mask=~words),
        ),
        "cross, padding": (
            partial(ours, query, keys, mask=words[:, None]),
            partial(torch_s, key_padding_mask=~words),
        ),
    }
    our_forward, their_call = calls[what]
    return Contest(ours, theirs, our_forward, lambda: their_call()[0])


def measure_memory(settings: Settings) -> list[dict[str, Any]]:
    """Count bytes at each length, for ours and torch's, fused and in the open."""
    return [
        memory_of(settings, who, path, device)
        for device in devices()
        for who in ("ours", "torch")
        for path in ("fused", "explicit")
    ]


def memory_of(
    settings: Settings, who: str, path: str, device: torch.device
) -> dict[str, Any]:
    """Count bytes at each length, and fit the power of the length with which
    they grow."""
    lengths = settings.memory_lengths
    counted = [
        peak_bytes(memory_step(settings, who, path, length, device), device)
        for length in lengths
    ]
    exponent = fitted_exponent(
        [float(length) for length in lengths], [float(count) for count in counted]
    )
    row = {
        "device": device.type,
        "what": "memory",
        "who": who,
        "path": path,
        "mode": "training step",
    }
    return {**row, "lengths": list(lengths), "bytes": counted, "exponent": exponent}


def memory_step(
    settings: Settings, who: str, path: str, length: int, device: torch.device
) -> Callable[[], None]:
    """Forward and backward of one sentence, down to the weights and the input."""
    set_seed(0)
    ours = speed_up(MultiHeadAttention(settings.memory_dim, settings.memory_heads)).to(
        device
    )
    theirs = peer(ours)
    hidden = torch.randn(
        1, length, settings.memory_dim, device=device, requires_grad=True
    )
    weights = path == "explicit"

    def step() -> None:
        if who == "torch":
            output = theirs(
                hidden, hidden, hidden, need_weights=weights, average_attn_weights=False
            )[0]
        else:
            output = ours(hidden, return_weights=True)[0] if weights else ours(hidden)
        output.sum().backward()
        for tensor in (hidden, *ours.parameters(), *theirs.parameters()):
            tensor.grad = None  # now, so that each call begins with as much

    return step


def main(words: Sequence[str] | None = None) -> None:
    settings, record = read_settings(Settings, words, __doc__)
    torch.set_num_threads(settings.threads)
    times = race_all(CALLS, partial(make_contest, settings), settings.rounds)
    show_races(
        f"Attention, {settings.rounds} rounds, {settings.threads} thread(s)", times
    )
    memory = measure_memory(settings)
    show(
        "Peak memory of a training step, MiB",
        memory,
        {
            "device": lambda row: row["device"],
            "who": lambda row: row["who"],
            "path": lambda row: row["path"],
            **{
                f"{length} words": lambda row, place=place: (
                    f"{row['bytes'][place] / 2**20:.1f}"
                )
                for place, length in enumerate(settings.memory_lengths)
            },
            "exponent": lambda row: f"{row['exponent']:.2f}",
        },
    )
    if record:
        save("benchmark-attention", settings, [*times, *memory])


if __name__ == "__main__":
    main()
