"""Recorded results: what a long run found, with all that is needed to run it again.

A record is a JSON file in ``book/results/``. A page shows it as recorded, beside what
it measures live. Each run tells how it was made (`Record.runs`), and each variant has a
probe (:mod:`course_lab.probing`): the variant is *stale* once its probe, repeated, has
other figures.
"""

import dataclasses
import json
import os
import platform
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import torch
from filelock import FileLock

from course_lab.configurations import (
    as_json,
    digest,
    disagreement,
    merged,
    of_variant,
    precision_of,
)
from course_lab.probing import Probe
from course_lib.data import load as load_data
from course_lib.files import RESULTS, write_whole
from course_lib.metrics.scores import Interval, mean_interval
from course_lib.training.loop import device

#: Records whose variants are all stale, and in what: pages and claims that show one say
#: so. `course records`, which repeats the probes, finds what is missing here.
STALE: Mapping[str, str] = {
    "pretraining-stories": "Muon moves queries, keys and values apart, once as one"
    " matrix, and the last feed-forward runs at all positions",
    "pretraining-stories-long": "Muon moves queries, keys and values apart, once as one"
    " matrix",
    "pretraining-two-worlds": "the last feed-forward runs at all positions: more"
    " operations, equal losses",
}

Run: TypeAlias = tuple[Mapping[str, Any], Callable[[], Mapping[str, Any]]]
"""What tells a run from the others of its record, and what does it."""


@dataclass(frozen=True)
class Record:
    """One recorded experiment."""

    name: str  # name of the file, without ending
    command: str  # what was typed, e.g. ``course record seq2seq --data multi30k``
    #: All settings, as the experiment's own function loads them.
    configuration: dict[str, Any]
    #: One run for each; none where chance plays no part, as in a benchmark.
    seeds: list[int]
    #: One entry for each run, or for each thing measured: its figures.
    results: list[dict[str, Any]]
    #: The version of the code of the last run; "+changes" if files differed from it.
    commit: str
    machine: dict[str, Any]  # processor, cores, device and versions of the last run
    date: str  # when the last run ended, in UTC
    #: For an experiment how each of the results was made, in their order: see
    #: `provenance`.
    runs: list[dict[str, Any]] = field(default_factory=list)
    #: By variant; none for benchmarks of time.
    probes: dict[str, Probe] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.runs and len(self.runs) != len(self.results):
            raise TypeError(
                f"it has {len(self.results)} results and says of {len(self.runs)} runs"
                " how they were made"
            )
        for variant in {run["variant"] for run in self.runs}:
            precisions = self.precisions(variant)
            if len(precisions) > 1:
                raise TypeError(
                    f"{variant!r} has runs in {' and in '.join(sorted(precisions))},"
                    " and a mean over them would mix precisions"
                )

    def precisions(self, variant: str) -> set[str]:
        """Return what the runs of a variant were computed in: one, or none yet."""
        return {run["precision"] for run in self.runs if run["variant"] == variant}


