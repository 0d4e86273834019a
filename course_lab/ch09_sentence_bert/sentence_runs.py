"""Chapter 9's recorded runs on real data: sentence encoders trained on inference pairs,
judged on STS-B and by probes.

Run with ``course record sentences --data nli --checkpoint FOLDER``, once for each
checkpoint. An encoder is judged as it starts, or after each of its stages; STS-B gives
Spearman's correlation on the test split, and a probe is a logistic regression on frozen
vectors (:mod:`course_lib.sentence_bert.evaluation`).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from torch import Tensor

from course_lab import stand_ins
from course_lab.ch08_finetuning.features import whole_sentences
from course_lab.ch09_sentence_bert.common_part import whitened
from course_lab.ch09_sentence_bert.sentence_encoders import (
    Encode,
    StaticSentences,
    mean_cosine,
    read_encoder,
    static_from,
)
from course_lab.probing import start
from course_lab.study import Study, shortened
from course_lib.bert.files import checkpoint_folder
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
TREATMENTS = ("centred", "whitened")
OBJECTIVES = ("classes", "pairs", "scores")
CLASSES = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Stage:
    """One training of an encoder."""

    #: "classes": name the class of a pair of SNLI or MultiNLI; "pairs": find the
    #: sentence that follows, among those of the batch; "scores": the similarity that
    #: people gave a pair of STS-B.
    objective: str
    #: How it is trained; the seed is the run's.
    config: FineTuningConfig = field(default_factory=FineTuningConfig)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(
                f"objective is {self.objective!r}; choose one of"
                f" {', '.join(OBJECTIVES)}"
            )


@dataclass(frozen=True)
class SentenceVariant:
    """An encoder, and what it is trained on one stage after the other."""

    #: "static": averaged input vectors of the checkpoint; "raw": its states;
    #: "untrained": those of the same sizes with random weights; "published": a sentence
    #: encoder, pooled as its own files say.
    start: str
    pooling: Pooling = "mean"  # of states
    stages: tuple[Stage, ...] = ()  # None for an encoder that stays as it is
    #: What is done to its vectors before the cosine, by those of STS-B's train split:
    #: one of `TREATMENTS`.
    treated: str = ""

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise ValueError(
                f"start is {self.start!r}; choose one of {', '.join(STARTS)}"
            )
        if self.treated not in ("", *TREATMENTS):
            raise ValueError(
                f"treated is {self.treated!r}; choose one of {', '.join(TREATMENTS)}"
            )
        if self.stages and self.start != "raw":
            raise ValueError(
                f"stages train states of a checkpoint, start='raw', not {self.start!r}"
            )


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


class ProbeTask(NamedTuple):
    """What a logistic regression is to tell from frozen vectors."""

    data: str
    columns: tuple[str, ...]  # one text, or two whose vectors are compared
    label: str = "label"
    test: str | None = "test"  # None: there is one split, probed in ten folds
    whole: bool = False  # fit on whole sentences, not on phrases cut out of one


PROBES: Mapping[str, ProbeTask] = {
    "SUBJ": ProbeTask("subj", ("text",), test=None),  # opinions from plots
    "TREC": ProbeTask("trec", ("text",), "coarse_label"),  # what a question asks for
    "MRPC": ProbeTask("mrpc", ("sentence1", "sentence2")),  # paraphrases
    "SST": ProbeTask("sst2", ("sentence",), test="validation", whole=True),  # praise
}


def probed(
    encode: Encode, task: ProbeTask, data: DatasetDict, rows: int, seed: int
) -> float:
    """Fit and test a probe on vectors that stay as they are: its accuracy."""

    def features(part: Dataset) -> Tensor:
        vectors = [encode(part[column]) for column in task.columns]
        return pair_features(*vectors) if len(vectors) == 2 else vectors[0]

    if task.test is None:
        part = _drawn(data["all"], rows, seed)
        return probe(features(part), part[task.label], seed=seed).accuracy
    train, test = data["train"], data[task.test]
    if task.whole:
        train = train.select(whole_sentences(train[task.columns[0]]))
    train = _drawn(train, rows, seed)
    return probe_split(
        features(train), train[task.label], features(test), test[task.label]
    )


def judge_similarity(
    encode: Encode, source: str | None, treated: str = ""
) -> dict[str, float]:
    """Measure what needs no training: Spearman's correlation on STS-B, and how alike
    unrelated sentences are."""
    data = load("stsb", source)
    test = data["test"]
    first, second = encode(test["sentence1"]), encode(test["sentence2"])
    if treated:
        train = data["train"]
        others = encode([*train["sentence1"], *train["sentence2"]])
        both = torch.cat([first, second])
        both = (
            whitened(both, others)[0]
            if treated == "whitened"
            else both - others.mean(dim=0)
        )
        first, second = both.chunk(2)
    return {
        "stsb": sts_score(first, second, test["label"]),
        "cosine": mean_cosine(first),
    }


def judge_by_probes(
    encode: Encode, study: Study, seed: int, source: str | None
) -> dict[str, float]:
    """Measure what a logistic regression finds in the vectors: accuracy by the name of
    the probe."""
    return {
        name: probed(
            encode,
            PROBES[name],
            load(PROBES[name].data, source),
            study.shared["probe_rows"],
            seed,
        )
        for name in study.shared["probes"]
    }


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


class Inputs(NamedTuple):
    """Where tables come from, and the folder of the checkpoint."""

    source: str | None
    folder: Path


def read(study: Study, source: str | None, checkpoint: str | None) -> Inputs:
    """Find the checkpoint of a study; each run reads the tables that it needs."""
    if checkpoint is None:
        raise ValueError(f"{study.name} needs a checkpoint")
    return Inputs(source, checkpoint_folder(checkpoint))


def run(study: Study, name: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Train an encoder and judge it after each stage; judge it as it is, if it has
    none."""
    variant, source = study.variants[name], inputs.source
    model = make_encoder(variant, inputs.folder, study.shared["max_length"], seed)

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
    after = after or {"start": judge_similarity(encode, source, variant.treated)}
    return {
        "after": after,
        "probes": {}
        if variant.treated  # a probe scales its features anyway
        else judge_by_probes(encode, study, seed, source),
        "seconds": round(seconds, 1),
    }


