"""Chapter 8's recorded mistakes: what one fine-tuned model of a task gets wrong,
counted, and a few of them in full.

Run with ``course record errors --data sst2 --checkpoint FOLDER``. The model is the
one that ``course record finetuning`` kept of its first seed; where none is kept, it
is trained now. Its model card is written beside it.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from course_lab import records, stand_ins
from course_lab.ch08_finetuning.error_card import write_card
from course_lab.ch08_finetuning.finetuning_plans import PLANS, Inputs, few_inputs, read
from course_lab.ch08_finetuning.finetuning_plans import probe as probe_of_plan
from course_lab.ch08_finetuning.finetuning_runs import run_variant
from course_lab.ch08_finetuning.finetuning_tasks import MODELS, Rows, Task
from course_lab.records import Record
from course_lab.study import Study
from course_lib.finetuning.examples import Example, collate
from course_lib.finetuning.finetune import predict
from course_lib.finetuning.task_model import TaskModel, looking
from course_lib.metrics.entities import Entity
from course_lib.metrics.errors import (
    ANSWERS,
    ENTITIES,
    Calibration,
    answer_kind,
    apply_temperature,
    calibration,
    confusion,
    entity_mistakes,
    fit_temperature,
)
from course_lib.metrics.errors import surest_mistakes as surest
from course_lib.pretraining.masking import IGNORE
from course_lib.training.batches import to_device
from course_lib.training.loop import device
from course_lib.wordpiece.fast import FastWordPiece

AROUND = 5  # words that an entity is shown with, on either side
SHOWN, BINS = 2, 10  # mistakes of each kind that are shown; bins of a calibration


class Judged(NamedTuple):
    """What a model said of classes or words."""

    probabilities: Float[np.ndarray, "N C"]  # of all classes, a row for each guess
    golds: list[int]  # the right ones
    of: list[int]  # which input a guess belongs to


def judge(
    model: TaskModel, examples: Sequence[Example], batch_size: int = 32
) -> Judged:
    """Return what a classifier of texts or of words says of examples whose labels are
    known."""
    rows: list[np.ndarray] = []
    golds: list[int] = []
    of: list[int] = []
    with looking(model) as where:
        for start in range(0, len(examples), batch_size):
            batch = to_device(
                collate(
                    examples[start : start + batch_size], model.config.pad_token_id or 0
                ),
                where,
            )
            logits = model(
                batch.input_ids, batch.attention_mask, batch.token_type_ids
            ).float()
            labels = batch.labels
            there = (labels != IGNORE).nonzero()
            rows.append(logits[labels != IGNORE].softmax(dim=-1).cpu().numpy())
            golds += labels[labels != IGNORE].tolist()
            of += (start + there[:, 0]).tolist()
    return Judged(np.concatenate(rows), golds, of)


def calibrate(judged: Judged, bins: int) -> dict[str, Any]:
    """Measure how far probabilities can be believed, as they are and after a
    temperature."""
    halves, golds = np.asarray(judged.of) % 2, np.asarray(judged.golds)
    cooled, temperatures = judged.probabilities.astype(np.float64), []
    for half in (0, 1):
        others = halves != half
        temperatures.append(
            fit_temperature(judged.probabilities[others], golds[others].tolist())
        )
        cooled[~others] = apply_temperature(
            judged.probabilities[~others], temperatures[-1]
        )
    found = {"as trained": judged.probabilities, "with a temperature": cooled}
    measured = {
        name: calibration(table.tolist(), judged.golds, bins)._asdict()
        for name, table in found.items()
    }
    return {"temperatures": temperatures, "calibration": measured}


def mistakes_of_classes(
    judged: Judged, rows: Rows, labels: Sequence[str], each: int = SHOWN
) -> dict[str, Any]:
    """Count and show what a classifier of texts gets wrong: the mistakes of which it is
    surest, for each gold class."""
    guesses = judged.probabilities.argmax(axis=1).tolist()
    shown = []
    for gold, name in enumerate(labels):
        ordered = [
            row
            for row in surest(judged.probabilities, judged.golds, len(guesses))
            if judged.golds[row] == gold
        ]
        shown += [
            {
                "kind": f"{name} taken for {labels[guesses[row]]}",
                "input": rows.inputs[row],
                "gold": name,
                "guess": labels[guesses[row]],
                "probability": round(float(judged.probabilities[row].max()), 4),
            }
            for row in ordered[:each]
        ]
    counts = confusion(judged.golds, guesses, labels).counts.tolist()
    kinds = {
        f"{a} taken for {b}": counts[i][j]
        for i, a in enumerate(labels)
        for j, b in enumerate(labels)
        if i != j
    }
    return {
        "kinds": kinds,
        "confusion": {"labels": list(labels), "counts": counts},
        "examples": shown,
    }


def mistakes_of_tags(
    judged: Judged,
    guesses: Sequence[Sequence[str]],
    rows: Rows,
    labels: Sequence[str],
    each: int = SHOWN,
) -> dict[str, Any]:
    """Count and show what a tagger gets wrong: words by their type, entities by the
    kind of mistake."""
    types = list(dict.fromkeys(label.partition("-")[2] or "O" for label in labels))
    of_label = [types.index(label.partition("-")[2] or "O") for label in labels]
    guessed = judged.probabilities.argmax(axis=1).tolist()
    counts = confusion(
        [of_label[x] for x in judged.golds], [of_label[x] for x in guessed], types
    ).counts.tolist()
    kinds: Counter[str] = Counter()
    shown = []
    for words, tags, guess in zip(rows.inputs, rows.golds, guesses, strict=True):
        for mistake in entity_mistakes([labels[tag] for tag in tags], guess):
            kinds[mistake.kind] += 1
            if mistake.kind != "right" and kinds[mistake.kind] <= each:
                shown.append(
                    {
                        "kind": mistake.kind,
                        **_in_words(words, mistake.gold, mistake.guess),
                    }
                )
    return {
        "kinds": {kind: kinds[kind] for kind in ENTITIES},
        "confusion": {"labels": types, "counts": counts},
        "examples": sorted(shown, key=lambda x: ENTITIES.index(x["kind"])),
    }


def _in_words(
    words: Sequence[str], gold: Entity | None, guess: Entity | None
) -> dict[str, str]:
    """The words around an entity, what it is and what it was taken for."""
    there = [x for x in (gold, guess) if x is not None]
    first, last = min(x.first for x in there), max(x.last for x in there)
    told = [
        "" if x is None else f"{x.type}: {' '.join(words[x.first : x.last + 1])}"
        for x in (gold, guess)
    ]
    around = " ".join(words[max(first - AROUND, 0) : last + AROUND + 1])
    return {"input": around, "gold": told[0], "guess": told[1]}


def mistakes_of_spans(
    answers: Sequence[Any], rows: Rows, each: int = SHOWN, bins: int = BINS
) -> dict[str, Any]:
    """Count and show what a model that answers gets wrong, by kind, the surest first;
    and how sure it is when right."""
    kinds = [
        answer_kind(answer.text, golds)
        for answer, golds in zip(answers, rows.golds, strict=True)
    ]
    shown = []
    for kind in ANSWERS[1:]:
        of_kind = sorted(
            (i for i, x in enumerate(kinds) if x == kind),
            key=lambda i: -answers[i].probability,
        )
        shown += [
            {
                "kind": kind,
                "input": rows.inputs[i][0],
                "gold": rows.golds[i][0] if rows.golds[i] else "",
                "guess": answers[i].text,
                "probability": round(answers[i].probability, 4),
            }
            for i in of_kind[:each]
        ]
    # A column of its own for "this answer": right is class 0 of it, wrong is a class
    # that is never guessed.
    sure = [[x.probability] for x in answers]
    right = [0 if kind == "right" else 1 for kind in kinds]
    return {
        "kinds": {kind: kinds.count(kind) for kind in ANSWERS},
        "calibration": {"as trained": calibration(sure, right, bins)._asdict()},
        "examples": shown,
    }


def examine(
    task: Task,
    model: TaskModel,
    tokenizer: FastWordPiece,
    rows: Rows,
    longest: int,
    shown: int = SHOWN,
    bins: int = BINS,
) -> dict[str, Any]:
    """Count and show what a fine-tuned model gets wrong on rows of its task."""
    scores = task.score(model, tokenizer, rows, longest)
    if task.form == "spans":
        null = None if task.always_answered else 0.0
        answers = predict(
            model,
            tokenizer,
            rows.inputs,
            max_length=longest,
            stride=longest // 3,
            null_threshold=null,
        )
        return {"scores": scores, **mistakes_of_spans(answers, rows, shown, bins)}
    if task.form not in ("classes", "tags") or task.labels is None:
        raise ValueError(
            f"mistakes in {task.form} are not told apart; choose a task with classes,"
            " tags or spans"
        )
    judged = judge(model, task.examples(rows, tokenizer, longest))
    if task.form == "classes":
        found = mistakes_of_classes(judged, rows, task.labels, shown)
    else:
        tags = predict(model, tokenizer, rows.inputs, max_length=longest)
        guesses = [[word.label for word in x] for x in tags]
        found = mistakes_of_tags(judged, guesses, rows, task.labels, shown)
    return {"scores": scores, **found, **calibrate(judged, bins)}


def run(
    plan: Study, study: Study, variant: str, seed: int, inputs: Inputs
) -> dict[str, Any]:
    """Examine the model of a plan's variant that was kept, or else is trained now."""
    started, task, longest = time.perf_counter(), inputs.task, plan.shared["max_length"]
    kept = inputs.kept_folder(plan.shared["data"], variant, seed)
    if not (kept / "model.safetensors").is_file():
        asked, rows = plan.variants[variant], inputs.tested
        run_variant(task, asked, inputs.folder, seed, longest, rows, kept)
    model = MODELS[task.form].from_pretrained(kept).to(device())
    found = {
        "rows": len(inputs.tested.inputs),
        **examine(
            task,
            model,
            FastWordPiece.load(kept),
            inputs.tested,
            longest,
            study.shared["shown"],
            study.shared["bins"],
        ),
    }
    _check_kept(found["scores"], plan, f"{inputs.checkpoint}, {variant}", seed, kept)
    return {**found, "seconds": round(time.perf_counter() - started, 1)}


