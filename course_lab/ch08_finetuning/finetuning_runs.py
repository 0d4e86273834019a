"""Chapter 8's recorded runs: a task, a checkpoint, and what each way of using it earns
with how many labels.

Run with ``course record finetuning --data sst2 --checkpoint FOLDER``, once for each
checkpoint that is compared; a run is recorded when it ends. What is compared stands in
`course_lab.ch08_finetuning.finetuning_plans`.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from course_lab import records
from course_lab.ch08_finetuning.features import classify, read_features, whole_sentences
from course_lab.ch08_finetuning.finetuning_plans import PLANS, FineTuningStudy, Variant
from course_lab.ch08_finetuning.finetuning_tasks import MODELS, Rows, Task, read_task
from course_lab.probing import start
from course_lib.bert.files import checkpoint_folder, load_bert
from course_lib.data.treebank import rejoin
from course_lib.finetuning.finetune import finetune
from course_lib.finetuning.task_model import TaskModel, average
from course_lib.sentence_bert.classifier import SentenceClassifier
from course_lib.training.loop import device, set_seed
from course_lib.wordpiece.fast import FastWordPiece

KEPT = (
    Path("_build") / "finetuned"
)  # fine-tuned models, for `course record errors` and for "averaged"


def kept_folder(plan: str, checkpoint: str, variant: str, seed: int = 0) -> Path:
    """Return where a fine-tuned model is kept: a plan, the last part of a checkpoint's
    name, a variant, a later seed."""
    return KEPT / "-".join(
        [
            plan,
            checkpoint,
            *variant.replace(",", "").split(),
            *([f"seed-{seed}"] if seed else []),
        ]
    )


def _is_kept(plan: str, variant: Variant, seed: int) -> bool:
    means = [
        x
        for study in PLANS.values()
        for x in study.variants.values()
        if x.use == "averaged"
    ]
    wanted = seed == 0 or any(
        plan in mean.plans and seed in mean.seeds for mean in means
    )
    return variant.use == "fine-tuned" and wanted


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
    else:
        model = build_model(task, variant, folder, seed)
        history = finetune(
            model,
            task.examples(rows, tokenizer, max_length),
            config=replace(variant.config, seed=seed),
        )
        scores, steps = (
            task.score(model, tokenizer, tested, max_length),
            len(history.steps),
        )
        if keep is not None:
            model.save_pretrained(keep, tokenizer)
    seconds = time.perf_counter() - started
    return {
        "scores": scores,
        "rows": len(rows.inputs),
        "steps": steps,
        "seconds": round(seconds, 1),
    }


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
    (`course_lib.data.treebank.rejoin`)."""
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
    """Do the runs that a record lacks, and save it after each."""

    def runs() -> Iterator[records.Run]:
        folder, name = checkpoint_folder(checkpoint), Path(checkpoint).name
        task = read_task(study.data, source)
        tested = task.test.sample(study.tested, seed=0)
        plan = next((plan for plan, known in PLANS.items() if known == study), None)
        for seed in seeds:
            for key in variants:
                variant, identity = (
                    study.variants[key],
                    {"variant": f"{name}, {key}", "seed": seed},
                )
                if variant.use == "averaged":
                    parts = [
                        (part, *PLANS[part].variants) for part in variant.plans
                    ]  # of one variant each
                    kept = [
                        kept_folder(part, name, only, x)
                        for part, only in parts
                        for x in variant.seeds
                    ]
                    yield (
                        identity,
                        partial(
                            score_average,
                            task,
                            variant,
                            kept,
                            folder,
                            study.max_length,
                            tested,
                        ),
                    )
                    continue
                keep = (
                    kept_folder(plan, name, key, seed)
                    if plan and _is_kept(plan, variant, seed)
                    else None
                )
                yield (
                    identity,
                    partial(
                        run_variant,
                        task,
                        variant,
                        folder,
                        seed,
                        study.max_length,
                        tested,
                        keep,
                    ),
                )

    read = partial(records.edition, [study.data], source)
    return records.run_missing(label, command, study, runs(), say, data=read)


def _kind(task: Task, variant: Variant) -> Any:
    return SentenceClassifier if variant.mean else MODELS[task.form]


def _rarest(golds: Sequence[int]) -> int:
    """Rows of the rarest class: no more folds than that, and at least two."""
    return max(2, int(np.unique(golds, return_counts=True)[1].min()))
