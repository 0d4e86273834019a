"""Recorded results: what a long run found, with all that is needed to run it again.

A record is a JSON file in ``book/results/``. A page shows it as recorded, beside what
it measures live; a test checks that each file's command still parses and its
configuration still loads.
"""

import dataclasses
import json
import os
import platform
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import torch

from course_lib._files import write_whole
from course_lib.shipped_files import RESULTS
from course_lib.training.loop import device

Run: TypeAlias = tuple[Mapping[str, Any], Callable[[], Mapping[str, Any]]]
"""What tells a run from the others of its record, and what does it."""


@dataclass(frozen=True)
class Record:
    """One recorded experiment.

    Parameters
    ----------
    name
        Name of the file, without ending.
    command
        What was typed, e.g. ``course experiment seq2seq --data multi30k``.
    configuration
        All settings, as the experiment's own function loads them.
    seeds
        One run for each; none where chance plays no part, as in a benchmark.
    results
        One entry for each run, or for each thing measured: its figures.
    commit
        The version of the code; "+changes" if files differed from it.
    machine
        Processor, cores, device and versions.
    date
        When the last run ended, in UTC.
    """

    name: str
    command: str
    configuration: dict[str, Any]
    seeds: list[int]
    results: list[dict[str, Any]]
    commit: str
    machine: dict[str, Any]
    date: str


def make(
    name: str, command: Sequence[str], configuration: Any, results: list[dict[str, Any]]
) -> Record:
    """Complete the results of an experiment with what this machine and this checkout
    are."""
    return Record(
        name,
        shlex.join(command),
        dataclasses.asdict(configuration),
        sorted({result["seed"] for result in results if "seed" in result}),
        results,
        commit(),
        machine(),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def save(record: Record, folder: Path = RESULTS) -> Path:
    """Write a record as ``<folder>/<name>.json`` and return the path; a reader never
    sees half a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.name}.json"
    write_whole(
        path,
        json.dumps(dataclasses.asdict(record), indent=1, ensure_ascii=False) + "\n",
    )
    return path


def held(
    name: str,
    configuration: Any,
    read: Callable[[dict[str, Any]], Any],
    folder: Path | None = None,
) -> list[dict[str, Any]]:
    """Return the runs that a record holds already, if it was made with this very
    configuration."""
    folder = folder or RESULTS
    if not (folder / f"{name}.json").is_file():
        return []
    record = load(name, folder)
    if dataclasses.asdict(read(record.configuration)) != dataclasses.asdict(
        configuration
    ):
        raise ValueError(
            f"{folder.parent.name}/{folder.name}/{name}.json was made with another"
            " configuration; move it away to record this one"
        )
    return record.results


def load(name: str, folder: Path = RESULTS) -> Record:
    """Read a record."""
    path = folder / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.json"))) or "none"
        raise FileNotFoundError(
            f"no recorded result {name!r} in {folder.name}/; recorded are: {known}"
        )
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(
            f"{path.name} is not a recorded result: {error}; restore it from version"
            " control"
        ) from error


def run_missing(
    name: str,
    command: Sequence[str],
    configuration: Any,
    read: Callable[[dict[str, Any]], Any],
    runs: Iterable[Run],
    say: Callable[[str], None] | None = None,
    folder: Path | None = None,
) -> Path:
    """Do the runs that a record lacks, and save it after each: whoever interrupts it
    loses one."""
    folder = folder or RESULTS
    held(name, configuration, read, folder)
    for key, run in runs:
        if any(
            result.items() >= key.items()
            for result in held(name, configuration, read, folder)
        ):
            continue
        found = run()
        results = [*held(name, configuration, read, folder), {**key, **found}]
        save(make(name, command, configuration, results), folder)
        if say is not None:
            say(
                f"{', '.join(f'{what} {value}' for what, value in key.items())}:"
                f" {found}"
            )
    return folder / f"{name}.json"


def recorded_note(record: Record, what: str) -> str:
    """Write what stands before recorded figures on a page, so that nobody takes them
    for live ones."""
    made_on = record.machine
    threads = f"{made_on['threads']} thread{'' if made_on['threads'] == 1 else 's'}"
    return (
        f"> **Recorded, not live.** {what} recorded by `{record.command}` on"
        f" {record.date[:10]} ({made_on['name']}, {threads}, torch {made_on['torch']},"
        f" commit {record.commit[:10]}); all figures, seeds and settings are in"
        f" `book/results/{record.name}.json`."
    )


def machine() -> dict[str, Any]:
    """Return what decides speed and last digits: processor, cores, device, and the
    versions of Python and torch."""
    where = device()
    name = torch.cuda.get_device_name(where) if where.type == "cuda" else _processor()
    return {
        "device": where.type,
        "name": name,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": version("torch"),
    }


def _processor() -> str:
    """The processor's model, which ``platform.processor()`` does not know on Linux."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """Return the checkout's commit, with "+changes" if tracked files differ from it;
    "unknown" outside a checkout."""
    root = Path(__file__).parents[1]

    def git(*words: str) -> str | None:
        done = subprocess.run(
            ["git", "-C", str(root), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip() if done.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    if head is None:
        return "unknown"
    changed = git(
        "status", "--porcelain", "--untracked-files=no", "--", ".", ":!book/results"
    )
    return head + ("+changes" if changed else "")
