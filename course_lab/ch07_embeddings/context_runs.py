"""Chapter 7's recorded experiment: ELMo, GPT and BERT on stories with pseudo-words, and
what their vectors tell apart.

It is run with ``course record contexts --data stories``; a run is recorded when it
ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from course_lab import records
from course_lab.ch06_pretraining.pretraining_stories import read_stories
from course_lab.ch07_embeddings.context_models import (
    KINDS,
    RECIPE,
    ContextRecipe,
    build,
    train_one,
)
from course_lab.ch07_embeddings.sense_stories import SenseStories, read_sense_stories
from course_lab.ch07_embeddings.senses import (
    plane_of,
    read_off,
    separations,
    states_of_uses,
)

AVERAGED = 20  # steps, for one point of a curve of losses


@dataclass(frozen=True)
class ContextStudy:
    """Models that are compared.

    Parameters
    ----------
    variants
        Of `course_lab.ch07_embeddings.context_models.KINDS`.
    recipe
        Of all.
    """

    variants: tuple[str, ...] = KINDS
    recipe: ContextRecipe = RECIPE

    def shortened(self, steps: int) -> "ContextStudy":
        """Return the same comparison with another number of steps."""
        return replace(self, recipe=self.recipe.shortened(steps))


STUDIES: Mapping[str, ContextStudy] = {"stories": ContextStudy()}


def features_of(kind: str, hidden_size: int) -> dict[str, slice]:
    """Name the features of a state that are looked at on their own: ELMo's states have
    a half of each reader."""
    if kind != "ELMo":
        return {kind: slice(None)}
    left, right = slice(0, hidden_size), slice(hidden_size, 2 * hidden_size)
    return {
        "ELMo's left reader": left,
        "ELMo's right reader": right,
        "ELMo, both": slice(None),
    }


def measure(
    kind: str, model: nn.Module, recipe: ContextRecipe, data: SenseStories
) -> dict[str, Any]:
    """Measure what a model's vectors tell of the senses of pseudo-words."""
    uses, number_uses = data.uses["kind"], data.uses["number"]
    states, number_states = (
        states_of_uses(model, uses),
        states_of_uses(model, number_uses),
    )
    read = {
        name: [
            _rounded(read_off(layer[:, features], number_uses))
            for layer in number_states
        ]
        for name, features in features_of(kind, recipe.hidden_size).items()
    }
    return {
        "separation": [_rounded(separations(layer, uses)) for layer in states],
        "number": read,
        "plane": [
            _rounded(point) for point in plane_of(states[-1][uses.words == 0]).tolist()
        ],
    }


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]


def run(
    kind: str, recipe: ContextRecipe, data: SenseStories, vocab: Mapping[str, int]
) -> dict[str, Any]:
    """Train one model and measure it, before and after."""
    untrained = build(kind, recipe, len(vocab)).eval()
    trained = train_one(kind, recipe, data.train, vocab)
    losses = trained.history.losses
    return {
        "untrained": measure(kind, untrained, recipe, data),
        "trained": measure(kind, trained.model, recipe, data),
        "losses": _rounded(
            [
                float(np.mean(losses[at : at + AVERAGED]))
                for at in range(0, len(losses), AVERAGED)
            ]
        ),
        "parameters": sum(parameter.numel() for parameter in untrained.parameters()),
        "seconds": trained.history.seconds[-1],
    }


def record_contexts(
    label: str,
    command: Sequence[str],
    study: ContextStudy,
    kinds: Sequence[str],
    seeds: Sequence[int],
    source: str | None,
) -> Path:
    """Do the runs that a record lacks, and save it after each."""

    def runs() -> Iterator[records.Run]:
        stories = read_stories(source=source)
        data, vocab = (
            read_sense_stories(stories, width=study.recipe.max_length),
            stories.tokenizer.vocab,
        )
        for seed in seeds:
            for kind in kinds:
                yield (
                    {"variant": kind, "seed": seed},
                    partial(run, kind, study.recipe.seeded(seed), data, vocab),
                )

    read = partial(records.edition, ["stories"], source)
    return records.run_missing(label, command, study, runs(), data=read)
