"""``course record`` and ``course records``: missing runs, and probes of the others.

A variant whose probe has other figures than when it was recorded is stale. Its runs are
kept, and no run is added to them. Several commands may run side by side, each with its
own seeds: a run is added to what the record holds by then.
"""

import logging
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from course_lab import probes, records, study
from course_lab.study import Study
from course_lib.training.loop import TrainingError
from course_lib.training.state import CheckpointError


class ExperimentError(RuntimeError):
    """An experiment cannot run; the message says why and what to do."""


def record_experiment(
    name: str,
    data: str | None,
    source: str | None,
    variants: Sequence[str],
    seeds: Sequence[int],
    steps: int | None = None,
    checkpoint: str | None = None,
) -> Path:
    """Do the runs of a study for each seed and each variant, and record them; `name`
    is an experiment and `data` one of its studies, or `name` both, as its record is
    called."""
    if data is None:
        name, _, data = name.partition("-")
    asked = _study_of(name, data)
    command = ["course", "record", name, "--data", data]
    if checkpoint is not None:  # where it lies is a matter of this machine
        command += ["--checkpoint", Path(checkpoint).name]
    if asked.of_checkpoint != (checkpoint is not None):
        raise ExperimentError(
            f"{asked.name} needs --checkpoint, a folder or a name on the hub"
            if asked.of_checkpoint
            else f"{asked.name} takes no --checkpoint; leave it out"
        )
    if unknown := sorted(set(variants) - set(asked.variants)):
        among = "; ".join(asked.variants)
        raise ExperimentError(
            f"{asked.name} has no variant {unknown[0]!r}; choose among {among}"
        )
    if asked.seeds is not None:
        seeds = [seed for seed in seeds if seed in asked.seeds]
        if not seeds:
            raise ExperimentError(f"{asked.name} runs with seed {asked.seeds} alone")
    try:
        if steps is not None:
            asked = asked.shortened(steps)
            command += ["--steps", str(steps)]
        return study.record(
            asked,
            command,
            list(variants) or list(asked.variants),
            seeds,
            source,
            checkpoint,
            probed=steps is None,
        )
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _study_of(name: str, data: str) -> Study:
    if name not in probes.EXPERIMENTS:
        there = ", ".join(probes.EXPERIMENTS)
        raise ExperimentError(f"there is no experiment {name!r}; there is: {there}")
    known = probes.EXPERIMENTS[name]
    if data not in known:
        raise ExperimentError(
            f"{name} has no study {data!r}; it has: {', '.join(known)}"
        )
    return known[data]


class State(NamedTuple):
    """What is known of a variant of a record."""

    record: str
    variant: str
    runs: int
    precision: str
    data: str
    state: str
    differences: dict[str, str]


def states(
    names: Sequence[str] = (),
    folder: Path | None = None,
    variants: Container[str] | None = None,
) -> Iterator[State]:
    """Repeat the probes of some records or all, of some variants or all: is each
    current or stale?"""
    folder = folder or records.RESULTS
    for name in names or sorted(path.stem for path in folder.glob("*.json")):
        record = records.load(name, folder)
        for variant in dict.fromkeys(run["variant"] for run in record.runs):
            if variants is not None and variant not in variants:
                continue
            of_it = [run for run in record.runs if run["variant"] == variant]
            found = probes.differences(record, variant)
            yield State(
                name,
                variant,
                len(of_it),
                ", ".join(sorted({run["precision"] for run in of_it})),
                ", ".join(sorted({run["data"] or "unknown" for run in of_it})),
                "no probe" if found is None else "stale" if found else "current",
                found or {},
            )


def told(found: State) -> str:
    """Write a state as a line, and below it what a stale variant's probe differs in."""
    runs = f"{found.runs} run{'' if found.runs == 1 else 's'}"
    line = (
        f"{found.state:<8} {found.record}: {found.variant}"
        f" ({runs}, {found.precision}, data {found.data})"
    )
    changes = list(found.differences.items())[:3]
    return "\n".join([line, *(f"           {name}: {x}" for name, x in changes)])


def show_states(names: Sequence[str]) -> None:
    """Print the state of each variant as it is found, and how many are current."""
    found = []
    log = logging.getLogger("course_lib.data")
    level = log.level
    log.setLevel(logging.WARNING)  # nobody asks where a probe's stand-ins lie
    try:
        for state in states(names):
            typer.echo(told(state))
            found.append(state.state)
    except (FileNotFoundError, ValueError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error
    finally:
        log.setLevel(level)
    typer.echo(f"{found.count('current')} current, {found.count('stale')} stale")