def probe_inputs(study: Study, name: str) -> tuple[Study, Inputs]:
    """Shorten a study, with few rows of its tables and a stand-in of a checkpoint."""
    short = shortened(study.variants[name], steps=3, precision="float32", batch_size=8)
    shared = {**study.shared, "probe_rows": 60, "max_length": 24}
    inputs = Inputs(stand_ins.folder_of_tables(), stand_ins.checkpoint())
    return replace(study, variants={name: short}, shared=shared), inputs


def study_of(
    name: str,
    variants: Mapping[str, SentenceVariant],
    max_length: int = 64,
    probes: tuple[str, ...] = ("SUBJ", "TREC", "MRPC", "SST"),
    probe_rows: int = 2000,
) -> Study:
    """Return a comparison of encoders that read so many tokens, judged by some of
    `PROBES` on so many rows at most; test splits are taken whole."""
    shared = {"max_length": max_length, "probes": probes, "probe_rows": probe_rows}
    data = ("snli", "mnli", "stsb", *(PROBES[probe].data for probe in probes))
    return Study(
        f"sentences-{name}",
        variants,
        read,
        run,
        probe_inputs,
        shared,
        data,
        of_checkpoint=True,
    )


_NLI = {
    "static": SentenceVariant("static"),
    "raw mean": SentenceVariant("raw"),
    "raw [CLS]": SentenceVariant("raw", "cls"),
    "untrained": SentenceVariant("untrained"),
    "published": SentenceVariant("published"),
    "classes": SentenceVariant("raw", stages=(_CLASSES, _SCORES)),
    "pairs": SentenceVariant("raw", stages=(_PAIRS, _SCORES)),
    "scores": SentenceVariant("raw", stages=(_SCORES,)),
    **{
        f"{name}, {treated}": SentenceVariant(kind, treated=treated)
        for name, kind in (("static", "static"), ("raw mean", "raw"))
        for treated in TREATMENTS
    },
    "untrained, whitened": SentenceVariant("untrained", treated="whitened"),
}
PLANS = {"nli": study_of("nli", _NLI)}
