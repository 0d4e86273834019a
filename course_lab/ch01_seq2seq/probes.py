"""Probes of chapter 1's recorded models, and of chapter 3's, which are trained by the
same functions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from course_lab import stand_ins
from course_lab.ch01_seq2seq import translator_measures
from course_lab.ch01_seq2seq.seq2seq import Corpus, Recipe, train_and_score
from course_lab.ch01_seq2seq.text import encode_pairs, train_tokenizer
from course_lab.ch01_seq2seq.translator_measures import Measure
from course_lib.data import pronouns, translation

STEPS = 4


def shortened(recipe: Recipe) -> Recipe:
    """Return a recipe that takes a second, and draws nothing by chance."""
    shorter = recipe.shortened(STEPS)
    training = replace(
        shorter.training,
        warmup_steps=1,
        evaluate_every=2 if recipe.training.evaluate_every else None,
        precision="float32",
        progress=False,
    )
    transformer = recipe.transformer and {**recipe.transformer, "dropout": 0.0}
    return replace(
        shorter,
        training=training,
        transformer=transformer,
        dropout=0.0,
        batch_size=16,
        max_length=8,
        length_bins=(8, stand_ins.LONGEST),
    )


def translations(data: str, tokenizer: str, vocab_size: int) -> Corpus:
    """Return sentence pairs, encoded: of pronouns if `data` is called so."""
    rows: dict[str, Sequence[Mapping[str, Any]]]
    if data == "pronouns":
        rows = {
            split: pronouns.generate(split)[:most]
            for split, most in stand_ins.SIZES.items()
        }
    else:
        made = translation.generate(
            sum(stand_ins.SIZES.values()), seed=2, max_length=stand_ins.LONGEST
        )
        rows = {
            split: [made.pop() for _ in range(most)]
            for split, most in stand_ins.SIZES.items()
        }
    text = {
        split: {name: [row[name] for row in part] for name in part[0]}
        for split, part in rows.items()
    }
    tokenizers = (
        train_tokenizer(text["train"]["en"], tokenizer, min(vocab_size, 400)),
        train_tokenizer(text["train"]["fr"], tokenizer, min(vocab_size, 400)),
    )
    pairs = {
        split: encode_pairs(columns["en"], columns["fr"], tokenizers)
        for split, columns in text.items()
    }
    return Corpus(text, pairs, tokenizers)


def probe(
    recipe: Recipe, attention: str | None, measure: Measure | None
) -> dict[str, Any]:
    """Train a translator for a few steps, score it and measure it."""
    recipe = shortened(recipe)
    corpus = translations(recipe.data, recipe.tokenizer, recipe.vocab_size)
    trained = train_and_score(recipe, corpus, attention, seed=0)
    found = trained.summary()
    return {**found, **(measure(trained, recipe, corpus) if measure else {})}


def probe_seq2seq(recipe: Recipe, variant: str | None) -> dict[str, Any]:
    """Take the probe of a recurrent model, which is called by its attention."""
    aligned = recipe.data == "translation"
    measure = translator_measures.of_translation if aligned else None
    return probe(recipe, None if variant in (None, "none") else variant, measure)
