"""Chapter 6's recorded experiments on the `stories`: what is hidden, how, and by which
model.

`PLANS` holds what is compared. In "plain", `PLAIN` is the recipe of the paper made
small, and each variant adds one thing of ours to it or changes how it masks. In
"stories", `BASE` is like the longer recipe of `pretraining_stories`, with more and
smaller steps and fewer words hidden; each variant changes one thing of it. "two-worlds"
is what the chapter trains live, and
"stories-long" that longer recipe, both with their curves. A plan is run with ``course
record pretraining --data stories``, one variant after the other; a run is recorded
when it ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from course_lab.ch06_pretraining.few_stories import (
    FEW_STORIES,
    NUMBER,
    little,
    story_corpus,
)
from course_lab.ch06_pretraining.pretrain_cost import Work, training_flops
from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretrain_results import work_of
from course_lab.ch06_pretraining.pretrain_scores import (
    ONLY_MASK,
    evaluation,
    guess_with,
)
from course_lab.ch06_pretraining.pretraining_probes import Places, probe, read_places
from course_lab.ch06_pretraining.pretraining_questions import ask
from course_lab.ch06_pretraining.pretraining_stories import (
    LIVE,
    QUESTIONS,
    RECIPE,
    STUDIED,
    SUBJECTS,
    WITH_ADAMW,
    Recipe,
    StoryRun,
    answers,
    read_stories,
    train_on_stories,
)
from course_lab.study import Study

PLACES = 1000  # to train each probe on, and as many to test it on
PASSES = 4  # over the test split, each with other hidden words


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


def summary(
    run: StoryRun,
    recipe: Recipe,
    corpus: Corpus,
    questions: Mapping[str, Sequence[Any]],
    places: Mapping[str, tuple[Places, Places]],
) -> dict[str, Any]:
    """Measure a run on stories that nobody is trained on, and probe it."""
    where = corpus, "test", recipe.last.max_length, PASSES
    scores = evaluation(*where)(run.model).figures()
    masked = evaluation(*where, ONLY_MASK)(run.model).figures()
    scores["mask_accuracy"] = masked["mlm_accuracy"]
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


class Inputs(NamedTuple):
    """Stories, questions by split, and places for the probes of states."""

    corpus: Corpus
    questions: Mapping[str, Mapping[str, Sequence[Any]]]
    places: Mapping[str, tuple[Places, Places]]


def inputs_of(corpus: Corpus, longest: int, questions: int, places: int) -> Inputs:
    """Ask so many questions of a kind, and find so many places, in a corpus."""
    asked = {x: ask(corpus, longest, questions, x) for x in ("validation", "test")}
    return Inputs(corpus, asked, read_places(corpus, longest, places))


def read(study: Study, source: str | None, _: str | None) -> Inputs:
    """Read what all variants are trained on and measured by."""
    corpus = read_stories(study.recipe, source)
    return inputs_of(corpus, study.recipe.last.max_length, QUESTIONS, PLACES)


def run(study: Study, variant: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Pre-train a model, score it and probe its states."""
    recipe = study.variants[variant].trained(seed=seed)
    trained = train_on_stories(recipe, inputs.corpus, inputs.questions["validation"])
    test = inputs.questions["test"]
    return summary(trained, recipe, inputs.corpus, test, inputs.places)


def probe_inputs(study: Study, variant: str) -> tuple[Study, Inputs]:
    """Shorten a pre-training, with few stories for it."""
    recipe = little(study.variants[variant])
    corpus = story_corpus(recipe.last.data, FEW_STORIES)
    inputs = inputs_of(corpus, recipe.last.max_length, NUMBER, NUMBER)
    return replace(study, variants={variant: recipe}), inputs


def study_of(name: str, variants: Mapping[str, Recipe]) -> Study:
    """Return a comparison; all are measured on the same text."""
    first = next(iter(variants.values())).last
    return Study(
        f"pretraining-{name}",
        variants,
        read,
        run,
        probe_inputs,
        data=(first.data,),
        alike=lambda x: (x.last.data, x.last.vocab_size, x.last.max_length),
    )


PLAIN = "plain"
_PLAIN = (
    WITH_ADAMW.changed(preferred=(), heads=None)
    .masked(rate=0.15)
    .trained(precision="float32")
)
_CONTENT_FIRST = replace(_PLAIN.stages[0], preferred=SUBJECTS)
BASE = "rate 0.20"
_BASE = STUDIED.masked(rate=0.2)
_COMPARED: dict[str, dict[str, Recipe]] = {
    "stories": {
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
    },
    "two-worlds": {"as live": LIVE},
    "stories-long": {
        "subjects first": RECIPE.trained(precision="float32", evaluate_every=100)
    },
    "plain": {
        PLAIN: _PLAIN,
        "Muon": _PLAIN.changed(optimizer="muon").trained(learning_rate=1e-3),
        "content words first": Recipe((_CONTENT_FIRST, _PLAIN.last)),
        "always [MASK]": _PLAIN.masked(mask_share=1.0, random_share=0.0),
        "30% masked": _PLAIN.masked(rate=0.3),
    },
}
PLANS = {name: study_of(name, variants) for name, variants in _COMPARED.items()}
