"""A recorded experiment: what it compares, what does one of its runs, and what its
probe reads.

``course record NAME`` does the runs of a study that its record lacks. The same `run` is
called on little data for the probe of each variant, and by the test of the experiment.
"""

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from course_lab import configurations, records
from course_lab.probing import Probe, figures, probing

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Study:
    """One recorded experiment."""

    name: str  # of its record
    #: By name, what decides a variant's runs beside `shared`; None if the name does.
    variants: Mapping[str, Any]
    #: (study, source, checkpoint) -> what all runs read.
    read: Callable[["Study", str | None, str | None], Any]
    #: (study, variant, seed, what was read) -> what this run found.
    run: Callable[["Study", str, int, Any], dict[str, Any]]
    #: (study, variant) -> the study shortened, and little data for `run` to read.
    probe: Callable[["Study", str], tuple["Study", Any]]
    #: By name, what decides the runs of all variants.
    shared: Mapping[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ()  # the data sets that are read; a run stores their digest
    #: Settings of a variant -> what of them decides how data is read: the same for all,
    #: or their scores could not be compared.
    alike: Callable[[Any], Hashable] = lambda settings: None
    #: Where the configuration in a record has the variants; None for nowhere.
    listed: str | None = "variants"
    #: Whether runs start with a checkpoint. They are called by its name too.
    of_checkpoint: bool = False
    #: The only ones that there may be; None for any.
    seeds: tuple[int, ...] | None = None
    unprobed: tuple[str, ...] = ()  # figures that depend on more than the code
    #: (record, result, what was read): what is done with a run once it is recorded.
    finish: Callable[[records.Record, Mapping[str, Any], Any], None] | None = None

    def __post_init__(self) -> None:
        if not self.variants:
            raise ValueError(f"{self.name} needs at least one variant")
        ways = {self.alike(settings) for settings in self.variants.values()}
        if len(ways) > 1:
            raise ValueError(
                f"the variants of {self.name} read their data in {len(ways)} ways, so"
                " their scores cannot be compared; give all the same of"
                f" {' and '.join(map(str, sorted(ways, key=str)))}"
            )

    @property
    def recipe(self) -> Any:
        """The recipe of the first variant, by which the data of all is read."""
        first = next(iter(self.variants.values()))
        return getattr(first, "recipe", first)

    @property
    def configuration(self) -> dict[str, Any]:
        """All settings, as a record holds them."""
        names = all(settings is None for settings in self.variants.values())
        variants: Any = list(self.variants) if names else self.variants
        stored = dict(self.shared)
        if self.listed is not None:
            stored[self.listed] = variants
        return configurations.as_json(stored)

    def recorded(self, configuration: Mapping[str, Any]) -> "Study":
        """Return the study with the settings that a record holds."""
        stored = dict(configuration)
        found = self.variants if self.listed is None else stored.pop(self.listed)
        kinds = {type(settings) for settings in self.variants.values()}
        [kind] = kinds if len(kinds) == 1 else [Any]
        variants = (
            {name: configurations.read(kind, x) for name, x in found.items()}
            if isinstance(found, Mapping)
            else dict.fromkeys(found)
        )
        shared = {
            name: configurations.read(type(self.shared.get(name)), x)
            for name, x in stored.items()
        }
        return replace(self, variants=variants, shared=shared)

    def shortened(self, steps: int) -> "Study":
        """Return the same comparison with so many steps in each training, under a name
        of its own."""
        short = replace(
            self,
            name=f"{self.name}-{steps}-steps",
            variants=shortened(self.variants, steps),
            shared=shortened(self.shared, steps),
        )
        if short.configuration == self.configuration:
            raise ValueError(
                f"{self.name} trains nothing for a number of steps; leave out --steps"
            )
        return short

    def own(self, variant: str) -> str:
        """Return the variant of a recorded run, which may be called by its checkpoint
        too."""
        own = configurations.key_of(self.variants, variant)
        if own is None:
            raise ValueError(f"{self.name} has no variant {variant!r} today")
        return own

    def fingerprint(self, variant: str) -> dict[str, float]:
        """Take the probe of a variant, with the code of today."""
        own = self.own(variant)
        with probing() as losses:
            short, read = self.probe(self, own)
            return figures(short.run(short, own, 0, read), losses, self.unprobed)

    def key(self, variant: str, seed: int, checkpoint: str | None) -> dict[str, Any]:
        """Return what tells a run from the others of its record."""
        if self.listed == "attentions":  # chapter 1 calls a model by its attention
            return {"attention": None if variant == "none" else variant, "seed": seed}
        of = "" if checkpoint is None else f"{Path(checkpoint).name}, "
        return {"variant": of + variant, "seed": seed}


def shortened(
    settings: Settings, steps: int, warmup: int | None = None, **others: Any
) -> Settings:
    """Return settings in which all trainings have so many steps, with at most `warmup`
    of warm-up, and all fields of the other names these values."""
    if isinstance(settings, Mapping):
        inside = dict(settings)
    elif dataclasses.is_dataclass(settings):
        inside = {
            x.name: getattr(settings, x.name) for x in dataclasses.fields(settings)
        }
    elif isinstance(settings, tuple) and type(settings) is tuple:
        parts = tuple(shortened(x, steps, warmup, **others) for x in settings)
        return parts  # type: ignore[return-value]
    else:
        return settings
    changed = {
        name: others[name] if name in others else shortened(x, steps, warmup, **others)
        for name, x in inside.items()
    }
    if isinstance(settings, Mapping):
        return changed  # type: ignore[return-value]
    if "steps" in changed:
        changed["steps"] = steps
    if "warmup_steps" in changed:
        least = steps if warmup is None else warmup
        changed["warmup_steps"] = min(changed["warmup_steps"], least)
    return replace(settings, **changed)  # type: ignore[type-var]


def record(
    study: Study,
    command: Sequence[str],
    variants: Sequence[str],
    seeds: Sequence[int],
    source: str | None = None,
    checkpoint: str | None = None,
    probed: bool = True,
) -> Path:
    """Do the runs that the record of a study lacks, and save it after each; refuse runs
    of a variant that is stale, and take the probes of new ones."""
    keys = {
        (variant, seed): study.key(variant, seed, checkpoint)
        for seed in seeds
        for variant in variants
    }
    missing = {}
    for asked, key in keys.items():
        called = records.variant_of(key)
        results = records.held(study.name, study.configuration, called)
        if not any(result.items() >= key.items() for result in results):
            missing[asked] = called
    for called in dict.fromkeys(missing.values()):
        refuse_stale(study, called)

    @cache
    def read() -> Any:
        return study.read(study, source, checkpoint)

    def done(variant: str, seed: int) -> Callable[[], dict[str, Any]]:
        return lambda: study.run(study, variant, seed, read())

    runs = [(key, done(*asked)) for asked, key in keys.items()]
    path = records.run_missing(
        study.name,
        command,
        study.configuration,
        runs,
        print,
        data=lambda: records.edition(study.data, source),
    )
    found = records.load(study.name, path.parent)
    if study.finish is not None:
        for result in found.results:
            if any(result.items() >= keys[asked].items() for asked in missing):
                study.finish(found, result, read())
    ran = dict.fromkeys(run["variant"] for run in found.runs)
    lacking = [variant for variant in ran if variant not in found.probes]
    if probed and lacking:
        taken = {x: Probe(study.fingerprint(x), records.commit()) for x in lacking}
        with records.writing(study.name, path.parent):
            now = records.load(study.name, path.parent)
            records.save(replace(now, probes={**now.probes, **taken}), path.parent)
    return path


def refuse_stale(study: Study, variant: str) -> None:
    """Raise ValueError if the probe that a record holds of a variant has other figures
    with the code of today."""
    if not (records.RESULTS / f"{study.name}.json").is_file():
        return
    probe = records.load(study.name, records.RESULTS).probes.get(variant)
    found = probe and probe.differences(study.fingerprint(variant))
    if found:
        told = "; ".join(f"{name}: {x}" for name, x in list(found.items())[:3])
        raise ValueError(
            f"{variant!r} of {study.name} is stale, and no run is added to it: since it"
            f" was recorded the code computes something else ({told}); give what it"
            " computes now another name, or move the file away to record all anew"
        )
