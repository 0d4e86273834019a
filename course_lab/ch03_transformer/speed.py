"""How long a word takes: training and decoding, models in turn, by length of the
sentence (chapter 3)."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from course_lab.ch01_seq2seq.scoring import Translator
from course_lab.ch01_seq2seq.seq2seq import loss_sum
from course_lab.ch01_seq2seq.text import BOS, EOS, Pair, collate
from course_lib.training.loop import device

Times = dict[str, dict[str, list[list[float]]]]
"""By model and kind ("training", "decoding", "decoding one"): for each repeat,
microseconds a target word by length."""


def microseconds_per_word(
    models: Mapping[str, Translator],
    lengths: Sequence[int],
    batch_size: int = 32,
    repeats: int = 7,
) -> Times:
    """Measure a training pass (forward and backward), decoding a batch, and decoding
    one sentence, a target word."""
    kinds: dict[str, Callable[[Translator, list[Pair]], None]] = {
        "training": _train,
        "decoding": _decode,
        "decoding one": lambda model, pairs: _decode(model, pairs[:1]),
    }
    times: Times = {
        name: {kind: [[] for _ in range(repeats)] for kind in kinds} for name in models
    }
    for length in lengths:
        pairs = _random_pairs(models, length, batch_size)
        for kind, run in kinds.items():
            words = (1 if kind == "decoding one" else batch_size) * (length + 1)
            for repeat in range(-1, repeats):
                for name, model in models.items():
                    started = time.perf_counter()
                    run(model, pairs)
                    if repeat >= 0:
                        times[name][kind][repeat].append(
                            (time.perf_counter() - started) * 1e6 / words
                        )
    return times


def _random_pairs(
    models: Mapping[str, Translator], length: int, batch_size: int
) -> list[Pair]:
    first = next(iter(models.values())).config
    generator = torch.Generator().manual_seed(length)
    sides = [
        torch.randint(
            EOS + 2, vocab, (batch_size, length), generator=generator
        ).tolist()
        for vocab in (first.source_vocab, first.target_vocab)
    ]
    return [Pair(source, target) for source, target in zip(*sides, strict=True)]


def _train(model: Translator, pairs: list[Pair]) -> None:
    model.train()
    loss, count = loss_sum(
        model, {name: tensor.to(device()) for name, tensor in collate(pairs).items()}
    )
    (loss / count).backward()
    model.zero_grad(set_to_none=True)
    _wait()


@torch.no_grad()
def _decode(model: Translator, pairs: list[Pair]) -> None:
    model.eval()
    batch = {name: tensor.to(device()) for name, tensor in collate(pairs).items()}
    state: Any = model.start(batch["source_ids"], batch["source_lengths"])
    assert int(batch["target_ids"][0, 0]) == BOS
    for tokens in batch["target_ids"].unbind(dim=1):
        _, state = model.step(state, tokens)
    _wait()


def _wait() -> None:
    """Wait for the device: a GPU works on while the clock is read."""
    if device().type == "cuda":
        torch.cuda.synchronize()