def _check_kept(
    scores: Mapping[str, float], plan: Study, variant: str, seed: int, kept: Path
) -> None:
    """A model of an older plan may lie there: it must score as the record of its
    training says."""
    if not (records.RESULTS / f"{plan.name}.json").is_file():
        return
    for run in records.load(plan.name, records.RESULTS).results:
        if (run["variant"], run["seed"]) == (variant, seed) and any(
            abs(run["scores"][name] - value) > 0.01 for name, value in scores.items()
        ):
            raise ValueError(
                f"the model in {kept} scores {scores}, its record {run['scores']};"
                " remove it"
            )


def probe(plan: Study, study: Study, variant: str) -> tuple[Study, Inputs]:
    """Shorten the training of the model, on few rows of the form of its task."""
    short, _ = probe_of_plan(plan, variant)
    inputs = few_inputs(plan)._replace(kept=stand_ins.new_folder())
    return replace(study, run=partial(run, short)), inputs


def card_of(record: Record, result: Mapping[str, Any], inputs: Inputs) -> None:
    """Write the card of an examined model beside it."""
    variant = result["variant"].removeprefix(f"{inputs.checkpoint}, ")
    data = record.configuration["plan"]["data"]
    write_card(inputs.kept_folder(data, variant, result["seed"]), record, result)


