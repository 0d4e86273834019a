"""Chapter 3's experiments: the Transformer against the recurrent model with attention,
and the Transformer in parts.

`PLANS` holds what is compared. "translation" is all of the generated data; "short"
learns from sentences of at most 16 words and is tested on longer ones too, and the
chapter trains its Transformer live as well; "parts" leaves out or exchanges one part of
the Transformer at a time; "pronouns" has to resolve a pronoun
(:mod:`course_lab.ch03_transformer.pronouns`); "multi30k" is real captions, beside
chapter 1's record of recurrent models.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from course_lab.ch01_seq2seq.seq2seq import Recipe
from course_lab.ch01_seq2seq.studies import (
    Pairs,
    few_pairs,
    little,
    read_pairs,
    run_translator,
)
from course_lab.ch03_transformer import pronouns
from course_lab.ch03_transformer.plans import Variant, data_of
from course_lab.study import Study
from course_lib.training.loop import TrainingConfig

FULL = Recipe(
    "translation",
    batch_size=32,
    transformer={
        "dim": 128,
        "num_heads": 4,
        "num_layers": 2,
        "hidden_dim": 256,
        "norm": "pre",
        "dropout": 0.1,
    },
    training=TrainingConfig(
        steps=10000,
        learning_rate=2e-3,
        warmup_steps=400,
        schedule="linear",
        evaluate_every=1000,
    ),
)
SHORT = Recipe(
    "translation",
    max_source=16,
    transformer={
        "dim": 64,
        "num_heads": 4,
        "num_layers": 2,
        "hidden_dim": 256,
        "norm": "pre",
    },
    training=TrainingConfig(
        steps=600,
        learning_rate=5e-3,
        warmup_steps=60,
        schedule="linear",
        progress=False,
    ),
    length_bins=(8, 16, 24, 32),
)
CAPTIONS = Recipe(
    "multi30k",
    tokenizer="bpe",
    vocab_size=4000,
    batch_size=64,
    transformer={
        "dim": 256,
        "num_heads": 4,
        "num_layers": 2,
        "hidden_dim": 512,
        "norm": "pre",
        "dropout": 0.2,
    },
    label_smoothing=0.1,
    training=TrainingConfig(
        steps=5400,
        learning_rate=1e-3,
        warmup_steps=400,
        schedule="linear",
        precision="bfloat16",
        evaluate_every=600,
    ),
    beam_size=5,
    length_bins=(8, 12, 16, 20, 40),
)


def recurrent(
    recipe: Recipe, embedding_dim: int, hidden_dim: int, learning_rate: float
) -> Variant:
    """The rival: chapter 1's model with the dot score, trained on the same batches for
    as many steps."""
    training = replace(recipe.training, learning_rate=learning_rate)
    return Variant(
        replace(
            recipe,
            embedding_dim=embedding_dim,
            hidden_dim=hidden_dim,
            training=training,
        ),
        "dot",
    )


def changed(recipe: Recipe, **settings: object) -> Variant:
    """The Transformer with some settings exchanged."""
    return Variant(replace(recipe, transformer={**recipe.transformer, **settings}))


def run(study: Study, variant: str, seed: int, pairs: Pairs) -> dict[str, Any]:
    """Do one run of one side of a comparison."""
    recipe, attention = (
        study.variants[variant].recipe,
        study.variants[variant].attention,
    )
    measure = pronouns.of_pronouns if recipe.data == "pronouns" else None
    name = f"{study.name}-{variant}"
    return run_translator(name, recipe, attention, seed, pairs, measure)


def probe(study: Study, variant: str) -> tuple[Study, Pairs]:
    """Shorten one side of a comparison, with little data for it."""
    asked = study.variants[variant]
    short = replace(asked, recipe=little(asked.recipe))
    return replace(study, variants={variant: short}), few_pairs(short.recipe)


def study_of(name: str, variants: Mapping[str, Variant]) -> Study:
    """Return a comparison; all of its variants use the same data."""
    data = {variant.recipe.data for variant in variants.values()}
    return Study(
        f"transformer-{name}",
        variants,
        read_pairs,
        run,
        probe,
        data=tuple(data),
        alike=lambda variant: data_of(variant.recipe),
    )


_COMPARED = {
    "translation": {
        "Transformer": Variant(FULL),
        "GRU with attention": recurrent(FULL, 128, 236, 3e-3),
    },
    "short": {
        "Transformer": Variant(SHORT),
        "GRU with attention": recurrent(SHORT, 64, 138, 1e-2),
    },
    "parts": {
        "Transformer": Variant(SHORT),
        "post-norm": changed(SHORT, norm="post"),
        "no layer norm": changed(SHORT, norm="none"),
        "no residuals": changed(SHORT, residual=False),
        "learned positions": changed(SHORT, positions="learned"),
        "no positions": changed(SHORT, positions="none"),
        "plain index": Variant(replace(SHORT, position_table="index")),
        "divided index": Variant(replace(SHORT, position_table="share")),
        "one head": changed(SHORT, num_heads=1),
    },
    "pronouns": {"Transformer": Variant(pronouns.RECIPE)},
    "multi30k": {"Transformer": Variant(CAPTIONS)},
}
PLANS = {name: study_of(name, variants) for name, variants in _COMPARED.items()}
