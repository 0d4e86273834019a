"""What ``course record`` and ``course records`` do beside the runs: probes are taken of
new variants, and repeated of old ones.

A variant whose probe has other figures than when it was recorded is stale. Its runs are
kept, but none is added to them.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from course_lab import probes, records
from course_lab.probing import Probe


class State(NamedTuple):
    """What is known of a variant of a record."""

    record: str
    variant: str
    runs: int
    precision: str
    data: str
    state: str
    differences: dict[str, str]


def states(names: Sequence[str] = (), folder: Path | None = None) -> Iterator[State]:
    """Repeat the probes of records, and say variant by variant whether it is current;
    of all records if none is named."""
    folder = folder or records.RESULTS
    for name in names or sorted(path.stem for path in folder.glob("*.json")):
        record = records.load(name, folder)
        for variant in dict.fromkeys(run["variant"] for run in record.runs):
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
    try:
        for state in states(names):
            typer.echo(told(state))
            found.append(state.state)
    except (FileNotFoundError, ValueError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error
    typer.echo(f"{found.count('current')} current, {found.count('stale')} stale")


def take_missing(path: Path) -> None:
    """Take the probes that a record lacks."""
    record = records.load(path.stem, path.parent)
    taken = dict(record.probes)
    for variant in dict.fromkeys(run["variant"] for run in record.runs):
        if variant not in taken and probes.study_of(record.name) is not None:
            figures = probes.take(record.name, variant)
            taken[variant] = Probe(figures, records.commit())
    records.save(dataclasses.replace(record, probes=taken), path.parent)
