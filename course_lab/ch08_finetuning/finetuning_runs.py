"""One run of chapter 8's comparisons: a task, a checkpoint, and what one way of using
it earns with so many labels (:mod:`course_lab.ch08_finetuning.finetuning_plans`)."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from course_lab.ch08_finetuning.baselines import baseline_scores, reader_of
from course_lab.ch08_finetuning.features import (
    WAYS,
    Way,
    classify,
    read_features,
    whole_sentences,
)
from course_lab.ch08_finetuning.finetuning_tasks import MODELS, Rows, Task
from course_lab.probing import start
from course_lib.bert.files import load_bert
from course_lib.data.sentences import rejoin
from course_lib.finetuning.finetune import FineTuningConfig, finetune
from course_lib.finetuning.task_model import TaskModel, average
from course_lib.sentence_bert.model import SentenceClassifier
from course_lib.training.loop import device, set_seed
from course_lib.wordpiece.fast import FastWordPiece

LINEAR = ("words", "states")  # of `baselines`
USES = (
    *("fine-tuned", "frozen", "from scratch", "features", "averaged", "longest"),
    *LINEAR,
)


@dataclass(frozen=True)
class Variant:
    """One way of using a checkpoint."""

    use: str  # one of `USES`
    #: Rows to learn from, drawn anew for each seed; None for all.
    labels: int | None = None
    #: How it is fine-tuned; the seed is the run's.
    config: FineTuningConfig = field(default_factory=FineTuningConfig)
    way: Way = WAYS[1]  # for "features": which states
    #: Draw whole sentences only, where the train split has phrases cut out of them too.
    whole: bool = False
    #: For "averaged": names of plans, each of one variant whose model is kept.
    plans: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)  # for "averaged": which seeds' models of those plans
    mean: bool = False  # give a class from the mean of all states in place of [CLS]
    #: Read sentences as people write them, where they were cut up for a treebank
    #: (`course_lib.data.sentences`).
    rejoined: bool = False
    #: More rows of the train split, which it is looked at on while it learns.
    held: int = 0

    def __post_init__(self) -> None:
        if self.use not in USES:
            raise ValueError(f"use is {self.use!r}; choose one of {', '.join(USES)}")


def run_variant(
    task: Task,
    variant: Variant,
    folder: Path,
    seed: int,
    max_length: int,
    tested: Rows,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Train one model, or fit a classifier on its features, and score it on rows that
    it did not see."""
    tokenizer = FastWordPiece.load(folder)
    rows = (
        task.train.select(whole_sentences(task.train.inputs))
        if variant.whole
        else task.train
    )
    held, looks = rows.select([]), {}
    if variant.held:
        rows, held = _held_out(rows, variant, seed)
    else:
        rows = rows.sample(variant.labels, seed)
    if variant.rejoined:
        rows, tested = rejoined(rows), rejoined(tested)
    started = time.perf_counter()
    if variant.use == "longest":
        guesses = [
            max(range(len(endings)), key=lambda place: len(endings[place]))
            for _, endings in tested.inputs
        ]
        scores, steps, rows = task.score_numbers(guesses, tested), 0, rows.select([])
    elif variant.use == "features":
        encoder = load_bert(folder).to(device())
        parts = [
            read_features(
                encoder, tokenizer, x.inputs, variant.way, max_length=max_length
            )
            for x in (rows, tested)
        ]
        found = classify(
            parts[0],
            rows.golds,
            parts[1],
            tested.golds,
            folds=min(5, _rarest(rows.golds)),
            seed=seed,
        )
        scores, steps = task.score_numbers(found.guesses, tested), 0
    elif variant.use in LINEAR:
        reader = reader_of(folder, max_length) if variant.use == "states" else None
        scores, steps = baseline_scores(task, rows, tested, reader), 0
    else:
        model = build_model(task, variant, folder, seed)
        history = finetune(
            model,
            task.examples(rows, tokenizer, max_length),
            task.examples(held, tokenizer, max_length) if variant.held else None,
            config=replace(variant.config, seed=seed),
        )
        if variant.held:
            looks = {"held": {x: history.metrics[x] for x in history.metrics}}
        scores = task.score(model, tokenizer, tested, max_length)
        steps = len(history.steps)
        if keep is not None:
            model.save_pretrained(keep, tokenizer)
    seconds = time.perf_counter() - started
    return {
        "scores": scores,
        "rows": len(rows.inputs),
        "steps": steps,
        "seconds": round(seconds, 1),
        **looks,
    }


def _held_out(rows: Rows, variant: Variant, seed: int) -> tuple[Rows, Rows]:
    """Draw the rows that `Rows.sample` draws, and others beside them."""
    order = np.random.default_rng(seed).permutation(len(rows.inputs)).tolist()
    number = variant.labels or len(order) - variant.held
    return rows.select(order[:number]), rows.select(order[number:][: variant.held])


def score_average(
    task: Task,
    variant: Variant,
    kept: Sequence[Path],
    folder: Path,
    max_length: int,
    tested: Rows,
) -> dict[str, Any]:
    """Score the model whose weights are the means of some that were kept, on rows that
    none of them saw."""
    for path in kept:
        if not path.is_dir():
            raise FileNotFoundError(
                f"{path} does not exist: first run the plan that fine-tunes it, with"
                " its seed"
            )
    started = time.perf_counter()
    if variant.rejoined:
        tested = rejoined(tested)
    models = [
        _kind(task, variant).from_pretrained(path, **task.model_options)
        for path in kept
    ]
    scores = task.score(
        average(models).to(device()), FastWordPiece.load(folder), tested, max_length
    )
    return {
        "scores": scores,
        "rows": 0,
        "steps": 0,
        "seconds": round(time.perf_counter() - started, 1),
    }


def rejoined(rows: Rows) -> Rows:
    """Give the same rows with sentences as people write them
    (`course_lib.data.sentences.rejoin`)."""
    return rows._replace(inputs=[rejoin(text) for text in rows.inputs])


def build_model(task: Task, variant: Variant, folder: Path, seed: int) -> TaskModel:
    """Make the model of a task from a checkpoint, or from its sizes alone."""
    kind = _kind(task, variant)
    with warnings.catch_warnings():
        # That the head is new is what is wanted; so is a pre-trained model's head being
        # left aside.
        warnings.filterwarnings("ignore", message=".*(left aside|new, to be trained)")
        model: TaskModel = kind.from_pretrained(folder, seed=seed, **task.model_options)
    if variant.use != "from scratch":
        return start(model, but=model.bert)
    set_seed(seed)
    scratch: TaskModel = kind(model.config, *task.model_options.values())
    return start(scratch)


def _kind(task: Task, variant: Variant) -> Any:
    return SentenceClassifier if variant.mean else MODELS[task.form]


def _rarest(golds: Sequence[int]) -> int:
    """Rows of the rarest class: no more folds than that, and at least two."""
    return max(2, int(np.unique(golds, return_counts=True)[1].min()))