def make(
    name: str, command: Sequence[str], configuration: Any, results: list[dict[str, Any]]
) -> Record:
    """Complete the results of an experiment with what this machine and this checkout
    are."""
    return Record(
        name,
        shlex.join(command),
        as_json(configuration),
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
    stored = dataclasses.asdict(record)
    for name in ("runs", "probes"):
        if not stored[name]:
            del stored[name]
    write_whole(path, json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    return path


def variant_of(result: Mapping[str, Any]) -> str:
    """Name the variant of a result; a recurrent model is called by its attention."""
    return str(result.get("variant", result.get("attention") or "none"))


def held(
    name: str, configuration: Any, variant: str = "", folder: Path | None = None
) -> list[dict[str, Any]]:
    """Return the results that a record holds already; it is an error if the settings
    or the precision of a variant are others since."""
    folder = folder or RESULTS
    if not (folder / f"{name}.json").is_file():
        return []
    record, asked = load(name, folder), as_json(configuration)
    found = disagreement(
        of_variant(record.configuration, variant), of_variant(asked, variant)
    )
    if found:
        raise ValueError(
            f"{folder.parent.name}/{folder.name}/{name}.json was made with another"
            f" configuration of {variant or name!r} ({found}); give a changed variant"
            " another name, or move the file away to record all anew"
        )
    precision = precision_of(of_variant(asked, variant))
    if others := record.precisions(variant) - {precision}:
        raise ValueError(
            f"{variant!r} of {name} was recorded in {others.pop()}, and here it would"
            f" be computed in {precision}; no mean mixes precisions: give it a fixed"
            " precision, or another name"
        )
    return record.results


def provenance(
    configuration: Mapping[str, Any],
    result: Mapping[str, Any],
    made_on: Mapping[str, Any],
    of_commit: str,
    date: str,
    data: str | None,
) -> dict[str, Any]:
    """Return how a run was made; `configuration` is named by its digest, since it
    stands in the record once for all runs of the variant."""
    settings = of_variant(configuration, variant_of(result))
    return {
        "variant": variant_of(result),
        "seed": result.get("seed"),
        "configuration": digest(settings),
        "precision": precision_of(settings),
        "threads": made_on["threads"],
        "processor": made_on["name"],
        "versions": {"python": made_on["python"], "torch": made_on["torch"]},
        "commit": of_commit,
        "date": date,
        "data": data,
        "seconds": result.get("seconds"),
    }


def edition(data: Sequence[str], source: str | None) -> str:
    """Return a digest of data sets as a run reads them."""
    return digest(
        {
            name: {split: list(rows) for split, rows in load_data(name, source).items()}
            for name in data
        }
    )


def writing(name: str, folder: Path) -> FileLock:
    """Hold a record between reading and saving it: two commands may record runs of one
    study."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f".{name}.lock")


def add(
    name: str,
    command: Sequence[str],
    configuration: Any,
    result: dict[str, Any],
    data: str | None = None,
    folder: Path | None = None,
) -> Path:
    """Add one result to a record, and save it."""
    folder = folder or RESULTS
    record = make(name, command, configuration, [result])
    timed = "seed" not in result  # a benchmark's: its record says all there is to say
    with writing(name, folder):
        runs: list[dict[str, Any]] = []
        if (folder / f"{name}.json").is_file():
            before = load(name, folder)
            results = [*before.results, result]
            record = dataclasses.replace(
                record,
                configuration=merged(
                    before.configuration, record.configuration, variant_of(result)
                ),
                seeds=sorted({x["seed"] for x in results if "seed" in x}),
                results=results,
                probes=before.probes,
            )
            runs = [
                _under(run, before.configuration, record.configuration)
                for run in before.runs
            ]
        made = provenance(
            record.configuration,
            result,
            record.machine,
            record.commit,
            record.date,
            data,
        )
        if not timed:
            record = dataclasses.replace(record, runs=[*runs, made])
        return save(record, folder)


def _under(
    run: dict[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> dict[str, Any]:
    """Name a run's settings by those that its record now holds: `held` let them differ
    only in a setting of which the older ones did not speak."""
    then, now = (digest(of_variant(x, run["variant"])) for x in (old, new))
    return {**run, "configuration": now} if run["configuration"] == then else run


def load(name: str, folder: Path | None = None) -> Record:
    """Read a record."""
    folder = folder or RESULTS
    path = folder / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.json"))) or "none"
        raise FileNotFoundError(
            f"no recorded result {name!r} in {folder.name}/; recorded are: {known}"
        )
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        taken = stored.pop("probes", {})
        probes = {variant: Probe(**probe) for variant, probe in taken.items()}
        return Record(**stored, probes=probes)
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(
            f"{path.name} is not a recorded result: {error}; restore it from version"
            " control"
        ) from error


def run_missing(
    name: str,
    command: Sequence[str],
    configuration: Any,
    runs: Iterable[Run],
    say: Callable[[str], None] | None = None,
    folder: Path | None = None,
    data: Callable[[], str] | None = None,
) -> Path:
    """Do the runs that a record lacks, and save it after each: whoever interrupts it
    loses one. Runs of other variants and seeds stay as they are."""
    folder, read = folder or RESULTS, None
    if "variants" not in as_json(configuration):
        held(name, configuration, folder=folder)  # an error before any work is done
    for key, run in runs:
        variant = variant_of(key) if "seed" in key else ""
        results = held(name, configuration, variant, folder)
        if any(result.items() >= key.items() for result in results):
            continue
        found = run()
        if data is not None and read is None:
            read = data()
        add(name, command, configuration, {**key, **found}, read, folder)
        if say is not None:
            say(
                f"{', '.join(f'{what} {value}' for what, value in key.items())}:"
                f" {found}"
            )
    return folder / f"{name}.json"


def results_of(
    name: str, folder: Path | None = None, least: int = 1
) -> list[dict[str, Any]]:
    """Return what a record holds of the variants that have `least` runs; none if
    nothing is recorded yet. So a page can be built while a study is recorded."""
    folder = folder or RESULTS
    known = (folder / f"{name}.json").is_file()
    results = load(name, folder).results if known else []
    runs = Counter(result["variant"] for result in results)
    return [result for result in results if runs[result["variant"]] >= least]


def not_yet(command: str) -> str:
    """Say on a page that a comparison has no runs yet, and what makes them."""
    return f"> **Not recorded yet.** `{command}` makes the runs of this comparison."


def recorded_note(record: Record, what: str) -> str:
    """Write what stands before recorded figures on a page, so that nobody takes them
    for live ones, or for those of today's code where they are stale."""
    made_on = record.machine
    threads = f"{made_on['threads']} thread{'' if made_on['threads'] == 1 else 's'}"
    stale = STALE.get(record.name)
    return (
        f"> **Recorded, not live.** {what} recorded by `{record.command}` on"
        f" {record.date[:10]} ({made_on['name']}, {threads}, torch {made_on['torch']},"
        f" commit {record.commit[:10]}); all figures, seeds and settings are in"
        f" `book/results/{record.name}.json`."
        + (f"\n>\n> **Stale.** The code has changed since: {stale}." if stale else "")
    )


def mean_text(values: Sequence[float], digits: int = 1, least: int = 2) -> str:
    """Write the mean over seeds ± half of its 95% interval, where there are at least so
    many; nothing where there are none."""
    if len(values) < least:
        return f"{sum(values) / len(values):.{digits}f}" if values else ""
    interval = mean_interval(values)
    return f"{interval.mean:.{digits}f} ± {interval.half_width:.{digits}f}"


def lead_text(lead: Interval) -> str:
    """Write a difference with its interval, in bold where that leaves 0 out."""
    text = f"{lead.mean:+.1f} ± {lead.half_width:.1f}".replace("-", "\N{MINUS SIGN}")
    return f"**{text}**" if abs(lead.mean) > lead.half_width else text


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
