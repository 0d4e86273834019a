"""Probes of chapter 7's recorded models and layer tables."""

from dataclasses import replace
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from course_lab import stand_ins
from course_lab.ch06_pretraining.probes import story_corpus
from course_lab.ch07_embeddings.context_models import ContextRecipe
from course_lab.ch07_embeddings.context_runs import ContextStudy, run
from course_lab.ch07_embeddings.layer_table import LayerStudy, measured, untrained_like
from course_lab.ch07_embeddings.sense_stories import read_sense_stories
from course_lib.bert.files import load_bert

STEPS = 4


def shortened(recipe: ContextRecipe) -> ContextRecipe:
    """Return a recipe that takes a second."""
    training = replace(
        recipe.training,
        steps=STEPS,
        warmup_steps=1,
        precision="float32",
        progress=False,
    )
    return replace(recipe, training=training, batch_size=8)


def probe_contexts(study: ContextStudy, kind: str) -> dict[str, Any]:
    """Train a model for a few steps, and measure it before and after."""
    corpus = story_corpus()
    data = read_sense_stories(corpus, pairs=3, per_sense=8, stories=400, least=20)
    found = run(kind, shortened(study.recipe), data, corpus.tokenizer.vocab)
    for part in ("untrained", "trained"):
        del found[part]["plane"]  # an axis of it may point either way
    return found


def probe_layers(study: LayerStudy, variant: str) -> dict[str, Any]:
    """Measure the stand-in of a checkpoint, or the same untrained."""
    model = load_bert(stand_ins.checkpoint())
    if variant.endswith(", untrained"):
        model = untrained_like(model, 0)
    data = _senses() if study.data == "senses" else _tagged()
    return measured(study, model, stand_ins.tokenizer(), data, 0)


def _tagged() -> DatasetDict:
    """Sentences whose long words are entities."""
    of_words = [sentence.split() for sentence in stand_ins.sentences()[:120]]
    tags = [[int(len(word) > 6) for word in words] for words in of_words]
    names = ClassLabel(names=["O", "B-LONG"])
    features = Features({"tokens": List(Value("string")), "ner_tags": List(names)})
    table = Dataset.from_dict({"tokens": of_words, "ner_tags": tags}, features=features)
    return DatasetDict(train=table.select(range(80)), test=table.select(range(80, 120)))


def _senses() -> DatasetDict:
    """The word "the" before short words, and before others."""
    rows = []
    for text in stand_ins.sentences():
        if text.startswith("the "):
            sense = str(len(text.split()[1]) > 5)
            rows.append(
                {"text": text, "start": 0, "end": 3, "word": "the", "sense": sense}
            )
    return DatasetDict(test=Dataset.from_list(rows[:60]))
