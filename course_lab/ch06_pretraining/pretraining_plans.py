"""Chapter 6's recorded experiments on the `stories`: what is hidden, how, and by which
model, three seeds of each.

`PLANS` holds what is compared. In "stories", `BASE` is like the longer recipe of
`pretraining_stories`, with more and smaller steps and fewer words hidden; each variant
changes one thing of it. "two-worlds" is what the chapter trains live, and
"stories-long" that longer recipe, both with their curves. A plan is run with ``course
record pretraining --data stories``, one variant after the other; a run is recorded
when it ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_lab import records
from course_lab.ch06_pretraining.pretrain_cost import Work, training_flops
from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretrain_results import work_of
from course_lab.ch06_pretraining.pretrain_scores import evaluation, guess_with
from course_lab.ch06_pretraining.pretraining_probes import Places, probe, read_places
from course_lab.ch06_pretraining.pretraining_questions import ask
from course_lab.ch06_pretraining.pretraining_stories import (
    LIVE,
    QUESTIONS,
    RECIPE,
    STUDIED,
    WITH_ADAMW,
    Recipe,
    StoryRun,
    answers,
    read_stories,
    train_on_stories,
)

PLACES = 1000  # to train each probe on, and as many to test it on
PASSES = 4  # over the test split, each with other hidden words


@dataclass(frozen=True)
class Study:
    """Variants of a pre-training that are compared.

    Parameters
    ----------
    variants
        By name; all are measured on the same text, in the same vocabulary and lengths.
    """

    variants: dict[str, Recipe]

    def __post_init__(self) -> None:
        if not self.variants:
            raise ValueError("a study needs at least one variant")
        last = [recipe.last for recipe in self.variants.values()]
        kinds = {(plan.data, plan.vocab_size, plan.max_length) for plan in last}
        if len(kinds) > 1:
            raise ValueError(
                f"the variants read their text in {len(kinds)} ways, so their scores"
                " cannot be compared; give all the same data, vocab_size and"
                " max_length"
            )

    def shortened(self, steps: int) -> "Study":
        """Return the same comparison with fewer steps or more: so many in the longest
        variant."""
        longest = max(recipe.steps for recipe in self.variants.values())
        return Study(
            {
                name: recipe.shortened(steps / longest)
                for name, recipe in self.variants.items()
            }
        )


def operations(recipe: Recipe) -> float:
    """Return what a recipe costs if all its sequences are of full length, and all
    tokens hidden at the full rate."""
    total = 0.0
    for plan in recipe.stages:
        lengths = np.full(plan.batch_size, plan.max_length)
        chosen = plan.masking.rate * float(lengths.sum())
        total += plan.training.steps * training_flops(
            plan.config(plan.vocab_size), lengths, chosen
        )
    return total


def _sized(recipe: Recipe, size: str) -> Recipe:
    """The recipe for another size of model, with as many operations in all."""
    other = recipe.changed(size=size)
    return other.shortened(operations(recipe) / operations(other))


BASE = "rate 0.20"
_BASE = STUDIED.masked(rate=0.2)
PLANS: dict[str, Study] = {
    "stories": Study(
        {
            BASE: _BASE,
            **{
                f"rate {rate:.2f}": _BASE.masked(rate=rate)
                for rate in (0.05, 0.15, 0.3, 0.4, 0.75)
            },
            "always [MASK]": _BASE.masked(mask_share=1.0, random_share=0.0),
            "all words from the start": _BASE.changed(preferred=()),
            "no next sentence": _BASE.changed(next_sentence=False),
            "static masking": _BASE.changed(static_masking=True),
            "AdamW": WITH_ADAMW.masked(rate=0.2),
            "mini, equal compute": _sized(_BASE, "mini"),
        }
    ),
    "two-worlds": Study({"as live": LIVE}),
    "stories-long": Study(
        {"subjects first": RECIPE.trained(precision="float32", evaluate_every=100)}
    ),
}


def record_study(
    label: str,
    command: Sequence[str],
    study: Study,
    variants: Sequence[str],
    seeds: Sequence[int],
    source: str | None,
) -> Path:
    """Do the runs that a record lacks, and save it after each."""

    def runs() -> Iterator[records.Run]:
        first = next(iter(study.variants.values()))
        corpus = read_stories(first, source)
        asked = {
            split: ask(corpus, first.last.max_length, QUESTIONS, split)
            for split in ("validation", "test")
        }
        places = read_places(corpus, first.last.max_length, PLACES)

        def run(recipe: Recipe) -> dict[str, Any]:
            trained = train_on_stories(recipe, corpus, asked["validation"])
            return summary(trained, recipe, corpus, asked["test"], places)

        for seed in seeds:
            for variant in variants:
                yield (
                    {"variant": variant, "seed": seed},
                    partial(run, study.variants[variant].trained(seed=seed)),
                )

    read = partial(
        records.edition, [next(iter(study.variants.values())).last.data], source
    )
    return records.run_missing(label, command, study, runs(), data=read)


def summary(
    run: StoryRun,
    recipe: Recipe,
    corpus: Corpus,
    questions: Mapping[str, Sequence[Any]],
    places: Mapping[str, tuple[Places, Places]],
) -> dict[str, Any]:
    """Measure a run on stories that nobody is trained on, and probe it."""
    scores = evaluation(corpus, "test", recipe.last.max_length, PASSES)(
        run.model
    ).figures()
    if not recipe.last.next_sentence:  # a head that was never trained
        scores = {
            name: value for name, value in scores.items() if not name.startswith("nsp")
        }
    with torch.no_grad():
        right = answers(guess_with(run.model), corpus, questions)
    probed = probe(run.model, corpus.tokenizer.vocab, places)
    return {
        "scores": scores,
        "questions": right,
        "probes": probed.accuracy,
        "downstream": (
            sum(layers[-1] for layers in probed.accuracy.values())
            / len(probed.accuracy)
        ),
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "steps": len(run.history.steps),
        "work": asdict(work_of_recipe(recipe, corpus)),
        "seconds": run.history.seconds[-1],
        "curve": {"step": run.history.metric_steps, **run.history.metrics},
    }


def work_of_recipe(recipe: Recipe, corpus: Corpus) -> Work:
    """Return what all stages of a recipe read and compute."""
    stages = [work_of(plan, corpus, plan.training.steps) for plan in recipe.stages]
    return Work(
        sum(stage.sequences for stage in stages),
        sum(stage.tokens for stage in stages),
        sum(s.flops for s in stages),
    )
