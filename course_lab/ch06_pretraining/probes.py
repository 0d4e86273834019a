"""Probes of chapter 6's recorded pre-trainings."""

from dataclasses import replace
from typing import Any

from course_lab import stand_ins
from course_lab.ch06_pretraining.pretraining_plans import Study, summary
from course_lab.ch06_pretraining.pretraining_probes import read_places
from course_lab.ch06_pretraining.pretraining_questions import ask
from course_lab.ch06_pretraining.pretraining_stories import Recipe, train_on_stories

STEPS = 3  # of each stage
NUMBER = 24  # questions of a kind, and places


def shortened(recipe: Recipe) -> Recipe:
    """Return a recipe that takes a second, and draws nothing by chance."""
    stages = tuple(
        replace(
            plan,
            training=replace(
                plan.training,
                steps=STEPS,
                warmup_steps=min(1, plan.training.warmup_steps),
                evaluate_every=None,
                precision="float32",
                progress=False,
            ),
            batch_size=8,
            dropout=0.0,
        )
        for plan in recipe.stages
    )
    return Recipe(stages)


def probe_pretraining(study: Study, variant: str) -> dict[str, Any]:
    """Pre-train a model for a few steps, score it and probe its states."""
    recipe = shortened(study.variants[variant])
    corpus = stand_ins.story_corpus(recipe.last.data, stand_ins.FEW_STORIES)
    longest = recipe.last.max_length
    asked = {
        split: ask(corpus, longest, NUMBER, split) for split in ("validation", "test")
    }
    places = read_places(corpus, longest, NUMBER)
    trained = train_on_stories(recipe, corpus, asked["validation"])
    return summary(trained, recipe, corpus, asked["test"], places)
