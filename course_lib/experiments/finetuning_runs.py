"""Chapter 8's recorded runs: a task, a checkpoint, and what each way of using it earns with how many labels.

Run with ``course experiment finetuning --data sst2 --checkpoint FOLDER``, once for each checkpoint that is compared; a
run is recorded when it ends. Ways: "fine-tuned"; "frozen", where only the head learns; "from scratch", the same model
with random weights; for single sentences "features", a logistic regression on frozen states; and "averaged", the mean
of models that other plans have fine-tuned.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.bert import BertModel
from course_lib.bert_files import checkpoint_folder
from course_lib.experiments import records
from course_lib.experiments.features import WAYS, Way, classify, read_features, whole_sentences
from course_lib.experiments.finetuning_tasks import MODELS, Rows, Task, read_task
from course_lib.fast_wordpiece import FastWordPiece
from course_lib.finetuning import FineTuningConfig, finetune
from course_lib.finetuning_files import TaskModel, average
from course_lib.sentence_classifier import SentenceClassifier
from course_lib.training import device, set_seed

USES = ("fine-tuned", "frozen", "from scratch", "features", "averaged")
KEPT = Path("_build") / "finetuned"  # models of the first seed, for `course experiment errors` and for "averaged"


@dataclass(frozen=True)
class Variant:
    """One way of using a checkpoint.

    Parameters
    ----------
    use
        One of `USES`.
    labels
        Rows to learn from, drawn anew for each seed; None for all.
    config
        How it is fine-tuned; the seed is the run's.
    way
        For "features": which states.
    whole
        Draw whole sentences only, where the train split has phrases cut out of them too.
    plans
        For "averaged": keys of `PLANS`, each of one variant whose model is kept.
    mean
        Give a class from the mean of all states in place of [CLS].

    Raises
    ------
    ValueError
        If there is no such use.
    """

    use: str
    labels: int | None = None
    config: FineTuningConfig = field(default_factory=FineTuningConfig)
    way: Way = WAYS[1]
    whole: bool = False
    plans: tuple[str, ...] = ()
    mean: bool = False

    def __post_init__(self) -> None:
        if self.use not in USES:
            raise ValueError(f"use is {self.use!r}; choose one of {', '.join(USES)}")


@dataclass(frozen=True)
class FineTuningStudy:
    """What is compared on a task.

    Parameters
    ----------
    data
        A key of `course_lib.experiments.finetuning_tasks.SPECS`.
    variants
        By name.
    max_length
        Tokens of an input.
    tested
        Rows to test on, always the same; None for all.
    """

    data: str
    variants: Mapping[str, Variant]
    max_length: int = 128
    tested: int | None = None

    def shortened(self, steps: int) -> "FineTuningStudy":
        """Return the same comparison with so many steps in each fine-tuning."""
        changed = {
            name: replace(variant, config=replace(variant.config, steps=steps))
            for name, variant in self.variants.items()
        }
        return replace(self, variants=changed)


def study_from(configuration: Mapping[str, Any]) -> FineTuningStudy:
    """Load a study back from a record's configuration."""
    variants = {
        name: Variant(
            **{
                **x,
                "config": FineTuningConfig(**x["config"]),
                "way": Way(*x["way"]),
                "plans": tuple(x.get("plans", ())),
            }
        )
        for name, x in configuration["variants"].items()
    }
    return FineTuningStudy(**{**configuration, "variants": variants})


def _study(
    data: str, labels: int | None, epochs: int, max_length: int, tested: int | None = None, batch_size: int = 32
) -> FineTuningStudy:
    """The three ways of fine-tuning, each with the same labels; the rates are those of small models."""
    tuned = FineTuningConfig(epochs=epochs, learning_rate=1e-4, batch_size=batch_size, bf16=True)
    head = replace(tuned, learning_rate=1e-3, frozen="encoder")
    shown = "all" if labels is None else str(labels)
    uses = {"fine-tuned": tuned, "frozen": head, "from scratch": tuned}
    variants = {f"{use}, {shown}": Variant(use, labels, config) for use, config in uses.items()}
    return FineTuningStudy(data, variants, max_length, tested)


def _reviews() -> FineTuningStudy:
    """SST-2: one pass through all phrases; or 2,000 whole sentences, which do for a frozen model."""
    study, few = _study("sst2", None, 1, 64), _study("sst2", 2000, 3, 64)
    sentences = {name: replace(variant, whole=True) for name, variant in few.variants.items()}
    features = Variant("features", 2000, way=WAYS[2], whole=True)
    return replace(study, variants={**study.variants, **sentences, "features, 2000": features})


STEPS: Mapping[int, int] = {32: 50, 200: 100, 2000: 200}  # by the number of labels


