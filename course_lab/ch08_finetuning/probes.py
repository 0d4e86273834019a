"""Probes of chapter 8's recorded runs, on stand-in tasks of the five forms."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course_lab import stand_ins
from course_lab.ch08_finetuning.error_runs import ErrorStudy, examine
from course_lab.ch08_finetuning.finetuning_plans import PLANS, FineTuningStudy, Variant
from course_lab.ch08_finetuning.finetuning_runs import run_variant, score_average
from course_lab.ch08_finetuning.finetuning_tasks import MODELS, SPECS, Form, Rows, Task

STEPS, ROWS, LENGTH = 4, 24, 40


def task(name: str) -> Task:
    """Return a task of the form of another, made from generated sentences."""
    spec = SPECS[name]
    labels: tuple[str, ...] | None
    labels = {"classes": ("0", "1"), "tags": ("O", "B-LONG")}.get(spec.form)
    if name == "pydocs-topic":
        labels = ("0", "1", "2")
    parts = [_rows(spec.form, len(spec.inputs), len(labels or ()), x) for x in (0, 1)]
    return Task(name, spec.form, labels, *parts)


def _rows(form: Form, inputs: int, classes: int, part: int) -> Rows:
    told = list(stand_ins.sentences()[2 * part * ROWS : 2 * (part + 1) * ROWS])
    texts, others = told[:ROWS], told[ROWS:]
    both: list[Any] = list(zip(texts, others, strict=True))
    given: list[Any] = texts if inputs == 1 else both
    sizes = [len(text) for text in texts]
    if form == "classes":
        return Rows(given, [size % classes for size in sizes], [])
    if form == "number":
        return Rows(given, [size % 6 / 1.0 for size in sizes], [])
    if form == "tags":
        of_words = [text.split() for text in texts]
        tags = [[int(len(word) > 6) for word in words] for words in of_words]
        return Rows(of_words, tags, [])
    if form == "choices":
        endings = [[others[(i + x) % ROWS] for x in range(4)] for i in range(ROWS)]
        golds = [size % 4 for size in sizes]
        return Rows(list(zip(texts, endings, strict=True)), golds, [])
    answers = [text.split()[1] for text in others]
    starts = [text.index(" ") + 1 for text in others]
    places: list[tuple[int, int] | None] = [
        (start, start + len(answer))
        for start, answer in zip(starts, answers, strict=True)
    ]
    return Rows(both, [[answer] for answer in answers], places)


def shortened(variant: Variant) -> Variant:
    """Return a variant that takes a second, and draws nothing by chance."""
    config = replace(
        variant.config, steps=STEPS, precision="float32", progress=False, batch_size=8
    )
    return replace(variant, config=config, labels=variant.labels and ROWS, whole=False)


def probe_finetuning(study: FineTuningStudy, variant: str) -> dict[str, Any]:
    """Use the stand-in of a checkpoint in one way for a few steps, and score it."""
    asked, given = shortened(study.variants[key_of(study, variant)]), task(study.data)
    folder, seed = stand_ins.checkpoint(), 0
    if asked.use != "averaged":
        return run_variant(given, asked, folder, seed, LENGTH, given.test)
    with TemporaryDirectory() as kept:
        parts = []
        for plan in asked.plans:
            [only] = PLANS[plan].variants.values()
            for number in asked.seeds:
                parts.append(Path(kept) / f"{plan}-{number}")
                run_variant(
                    given,
                    shortened(only),
                    folder,
                    number,
                    LENGTH,
                    given.test,
                    parts[-1],
                )
        return score_average(given, asked, parts, folder, LENGTH, given.test)


def key_of(study: FineTuningStudy, variant: str) -> str:
    """Return the variant of a study that a run is called by, behind its
    checkpoint's name."""
    return next(name for name in study.variants if variant.endswith(f", {name}"))


def probe_errors(study: ErrorStudy, variant: str) -> dict[str, Any]:
    """Fine-tune the stand-in of a checkpoint for a few steps, and count what it gets
    wrong."""
    given, plan = task(study.plan.data), replace(study.plan, max_length=LENGTH)
    [asked] = plan.variants.values()
    with TemporaryDirectory() as kept:
        folder = Path(kept) / "model"
        run_variant(
            given,
            shortened(asked),
            stand_ins.checkpoint(),
            0,
            LENGTH,
            given.test,
            folder,
        )
        model = MODELS[given.form].from_pretrained(folder)
        study = replace(study, plan=plan)
        found = examine(given, model, stand_ins.tokenizer(), study)
    del found["examples"]
    return found
