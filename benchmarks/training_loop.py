"""What the training loop costs: seconds of `train` divided by seconds of the barest
loop that does the same work.

Both loops run the same model on the same batches with the same optimizer, clipping and
dropout, in one process, turn by turn, so that whatever else the machine does falls on
both. Printed are the median ratio over the rounds and its range.

    python benchmarks/training_loop.py [--rounds 15] [--steps 40]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_lib.training.loop import TrainingConfig, adamw, device, set_seed, train


def make_model(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Embedding(500, width),
        nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True),
        nn.Linear(width, 500),
    ).to(device())


def make_batches(rows: int, length: int, count: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randint(500, (rows, length), generator=generator) for _ in range(count)
    ]


def loss_sum(model: nn.Module, ids: Tensor) -> tuple[Tensor, int]:
    return (
        nn.functional.cross_entropy(
            model(ids).flatten(0, 1), ids.flatten(), reduction="sum"
        ),
        ids.numel(),
    )


def bare(model: nn.Module, data: list[Tensor], config: TrainingConfig) -> None:
    """Forward, backward, clip, step, and read the loss: nothing else."""
    optimizer = adamw(model, config)
    model.train()
    for step in range(config.steps):
        total, count = loss_sum(model, data[step].to(device()))
        optimizer.zero_grad(set_to_none=True)
        (total / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        (total / count).item()


def full(model: nn.Module, data: list[Tensor], config: TrainingConfig) -> None:
    train(model, lambda epoch: data, loss_sum, config)


def seconds(
    loop: Callable[[nn.Module, list[Tensor], TrainingConfig], None],
    width: int,
    data: list[Tensor],
) -> float:
    set_seed(0)
    model = make_model(width)
    started = time.perf_counter()
    loop(model, data, TrainingConfig(steps=len(data)))
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    print(
        f"device {device()}, {torch.get_num_threads()} threads, {arguments.rounds}"
        f" rounds of {arguments.steps} steps"
    )
    for name, width, rows, length in (
        ("tiny", 16, 2, 5),
        ("small", 64, 16, 20),
        ("medium", 256, 32, 32),
    ):
        data = make_batches(rows, length, arguments.steps)
        for loop in (bare, full):
            seconds(loop, width, data[:3])  # warm-up
        ratios, steps = [], []
        for turn in range(arguments.rounds):
            order = (
                (bare, full) if turn % 2 == 0 else (full, bare)
            )  # neither always goes first
            spent = {loop: seconds(loop, width, data) for loop in order}
            ratios.append(spent[full] / spent[bare])
            steps.append(1000 * spent[bare] / arguments.steps)
        print(
            f"{name:>6}: train / bare loop = {statistics.median(ratios):.2f}"
            f" ({min(ratios):.2f} to {max(ratios):.2f}), a bare step takes"
            f" {statistics.median(steps):.1f} ms"
        )


if __name__ == "__main__":
    main()