def _curve(data: str, rate: float, batch_size: int = 16, max_length: int = 128, times: int = 1) -> FineTuningStudy:
    """Each way with few labels and with many; of a few rates, the one that did best on validation rows with 200."""
    tuned = FineTuningConfig(learning_rate=rate, batch_size=batch_size, bf16=True)
    head = replace(tuned, learning_rate=1e-2, frozen="encoder")
    scratch = replace(tuned, learning_rate=5e-4)
    variants = {}
    for labels, steps in STEPS.items():
        for use, config in (("fine-tuned", tuned), ("frozen", head), ("from scratch", scratch)):
            variants[f"{use}, {labels}"] = Variant(use, labels, replace(config, steps=times * steps))
    return FineTuningStudy(data, variants, max_length)


def _second() -> FineTuningStudy:
    """SST-2, for a model that has passed through all phrases: the test has whole sentences, so end with them."""
    config = FineTuningConfig(epochs=1, learning_rate=1e-4, batch_size=32, bf16=True)
    return FineTuningStudy("sst2", {"fine-tuned, sentences": Variant("fine-tuned", None, config, whole=True)}, 64)


def _passes(rate: float) -> FineTuningStudy:
    """SST-2 with three passes through all phrases, as the paper fine-tunes: its largest rate is 5e-5."""
    config = FineTuningConfig(epochs=3, learning_rate=rate, batch_size=32, bf16=True)
    return FineTuningStudy("sst2", {"fine-tuned, three passes": Variant("fine-tuned", None, config)}, 64)


def _steadied(rate: float, weight: float, mean: bool = False) -> FineTuningStudy:
    """SST-2 with two remedies against overfitting: dropout may not change what is said, and weights are averaged."""
    config = FineTuningConfig(
        epochs=2, learning_rate=rate, batch_size=32, warmup=0.06, bf16=True, consistency=weight, averaging=0.999
    )
    return FineTuningStudy("sst2", {"fine-tuned, steadied": Variant("fine-tuned", None, config, mean=mean)}, 64)


def _mean() -> FineTuningStudy:
    """SST-2, the mean of the models with three passes: runs at different rates end at different weights."""
    plans = ("sst2-small-rate", "sst2-passes", "sst2-large-rate")
    return FineTuningStudy("sst2", {"mean of three rates": Variant("averaged", None, plans=plans)}, 64)


# On real data a run takes minutes to an hour of one processor core: hence few labels, and rows left out of tests.
PLANS: Mapping[str, FineTuningStudy] = {
    "sst2": _reviews(),
    "sst2-sentences": _second(),
    "sst2-passes": _passes(1e-4),
    "sst2-small-rate": _passes(5e-5),
    "sst2-large-rate": _passes(2e-4),
    "sst2-steadied": _steadied(5e-5, 1.0),
    "sst2-steadied-mean": _steadied(7e-5, 2.0, mean=True),
    "sst2-mean": _mean(),
    "cola": _study("cola", 1000, epochs=3, max_length=48, batch_size=16),
    "mrpc": _study("mrpc", 1000, epochs=2, max_length=96, tested=800, batch_size=16),
    "rte": _study("rte", 1000, epochs=2, max_length=128, batch_size=16),
    "stsb": _study("stsb", 1000, epochs=2, max_length=96, batch_size=16),
    "wnut17": _study("wnut17", 1000, epochs=3, max_length=64, batch_size=16),
    "squad": _study("squad", 600, epochs=2, max_length=256, tested=300, batch_size=16),
    "mctest": _study("mctest", 300, epochs=1, max_length=320, tested=200, batch_size=8),
    "pydocs-topic": _curve("pydocs-topic", 3e-4),
    "pydocs-pair": _curve("pydocs-pair", 5e-5),
    "pydocs-tag": _curve("pydocs-tag", 3e-4),
    "pydocs-span": _curve("pydocs-span", 3e-4, batch_size=8, max_length=256, times=2),
    "pydocs-choice": _curve("pydocs-choice", 1e-4, batch_size=8),
}


# On real data a run takes minutes, and a variant may have one seed: pages show no interval then.
DEAR = (
    "sst2",
    "sst2-sentences",
    "sst2-passes",
    "sst2-small-rate",
    "sst2-large-rate",
    "sst2-steadied",
    "sst2-steadied-mean",
    "sst2-mean",
    "cola",
    "mrpc",
    "rte",
    "stsb",
    "wnut17",
    "squad",
    "mctest",
)


def kept_folder(plan: str, checkpoint: str, variant: str) -> Path:
    """Return where the fine-tuned model of seed 0 is kept: a plan, the last part of a checkpoint's name, a variant."""
    return KEPT / "-".join([plan, checkpoint, *variant.replace(",", "").split()])


