"""Few rows of each form of task, for the probes of what is fine-tuned (chapter 8)."""

from dataclasses import replace
from typing import Any

from course_lab import stand_ins
from course_lab.ch08_finetuning.finetuning_runs import Variant
from course_lab.ch08_finetuning.finetuning_tasks import SPECS, Form, Rows, Task
from course_lab.study import shortened

ROWS, LENGTH = 24, 40


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


def little(variant: Variant) -> Variant:
    """Return a variant that takes a second, and draws nothing by chance."""
    short = shortened(
        variant, steps=4, precision="float32", progress=False, batch_size=8
    )
    held = min(variant.held, ROWS // 3)
    labels = variant.labels and ROWS - held
    return replace(short, labels=labels, held=held, whole=False)
