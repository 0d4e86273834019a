"""Chapter 9's recorded runs on real data: sentence encoders trained on inference pairs,
judged on STS-B and by probes.

Run with ``course record sentences --data nli --checkpoint FOLDER``, once for each
checkpoint. An encoder is judged as it starts, or after each of its stages; STS-B gives
Spearman's correlation on the test split, and a probe is a logistic regression on frozen
vectors (:mod:`course_lib.sentence_bert.evaluation`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from torch import Tensor

from course_lab.ch08_finetuning.features import whole_sentences
from course_lab.ch09_sentence_bert.sentence_encoders import (
    Encode,
    StaticSentences,
    mean_cosine,
    read_encoder,
    static_from,
)
from course_lab.probing import start
from course_lib.data import load
from course_lib.finetuning.examples import Example
from course_lib.finetuning.finetune import FineTuningConfig
from course_lib.sentence_bert.evaluation import (
    pair_features,
    probe,
    probe_split,
    sts_score,
)
from course_lib.sentence_bert.files import MODULES, Pooling
from course_lib.sentence_bert.losses import (
    CosineObjective,
    InBatchObjective,
    Objective,
    SoftmaxObjective,
)
from course_lib.sentence_bert.model import SentenceBert
from course_lib.sentence_bert.training import sentence_examples, train_sentences
from course_lib.training.loop import device, set_seed
from course_lib.wordpiece.fast import FastWordPiece

STARTS = ("static", "raw", "untrained", "published")
OBJECTIVES = ("classes", "pairs", "scores")
CLASSES = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Stage:
    """One training of an encoder.

    Parameters
    ----------
    objective
        "classes": name the class of a pair of SNLI or MultiNLI; "pairs": find the
        sentence that follows, among those of the batch; "scores": the similarity that
        people gave a pair of STS-B.
    config
        How it is trained; the seed is the run's.
    """

    objective: str
    config: FineTuningConfig = field(default_factory=FineTuningConfig)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(
                f"objective is {self.objective!r}; choose one of"
                f" {', '.join(OBJECTIVES)}"
            )


@dataclass(frozen=True)
class SentenceVariant:
    """An encoder, and what it is trained on one stage after the other.

    Parameters
    ----------
    start
        "static": averaged input vectors of the checkpoint; "raw": its states;
        "untrained": those of the same sizes with random weights; "published": a
        sentence encoder, pooled as its own files say.
    pooling
        Of states.
    stages
        None for an encoder that stays as it is.
    """

    start: str
    pooling: Pooling = "mean"
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise ValueError(
                f"start is {self.start!r}; choose one of {', '.join(STARTS)}"
            )
        if self.stages and self.start != "raw":
            raise ValueError(
                f"stages train states of a checkpoint, start='raw', not {self.start!r}"
            )


@dataclass(frozen=True)
class SentenceStudy:
    """What is compared.

    Parameters
    ----------
    variants
        By name.
    max_length
        Tokens that are read of a sentence.
    probes
        Which of `PROBES`.
    probe_rows
        Rows of a probe at most, drawn for each seed; test splits are taken whole.
    """

    variants: Mapping[str, SentenceVariant]
    max_length: int = 64
    probes: tuple[str, ...] = ("SUBJ", "TREC", "MRPC", "SST")
    probe_rows: int = 2000

    def shortened(self, steps: int) -> "SentenceStudy":
        """Return the same comparison with so many steps in each stage."""
        changed = {
            name: replace(
                x,
                stages=tuple(
                    replace(s, config=replace(s.config, steps=steps)) for s in x.stages
                ),
            )
            for name, x in self.variants.items()
        }
        return replace(self, variants=changed)

    def run(
        self, variant: str, folder: Path, seed: int, source: str | None
    ) -> dict[str, Any]:
        """Do one run: see `run_variant`."""
        return run_variant(self, self.variants[variant], folder, seed, source)


_PAIRS = Stage(
    "pairs",
    FineTuningConfig(epochs=1, learning_rate=2e-4, batch_size=64, precision="bfloat16"),
)
_CLASSES = Stage(
    "classes",
    FineTuningConfig(epochs=1, learning_rate=2e-4, batch_size=32, precision="bfloat16"),
)
_SCORES = Stage(
    "scores",
    FineTuningConfig(epochs=2, learning_rate=1e-4, batch_size=32, precision="bfloat16"),
)

NLI = SentenceStudy(
    {
        "static": SentenceVariant("static"),
        "raw mean": SentenceVariant("raw"),
        "raw [CLS]": SentenceVariant("raw", "cls"),
        "untrained": SentenceVariant("untrained"),
        "published": SentenceVariant("published"),
        "classes": SentenceVariant("raw", stages=(_CLASSES, _SCORES)),
        "pairs": SentenceVariant("raw", stages=(_PAIRS, _SCORES)),
        "scores": SentenceVariant("raw", stages=(_SCORES,)),
    }
)


# -- what encoders are trained on
# --------------------------------------------------------------------------------------


def nli_rows(source: str | None) -> list[tuple[str, str, int]]:
    """Return the training pairs of SNLI and MultiNLI with their classes, numbered as
    `CLASSES`."""
    parts = [load(name, source)["train"] for name in ("snli", "mnli")]
    return [
        row
        for part in parts
        for row in zip(part["premise"], part["hypothesis"], part["label"], strict=True)
    ]


def stage_data(
    stage: Stage, model: SentenceBert, source: str | None
) -> tuple[Objective, list[Example]]:
    """Make the objective of a stage and its examples."""
    if stage.objective == "scores":
        rows = load("stsb", source)["train"]
        pairs = list(zip(rows["sentence1"], rows["sentence2"], strict=True))
        return CosineObjective(), sentence_examples(
            pairs, [score / 5 for score in rows["label"]], model
        )
    rows = nli_rows(source)
    if stage.objective == "classes":
        objective = start(SoftmaxObjective(model.hidden_size, CLASSES))
        return objective, sentence_examples(
            [row[:2] for row in rows], [row[2] for row in rows], model
        )
    following = {
        premise: hypothesis for premise, hypothesis, label in rows if label == 0
    }
    return InBatchObjective(), sentence_examples(list(following.items()), None, model)


# -- how they are judged
# --------------------------------------------------------------------------------------


def _drawn(rows: Dataset, number: int, seed: int) -> Dataset:
    return rows.select(
        np.random.default_rng(seed).permutation(len(rows))[:number].tolist()
    )


def probe_subj(encode: Encode, data: DatasetDict, rows: int, seed: int) -> float:
    """Tell opinions from plots, in ten folds."""
    part = _drawn(data["all"], rows, seed)
    return probe(encode(part["text"]), part["label"], seed=seed).accuracy


def probe_trec(encode: Encode, data: DatasetDict, rows: int, seed: int) -> float:
    """Tell what a question asks for."""
    train, test = _drawn(data["train"], rows, seed), data["test"]
    vectors = encode(train["text"]), encode(test["text"])
    return probe_split(
        vectors[0], train["coarse_label"], vectors[1], test["coarse_label"]
    )


def probe_mrpc(encode: Encode, data: DatasetDict, rows: int, seed: int) -> float:
    """Tell paraphrases, from what two vectors differ in and agree in."""
    train, test = _drawn(data["train"], rows, seed), data["test"]
    features = [
        pair_features(encode(part["sentence1"]), encode(part["sentence2"]))
        for part in (train, test)
    ]
    return probe_split(features[0], train["label"], features[1], test["label"])


def probe_sst(encode: Encode, data: DatasetDict, rows: int, seed: int) -> float:
    """Tell praise from blame: whole sentences to fit on, GLUE's validation split to
    test on."""
    train, test = data["train"], data["validation"]
    train = _drawn(train.select(whole_sentences(train["sentence"])), rows, seed)
    return probe_split(
        encode(train["sentence"]),
        train["label"],
        encode(test["sentence"]),
        test["label"],
    )


PROBES: Mapping[str, tuple[str, Callable[[Encode, DatasetDict, int, int], float]]] = {
    "SUBJ": ("subj", probe_subj),
    "TREC": ("trec", probe_trec),
    "MRPC": ("mrpc", probe_mrpc),
    "SST": ("sst2", probe_sst),
}


def judge_similarity(encode: Encode, source: str | None) -> dict[str, float]:
    """Measure what needs no training: Spearman's correlation on STS-B, and how alike
    unrelated sentences are."""
    test = load("stsb", source)["test"]
    first, second = encode(test["sentence1"]), encode(test["sentence2"])
    return {
        "stsb": sts_score(first, second, test["label"]),
        "cosine": mean_cosine(first),
    }


def judge_by_probes(
    encode: Encode, study: SentenceStudy, seed: int, source: str | None
) -> dict[str, float]:
    """Measure what a logistic regression finds in the vectors: accuracy by the name of
    the probe."""
    return {
        name: PROBES[name][1](
            encode, load(PROBES[name][0], source), study.probe_rows, seed
        )
        for name in study.probes
    }


def data_of(study: SentenceStudy) -> list[str]:
    """Name the data sets that a study reads."""
    return ["snli", "mnli", "stsb", *(PROBES[name][0] for name in study.probes)]


# -- a run
# --------------------------------------------------------------------------------------


def make_encoder(
    variant: SentenceVariant, folder: Path, max_length: int, seed: int
) -> SentenceBert | StaticSentences:
    """Make the encoder of a variant as it starts."""
    if variant.start == "published":
        if not (folder / MODULES).is_file():
            raise ValueError(
                f"{folder.name} has no {MODULES}: it is no sentence encoder; leave out"
                " 'published'"
            )
        return SentenceBert.from_pretrained(folder, dtype=torch.float32).to(device())
    untrained = seed if variant.start == "untrained" else None
    model = read_encoder(folder, variant.pooling, max_length, untrained)
    if variant.start == "static":
        return static_from(model.bert, FastWordPiece.load(folder), max_length)
    return model


def run_variant(
    study: SentenceStudy,
    variant: SentenceVariant,
    folder: Path,
    seed: int,
    source: str | None,
) -> dict[str, Any]:
    """Train an encoder and judge it after each stage; judge it as it is, if it has
    none."""
    model = make_encoder(variant, folder, study.max_length, seed)

    def encode(sentences: Sequence[str]) -> Tensor:
        return model.encode(list(sentences))

    after, seconds = {}, 0.0
    for stage in variant.stages:
        assert isinstance(model, SentenceBert)
        set_seed(seed)
        objective, examples = stage_data(stage, model, source)
        started = time.perf_counter()
        train_sentences(
            model,
            objective,
            examples,
            config=replace(stage.config, seed=seed, progress=False),
        )
        seconds += time.perf_counter() - started
        after[stage.objective] = judge_similarity(encode, source)
    after = after or {"start": judge_similarity(encode, source)}
    return {
        "after": after,
        "probes": judge_by_probes(encode, study, seed, source),
        "seconds": round(seconds, 1),
    }
