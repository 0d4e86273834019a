"""Two programs that do the same, timed turn by turn in one process, and the memory that
they need.

What else the machine does falls on both: each round runs one and then the other, the
first of one round is the second of the next, and what is reported is the median over
the rounds of seconds of the peer divided by ours (above 1: ours is faster), with its
quartiles.

On one thread of a CPU the clock is the processor time of this process, which stands
still while another program has the processor. On several threads it is the wall clock,
and on a GPU too, from an idle device to an idle device.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from tqdm import tqdm

from course_lab import records
from course_lib.training.precision import autocast, choose_precision, describe_rates

Settings = TypeVar("Settings")
Step = Callable[[], object]

PRECISIONS = {
    "fp32": "float32",
    "bf16": "bfloat16",
}  # as rows name them, and as the library does
MODES = (
    ("forward", 0.0),
    ("training step", 0.0),
    ("training step", 0.1),
)  # and the share of dropout
WARM_UP = 3  # rounds that do not count
TOLERANCES = {
    "fp32": 1e-4,
    "bf16": 1e-1,
}  # of outputs of order 1, before two programs are said to do the same


def devices() -> list[torch.device]:
    """The CPU, and a GPU if there is one."""
    return [
        torch.device("cpu"),
        *([torch.device("cuda")] if torch.cuda.is_available() else []),
    ]


@cache
def precisions(device: torch.device) -> list[str]:
    """Those that are compared on a device: bfloat16 only where it is faster, since it
    may take a hundred times as long.

    What is left out is said.
    """
    if choose_precision("auto", device) == "bfloat16":
        return list(PRECISIONS)
    print(f"bf16 is left out on {device}: {describe_rates(device)}")
    return ["fp32"]


@contextmanager
def precision(name: str, device: torch.device) -> Iterator[None]:
    """Compute in single precision, or let torch choose where bfloat16 is enough.

    In bfloat16 torch's modules go without their fast path for inference: on a CPU it
    does not notice the autocast, and raises ("expected scalar type Float but found
    BFloat16") or computes in single precision.
    """
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(fast_path and name == "fp32")
    try:
        with autocast(PRECISIONS[name], device):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)


def check_same(what: str, ours: Tensor, theirs: Tensor, name: str) -> None:
    """Refuse to compare the speed of two programs that do not compute the same."""
    difference = (ours - theirs).abs().max().item()
    if not difference <= TOLERANCES[name]:
        raise RuntimeError(
            f"{what}: ours and torch's differ by {difference:.2g} in {name}; a ratio"
            " would mean nothing"
        )


def training_step(
    model: nn.Module, forward: Callable[[], Tensor], name: str, device: torch.device
) -> Step:
    """Forward, backward, and a step of AdamW: what a training loop does with every
    batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with precision(name, device):
            loss = forward().float().square().mean()
        loss.backward()
        optimizer.step()

    return step


def inference(
    forward: Callable[[], Tensor], name: str, device: torch.device
) -> Callable[[], Tensor]:
    """Forward alone, without gradients."""

    def step() -> Tensor:
        with torch.no_grad(), precision(name, device):
            return forward()

    return step


def seconds(step: Step, device: torch.device) -> float:
    """What one call takes."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        started = time.perf_counter()
        step()
        torch.cuda.synchronize(device)
        return time.perf_counter() - started
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    started = clock()
    step()
    return clock() - started


def race(
    ours: Step, theirs: Step, device: torch.device, rounds: int
) -> dict[str, float]:
    """Time both in turn.

    Returns
    -------
    dict of str to float
        ``ratio``, the median over the rounds of their seconds over ours, its quartiles
        ``low`` and ``high``, the median ``milliseconds`` of ours and
        ``peer_milliseconds`` of theirs, and ``rounds``.
    """
    spent: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(-WARM_UP, rounds):
        contestants = [("ours", ours), ("theirs", theirs)]
        for name, step in contestants if turn % 2 else reversed(contestants):
            took = seconds(step, device)
            if turn >= 0:
                spent[name].append(took)
    ratios = [
        theirs / ours
        for ours, theirs in zip(spent["ours"], spent["theirs"], strict=True)
    ]
    low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    return {
        "ratio": ratio,
        "low": low,
        "high": high,
        "milliseconds": 1000 * statistics.median(spent["ours"]),
        "peer_milliseconds": 1000 * statistics.median(spent["theirs"]),
        "rounds": rounds,
    }


@dataclass(frozen=True)
class Contest:
    """Two modules that should compute the same, and the call of each that is timed."""

    ours: nn.Module
    theirs: nn.Module
    our_forward: Callable[[], Tensor]
    their_forward: Callable[[], Tensor]
    read: Tensor | None = (
        # True where something reads the outputs, so that they must agree; None for
        # everywhere
        None
    )


def race_all(
    contests: Sequence[str],
    make: Callable[[str, float, bool, torch.device], Contest],
    rounds: int,
) -> list[dict[str, Any]]:
    """Race both sides of each contest, on each device, in each precision and mode.

    Parameters
    ----------
    contests
        Names.
    make
        Builds one from its name, the share of dropout, whether it is for training, and
        the device.
    rounds
        As in `race`.

    Returns
    -------
    list of dict
        A row for each race: where and how it was run, and what `race` returns.
    """
    rows = []
    places = [(device, name) for device in devices() for name in precisions(device)]
    cases = list(product(places, contests, MODES))
    for (device, name), what, (mode, dropout) in tqdm(cases, disable=None, leave=False):
        contest = make(what, dropout, mode == "training step", device)
        sides = (
            (contest.ours, contest.our_forward),
            (contest.theirs, contest.their_forward),
        )
        forwards = [inference(forward, name, device) for _, forward in sides]
        if not dropout:
            outputs = [
                forward() if contest.read is None else forward()[contest.read]
                for forward in forwards
            ]
            check_same(what, *outputs, name)
        steps: Sequence[Step] = forwards
        if mode == "training step":
            steps = [
                training_step(module, forward, name, device)
                for module, forward in sides
            ]
        row = {
            "device": device.type,
            "precision": name,
            "what": what,
            "mode": mode,
            "dropout": dropout,
        }
        rows.append({**row, **race(steps[0], steps[1], device, rounds)})
    return rows


def peak_bytes(step: Step, device: torch.device) -> int:
    """The most bytes that torch's allocator has given out at once during one call,
    beyond those before it."""
    step()  # what is made once and kept is no part of a step
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        with _without_chatter():
            with profile(
                activities=[ProfilerActivity.CPU], profile_memory=True
            ) as profiler:
                step()
            profiler.export_chrome_trace(str(trace))
        events = [
            event
            for event in json.loads(trace.read_text())["traceEvents"]
            if event.get("name") == "[memory]"
        ]
    events.sort(key=lambda event: event["ts"])
    return int(max(np.cumsum([event["args"]["Bytes"] for event in events]), default=0))


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Hold back the lines that the profiler writes to the error stream at each start
    and stop; others pass."""
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        stream = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stream, 2)
            os.close(stream)
            held.seek(0)
            for line in held:
                if not line.startswith(b"USDT:"):
                    os.write(2, line)


