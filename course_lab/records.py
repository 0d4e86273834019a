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

    Examples
    --------
    >>> record = Record(
    ...     "x",
    ...     "course experiment seq2seq",
    ...     {},
    ...     [0],
    ...     [{"seed": 0}],
    ...     "unknown",
    ...     {},
    ...     "2026-01-01",
    ... )
    >>> record.results[0]["seed"]
    0
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
    are.

    Parameters
    ----------
    name
        Name of the file.
    command
        The words that were typed.
    configuration
        A dataclass of settings.
    results
        One entry for each run, with its ``seed`` if it has one.

    Returns
    -------
    Record
        Ready for `save`.
    """
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
    configuration.

    Parameters
    ----------
    name
        Of the record; it need not exist.
    configuration
        A dataclass: what is to be run.
    read
        Loads such a dataclass from what a record keeps of it.
    folder
        Where it lies; None for ``book/results/``.

    Returns
    -------
    list of dict
        Its results; none if there is no such record.

    Raises
    ------
    ValueError
        If the record was made with another configuration.
    """
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
    """Read a record.

    Parameters
    ----------
    name
        Name of the file, without ending.
    folder
        Where it lies.

    Returns
    -------
    Record
        As it was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such record; the message names those that there are.
    ValueError
        If the file is not a record.
    """
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
    loses one.

    Parameters
    ----------
    name, configuration, read, folder
        As in `held`. A record of another configuration is an error before the first run
        is looked at.
    command
        What was typed.
    runs
        Of each run what tells it from the others, and what does it and returns what it
        found.
    say
        Told of each run that ended.

    Returns
    -------
    Path
        The record.

    Raises
    ------
    ValueError
        If the record was made with another configuration.
    """
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
    for live ones.

    Parameters
    ----------
    record
        Where the figures come from.
    what
        Begins the sentence that ends in "recorded by": "The next figure was", "The next
        two tables were".

    Returns
    -------
    str
        A quotation in Markdown: command, date, machine, versions and file.

    Examples
    --------
    >>> made_on = {"name": "a laptop", "threads": 1, "torch": "2.13.0"}
    >>> record = Record(
    ...     "x",
    ...     "course experiment x",
    ...     {},
    ...     [0],
    ...     [],
    ...     "0123456789abcdef",
    ...     made_on,
    ...     "2026-01-02T03:04:05",
    ... )
    >>> print(recorded_note(record, "The next figure was"))
    > **Recorded, not live.** The next figure was recorded by `course experiment x` on
    2026-01-02 (a laptop, 1 thread,
    torch 2.13.0, commit 0123456789); all figures, seeds and settings are in
    `book/results/x.json`.
    """
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
    "unknown" outside a checkout.

    Records themselves do not count: one that is continued, run by run, differs from
    what was committed of it.
    """
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