def study_of(plan: Study, variant: str, shown: int = SHOWN, bins: int = BINS) -> Study:
    """Return the study of the mistakes of one variant of a plan, seed 0."""
    plan = replace(plan, variants={variant: plan.variants[variant]})
    shared = {"plan": plan.configuration, "shown": shown, "bins": bins}
    return Study(
        f"errors-{plan.shared['data']}",
        {variant: None},
        lambda _, source, checkpoint: read(plan, source, checkpoint),
        partial(run, plan),
        partial(probe, plan),
        shared,
        plan.data,
        listed=None,
        of_checkpoint=True,
        seeds=(0,),
        unprobed=("rows", "examples"),
        finish=card_of,
    )


STUDIES = {
    "sst2": study_of(PLANS["sst2"], "fine-tuned, all"),
    "pydocs-tag": study_of(PLANS["pydocs-tag"], "fine-tuned, 200"),
    "pydocs-span": study_of(PLANS["pydocs-span"], "fine-tuned, 200"),
    "squad": study_of(PLANS["squad"], "fine-tuned, 600"),
}


def calibrations(result: Mapping[str, Any]) -> dict[str, Calibration]:
    """Load the calibrations of a recorded result: name -> what
    `course_lib.figures.maps` draws."""
    return {name: Calibration(**told) for name, told in result["calibration"].items()}
