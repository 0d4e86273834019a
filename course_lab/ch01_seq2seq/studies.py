"""Chapter 1's recorded studies of `RECIPES`, and how a run of a translator is done and
probed, chapter 3's too."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from course_lab import stand_ins
from course_lab.ch01_seq2seq import seq2seq
from course_lab.ch01_seq2seq.seq2seq import RECIPES, Corpus, Recipe
from course_lab.ch01_seq2seq.text import encode_pairs, train_tokenizer
from course_lab.ch01_seq2seq.translator_measures import Measure, of_translation
from course_lab.study import Study, shortened
from course_lib.data import pronouns, translation

CHECKPOINTS = Path("_build") / "experiments"  # from which an interrupted run goes on


class Pairs(NamedTuple):
    """What runs read, and where they leave their checkpoints, if they do."""

    corpus: Corpus
    checkpoints: Path | None


def read_pairs(study: Study, source: str | None, _: str | None) -> Pairs:
    """Read the sentence pairs of a study."""
    recipe = study.recipe or Recipe(**study.shared)
    return Pairs(seq2seq.prepare(recipe, source), CHECKPOINTS)


def run_translator(
    name: str,
    recipe: Recipe,
    attention: str | None,
    seed: int,
    pairs: Pairs,
    measure: Measure | None,
) -> dict[str, Any]:
    """Train a translator, score it and measure it."""
    checkpoint = None
    if pairs.checkpoints is not None:
        pairs.checkpoints.mkdir(parents=True, exist_ok=True)
        kept = f"{name}-{seed}.safetensors".replace(" ", "-")
        checkpoint = pairs.checkpoints / kept
    trained = seq2seq.train_and_score(recipe, pairs.corpus, attention, seed, checkpoint)
    measured = measure(trained, recipe, pairs.corpus) if measure else {}
    return {**trained.summary(), **measured}


def run(study: Study, variant: str, seed: int, pairs: Pairs) -> dict[str, Any]:
    """Do one run of a recurrent model, which is called by its attention."""
    recipe = Recipe(**study.shared)
    measure = of_translation if recipe.data == "translation" else None
    attention = None if variant == "none" else variant
    name = f"{study.name}-{variant}"
    return run_translator(name, recipe, attention, seed, pairs, measure)


def study_of(name: str, recipe: Recipe) -> Study:
    """Return the study of a recipe: the recurrent models that it names."""
    shared = {key: x for key, x in vars(recipe).items() if key != "attentions"}
    return Study(
        f"seq2seq-{name}",
        dict.fromkeys(recipe.attentions),
        read_pairs,
        run,
        probe,
        shared,
        (recipe.data,),
        listed="attentions",
    )


# -- probes
# --------------------------------------------------------------------------------------


def probe(study: Study, variant: str) -> tuple[Study, Pairs]:
    """Shorten a study of recurrent models, with little data for it."""
    recipe = little(Recipe(**study.shared))
    return replace(study, shared=vars(recipe)), few_pairs(recipe)


def little(recipe: Recipe) -> Recipe:
    """Return a recipe that takes a second, and draws nothing by chance."""
    every = 2 if recipe.training.evaluate_every else None
    return shortened(
        recipe,
        steps=4,
        warmup=1,
        evaluate_every=every,
        precision="float32",
        progress=False,
        dropout=0.0,
        batch_size=16,
        max_length=8,
        length_bins=(8, stand_ins.LONGEST),
    )


def few_pairs(recipe: Recipe) -> Pairs:
    """Return few sentence pairs, encoded: of pronouns if the recipe's are."""
    sizes = stand_ins.SIZES
    rows: dict[str, Sequence[Mapping[str, Any]]]
    if recipe.data == "pronouns":
        rows = {x: pronouns.generate(x)[:most] for x, most in sizes.items()}
    else:
        made = translation.generate(
            sum(sizes.values()), seed=2, max_length=stand_ins.LONGEST
        )
        rows = {x: [made.pop() for _ in range(most)] for x, most in sizes.items()}
    text = {
        split: {name: [row[name] for row in part] for name in part[0]}
        for split, part in rows.items()
    }
    train = partial(
        train_tokenizer, kind=recipe.tokenizer, vocab_size=min(recipe.vocab_size, 400)
    )
    tokenizers = train(text["train"]["en"]), train(text["train"]["fr"])
    pairs = {
        split: encode_pairs(columns["en"], columns["fr"], tokenizers)
        for split, columns in text.items()
    }
    return Pairs(Corpus(text, pairs, tokenizers), None)


STUDIES = {name: study_of(name, recipe) for name, recipe in RECIPES.items()}