def run_variant(
    task: Task, variant: Variant, folder: Path, seed: int, max_length: int, tested: Rows, keep: Path | None = None
) -> dict[str, Any]:
    """Train one model, or fit a classifier on its features, and score it on rows that it did not see.

    Parameters
    ----------
    task
        What it is trained on.
    variant
        How.
    folder
        The checkpoint.
    seed
        Of the rows to learn from, of what is new in the model, and of the order.
    max_length
        Tokens of an input.
    tested
        Rows to score it on.
    keep
        A folder to write the fine-tuned model to.

    Returns
    -------
    dict
        Scores, the number of rows and steps, and seconds.
    """
    tokenizer = FastWordPiece.load(folder)
    rows = task.train.select(whole_sentences(task.train.inputs)) if variant.whole else task.train
    rows = rows.sample(variant.labels, seed)
    started = time.perf_counter()
    if variant.use == "features":
        encoder = BertModel.from_pretrained(folder).to(device())
        parts = [
            read_features(encoder, tokenizer, x.inputs, variant.way, max_length=max_length) for x in (rows, tested)
        ]
        found = classify(parts[0], rows.golds, parts[1], tested.golds, folds=min(5, _rarest(rows.golds)), seed=seed)
        scores, steps = task.score_numbers(found.guesses, tested), 0
    else:
        model = build_model(task, variant, folder, seed)
        history = finetune(model, task.examples(rows, tokenizer, max_length), config=replace(variant.config, seed=seed))
        scores, steps = task.score(model, tokenizer, tested, max_length), len(history.steps)
        if keep is not None:
            model.save_pretrained(keep, tokenizer)
    seconds = time.perf_counter() - started
    return {"scores": scores, "rows": len(rows.inputs), "steps": steps, "seconds": round(seconds, 1)}


def score_average(task: Task, kept: Sequence[Path], folder: Path, max_length: int, tested: Rows) -> dict[str, Any]:
    """Score the model whose weights are the means of some that were kept, on rows that none of them saw.

    Parameters
    ----------
    task, folder, max_length, tested
        As in `run_variant`.
    kept
        Folders of the models.

    Returns
    -------
    dict
        Scores, and seconds; no rows and no steps, as nothing is learnt.

    Raises
    ------
    FileNotFoundError
        If a model has not been kept.
    """
    for path in kept:
        if not path.is_dir():
            raise FileNotFoundError(f"{path} does not exist: first run the plan that fine-tunes it, with seed 0")
    started = time.perf_counter()
    models = [MODELS[task.form].from_pretrained(path, **task.model_options) for path in kept]
    scores = task.score(average(models).to(device()), FastWordPiece.load(folder), tested, max_length)
    return {"scores": scores, "rows": 0, "steps": 0, "seconds": round(time.perf_counter() - started, 1)}


def build_model(task: Task, variant: Variant, folder: Path, seed: int) -> TaskModel:
    """Make the model of a task from a checkpoint, or from its sizes alone.

    Parameters
    ----------
    task, variant, folder, seed
        As in `run_variant`.

    Returns
    -------
    TaskModel
        With a new head.
    """
    kind: Any = SentenceClassifier if variant.mean else MODELS[task.form]
    with warnings.catch_warnings():
        # That the head is new is what is wanted; so is a pre-trained model's head being left aside.
        warnings.filterwarnings("ignore", message=".*(left aside|new, to be trained)")
        model: TaskModel = kind.from_pretrained(folder, seed=seed, **task.model_options)
    if variant.use != "from scratch":
        return model
    set_seed(seed)
    scratch: TaskModel = kind(model.config, *task.model_options.values())
    return scratch


def record_finetuning(
    label: str,
    command: Sequence[str],
    study: FineTuningStudy,
    checkpoint: str,
    variants: Sequence[str],
    seeds: Sequence[int],
    source: str | None,
    say: Callable[[str], None] = print,
) -> Path:
    """Do the runs that a record lacks, and save it after each.

    Parameters
    ----------
    label
        Name of the record.
    command
        What was typed.
    study
        What is compared.
    checkpoint
        A folder, or a name on the hub; the record has its last part.
    variants
        Which of the study's.
    seeds
        One run of each variant for each.
    source
        As in `course_lib.data.load`.
    say
        Told of each run that ended.

    Returns
    -------
    Path
        The record.

    Raises
    ------
    ValueError
        If the record was made with another study.
    """

    def runs() -> Iterator[records.Run]:
        folder, name = checkpoint_folder(checkpoint), Path(checkpoint).name
        task = read_task(study.data, source)
        tested = task.test.sample(study.tested, seed=0)
        for seed in seeds:
            for variant in variants:
                if study.variants[variant].use == "averaged":
                    kept = [kept_folder(plan, name, *PLANS[plan].variants) for plan in study.variants[variant].plans]
                    run = partial(score_average, task, kept, folder, study.max_length, tested)
                    yield {"variant": f"{name}, {variant}", "seed": seed}, run
                    continue
                plan = next((plan for plan, known in PLANS.items() if known == study), None)
                asked = study.variants[variant].use == "fine-tuned" and seed == 0
                keep = kept_folder(plan, name, variant) if asked and plan is not None else None
                yield (
                    {"variant": f"{name}, {variant}", "seed": seed},
                    partial(run_variant, task, study.variants[variant], folder, seed, study.max_length, tested, keep),
                )

    return records.run_missing(label, command, study, study_from, runs(), say)


def _rarest(golds: Sequence[int]) -> int:
    """Rows of the rarest class: no more folds than that, and at least two."""
    return max(2, int(np.unique(golds, return_counts=True)[1].min()))