def read_settings(
    kind: type[Settings], words: Sequence[str] | None, description: str | None
) -> tuple[Settings, bool]:
    """Read the command line: an option for each field of a dataclass, and whether to
    record."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        many = isinstance(field.default, tuple)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=type(field.default[0] if many else field.default),
            nargs="+" if many else None,
            default=field.default,
            help=field.metadata["help"],
        )
    parser.add_argument(
        "--record", action="store_true", help="write book/results/benchmark-*.json"
    )
    options = vars(parser.parse_args(words))
    record = options.pop("record")
    return (
        kind(
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in options.items()
            }
        ),
        record,
    )


def setting(default: Any, text: str) -> Any:
    """One field of a benchmark's settings, with what it means."""
    return dataclasses.field(
        default=default, metadata={"help": f"{text} (default: {default})"}
    )


def show(
    title: str,
    rows: Sequence[dict[str, Any]],
    columns: dict[str, Callable[[dict[str, Any]], str]],
    width: int = 130,
) -> None:
    """Print rows as a table."""
    table = Table(title=title)
    for name in columns:
        table.add_column(name)
    for row in rows:
        table.add_row(*(write(row) for write in columns.values()))
    Console(width=width).print(table)


def show_races(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print what `race` measured."""
    show(
        title,
        rows,
        {
            "device": lambda row: row["device"],
            "precision": lambda row: row["precision"],
            "what": lambda row: row["what"],
            "mode": lambda row: row["mode"],
            "dropout": lambda row: f"{row['dropout']:g}",
            "ours, ms": lambda row: f"{row['milliseconds']:.2f}",
            "torch, ms": lambda row: f"{row['peer_milliseconds']:.2f}",
            "torch / ours": lambda row: (
                f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
            ),
        },
    )


def save(name: str, settings: Any, results: list[dict[str, Any]]) -> None:
    """Record what was measured, with the words that were typed, the machine, the commit
    and the date."""
    command = ["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    path = records.save(records.make(name, command, settings, results), records.RESULTS)
    Console().print(f"recorded in book/results/{path.name}")
