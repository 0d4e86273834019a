"""Probes of chapter 10's recorded models."""

from dataclasses import replace
from typing import Any

from course_lab import stand_ins
from course_lab.ch06_pretraining.pretraining_questions import ask
from course_lab.ch06_pretraining.probes import FEW_STORIES, NUMBER, story_corpus
from course_lab.ch06_pretraining.probes import shortened as shortened_stages
from course_lab.ch07_embeddings.probes import shortened
from course_lab.ch10_family.family_pairs import PairRunner, PairStudy
from course_lab.ch10_family.family_prompts import PromptRunner, PromptStudy
from course_lab.ch10_family.family_stories import StoryRunner, StoryStudy

STEPS = 3


def probe_stories(study: StoryStudy, variant: str) -> dict[str, Any]:
    """Train a member of the family for a few steps, after its teacher if it has one."""
    short = {
        name: replace(x, recipe=shortened_stages(x.recipe))
        for name, x in study.variants.items()
    }
    corpus = story_corpus("stories", FEW_STORIES)
    longest = short[variant].recipe.last.max_length
    questions = ask(corpus, longest, NUMBER, "test")
    runner = StoryRunner(replace(study, variants=short), corpus, questions)
    return runner.run(variant, 0)


def probe_pairs(study: PairStudy, variant: str) -> dict[str, Any]:
    """Train one of the two ways to compare for a few steps."""
    runner = PairRunner(
        replace(study.shortened(STEPS), batch_size=8), stand_ins.folder_of_tables()
    )
    return runner.run(variant, 0)


def probe_prompts(study: PromptStudy, variant: str) -> dict[str, Any]:
    """Train a causal model for a few steps, and ask or fine-tune it."""
    tuning = replace(study.tuning, steps=STEPS, warmup_steps=1)
    short = replace(study, recipe=shortened(study.recipe), tuning=tuning)
    return PromptRunner(short, story_corpus()).run(variant, 0)
