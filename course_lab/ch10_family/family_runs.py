"""Chapter 10's recorded experiments: each of `STUDIES` is run with ``course record
family --data <name>``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from course_lab import records
from course_lab.ch10_family import family_pairs, family_prompts, family_stories


class Runner(Protocol):
    """What runs the variants of a study."""

    def run(self, name: str, seed: int) -> dict[str, Any]:
        """Train and measure one variant."""


Study = family_stories.StoryStudy | family_pairs.PairStudy | family_prompts.PromptStudy
STUDIES: dict[str, Study] = {
    "stories": family_stories.STUDY,
    "pydocs-pair": family_pairs.STUDY,
    "prompts": family_prompts.STUDY,
}
RUNNERS: Mapping[str, Callable[[Any, str | None], Runner]] = {
    "stories": family_stories.StoryRunner.on,
    "pydocs-pair": family_pairs.PairRunner,
    "prompts": family_prompts.PromptRunner.on,
}

#: What a study reads, where it is not called so.
DATA = {"prompts": "stories"}


def record_family(
    label: str,
    command: Sequence[str],
    study: Study,
    variants: Sequence[str],
    seeds: Sequence[int],
    source: str | None,
) -> Path:
    """Do the runs that a record lacks, and save it after each."""

    def runs() -> Iterator[records.Run]:
        runner = RUNNERS[study.task](study, source)
        for seed in seeds:
            for variant in variants:
                yield (
                    {"variant": variant, "seed": seed},
                    partial(runner.run, variant, seed),
                )

    read = partial(records.edition, [DATA.get(study.task, study.task)], source)
    return records.run_missing(label, command, study, runs(), data=read)
