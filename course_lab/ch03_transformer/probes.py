"""Probes of chapter 3's recorded models."""

from typing import Any

from course_lab.ch01_seq2seq.probes import probe
from course_lab.ch03_transformer import pronouns
from course_lab.ch03_transformer.plans import Plan


def probe_transformer(plan: Plan, variant: str) -> dict[str, Any]:
    """Take the probe of one side of a comparison."""
    asked = plan.variants[variant]
    of_pronouns = asked.recipe.data == "pronouns"
    return probe(
        asked.recipe, asked.attention, pronouns.of_pronouns if of_pronouns else None
    )
