"""Chapter 7's recorded experiment: ELMo, GPT and BERT on stories with pseudo-words, and
what their vectors tell apart.

It is run with ``course record contexts --data stories``; a run is recorded when it
ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from course_lab.ch06_pretraining.few_stories import story_corpus
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
from course_lab.study import Study, shortened

AVERAGED = 20  # steps, for one point of a curve of losses


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
    states = states_of_uses(model, uses)
    number_states = states_of_uses(model, number_uses)
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


class Inputs(NamedTuple):
    """Stories with pseudo-words, and the ids of their words."""

    data: SenseStories
    vocab: Mapping[str, int]


def read(study: Study, source: str | None, _: str | None) -> Inputs:
    """Read what all models are trained on and measured by."""
    stories = read_stories(source=source)
    width = study.shared["recipe"].max_length
    return Inputs(read_sense_stories(stories, width=width), stories.tokenizer.vocab)


def run_of(study: Study, kind: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Do one run of a study."""
    return run(kind, study.shared["recipe"].seeded(seed), *inputs)


def probe(study: Study, kind: str) -> tuple[Study, Inputs]:
    """Shorten a study, with few stories for it."""
    corpus = story_corpus()
    data = read_sense_stories(corpus, pairs=3, per_sense=8, stories=400, least=20)
    short = {"recipe": little(study.shared["recipe"])}
    return replace(study, shared=short), Inputs(data, corpus.tokenizer.vocab)


def little(recipe: ContextRecipe) -> ContextRecipe:
    """Return a recipe that takes a second."""
    return shortened(
        recipe, steps=4, warmup=1, precision="float32", progress=False, batch_size=8
    )


STUDIES = {
    "stories": Study(
        "contexts-stories",
        dict.fromkeys(KINDS),
        read,
        run_of,
        probe,
        {"recipe": RECIPE},
        ("stories",),
        unprobed=("plane",),  # an axis of it may point either way
    )
}
