"""Contrastive learning without labels: SimCSE at several temperatures, with dropout and
without, beside centring and whitening, which train nothing (`stsb`, from a folder).
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from course_lab import stand_ins
from course_lab.ch09_sentence_bert.sentence_encoders import read_encoder
from course_lab.ch09_sentence_bert.sentence_runs import judge_similarity
from course_lab.study import Study, shortened
from course_lib.data import load
from course_lib.files import CHECKPOINTS
from course_lib.finetuning.finetune import FineTuningConfig
from course_lib.modern.contrastive import simcse_pairs
from course_lib.sentence_bert.losses import InBatchObjective
from course_lib.sentence_bert.training import sentence_examples, train_sentences
from course_lib.training.batches import set_seed

LENGTH = 64


@dataclass(frozen=True)
class Contrast:
    """An encoder, trained on sentences without labels or not, and what is done to its
    vectors."""

    config: FineTuningConfig | None = None  # None for the checkpoint as it is
    temperature: float = 0.05
    dropout: float = 0.1  # of features, while it is trained
    treated: str = ""  # as in chapter 9's `judge_similarity`


@dataclass(frozen=True)
class Inputs:
    """Where tables come from, and the folder of the checkpoint."""

    source: str | None
    folder: Path = field(default_factory=lambda: CHECKPOINTS / "tiny")


def run(study: Study, name: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Train one variant, if it is to be trained, and judge it."""
    variant = study.variants[name]
    set_seed(seed)
    model = read_encoder(inputs.folder, max_length=LENGTH)
    if variant.config is not None:
        for part in model.modules():
            if hasattr(part, "p"):
                part.p = variant.dropout
        rows = load("stsb", inputs.source)["train"]
        pairs = simcse_pairs([*rows["sentence1"], *rows["sentence2"]])
        examples = sentence_examples(pairs, None, model)
        config = replace(variant.config, seed=seed)
        objective = InBatchObjective(variant.temperature)
        train_sentences(model, objective, examples, config=config)
    return {"scores": judge_similarity(model.encode, inputs.source, variant.treated)}


def probe(study: Study, name: str) -> tuple[Study, Inputs]:
    """Shorten a study, with few rows and a stand-in of the checkpoint; nothing is drawn
    by chance."""
    short = shortened(study.variants, steps=3, batch_size=8, dropout=0.0)
    inputs = Inputs(stand_ins.folder_of_tables(), stand_ins.checkpoint())
    return replace(study, variants=short), inputs


# 3e-5 was the best of 1e-5, 3e-5 and 1e-4 on the validation split, with dropout and
# without.
_CONFIG = FineTuningConfig(steps=150, learning_rate=3e-5, batch_size=64, progress=False)
STUDY = Study(
    "encoders-similarity",
    {
        "as it is": Contrast(),
        "as it is, centred": Contrast(treated="centred"),
        "as it is, whitened": Contrast(treated="whitened"),
        "SimCSE": Contrast(_CONFIG),
        "SimCSE, whitened": Contrast(_CONFIG, treated="whitened"),
        "SimCSE, no dropout": Contrast(_CONFIG, dropout=0.0),
        "SimCSE, temperature 0.01": Contrast(_CONFIG, temperature=0.01),
        "SimCSE, temperature 0.5": Contrast(_CONFIG, temperature=0.5),
    },
    lambda _, source, __: Inputs(source),
    run,
    probe,
    {"checkpoint": "tiny", "task": "stsb"},
    ("stsb",),
)
