"""What chapter 8 shows of fine-tuning: a small model trained on the page, and tables of
recorded runs.

The run on the page has the steps, batches and lengths of
`course_lab.ch08_finetuning.finetuning_plans.PLANS`, with the smaller of the shipped
checkpoints, rates of its own, in float32.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lab.ch06_pretraining.shipped import CHECKPOINTS
from course_lab.ch08_finetuning.finetuning_plans import PLANS
from course_lab.ch08_finetuning.finetuning_runs import Variant, build_model
from course_lab.ch08_finetuning.finetuning_tasks import Task, read_task
from course_lab.records import RESULTS, Record, mean_text
from course_lab.records import load as load_record
from course_lib.data.corpus import markdown_table
from course_lib.finetuning.finetune import finetune
from course_lib.finetuning.task_model import TaskModel
from course_lib.wordpiece.fast import FastWordPiece

WAYS = ("fine-tuned", "frozen", "from scratch")
TASKS: Mapping[str, str] = {
    "pydocs-topic": "topic", "pydocs-pair": "pair", "pydocs-tag": "tags",
    "pydocs-span": "span", "pydocs-choice": "choice",
}  # fmt: skip
# The rate at which tiny was best on validation rows, of three, with 200 labels and one
# seed.
RATES: Mapping[str, float] = {
    "pydocs-topic": 2e-3,
    "pydocs-pair": 2e-4,
    "pydocs-tag": 5e-4,
    "pydocs-span": 2e-3,
    "pydocs-choice": 2e-4,
}


class Live(NamedTuple):
    """A task of the page and the models that were trained on it."""

    task: Task  # its rows
    models: dict[str, TaskModel]  # by the way in which they were made, of `WAYS`
    #: On the test rows, by way and metric, from 0 to 1.
    scores: dict[str, dict[str, float]]


def train_ways(
    name: str, labels: int = 200, seed: int = 0, folder: Path = CHECKPOINTS / "tiny"
) -> Live:
    """Fine-tune a checkpoint on a task, only its head, and the same model from random
    weights; test all three."""
    study, task = PLANS[name], read_task(name, source="embedded")
    tokenizer = FastWordPiece.load(folder)
    longest = study.shared["max_length"]
    examples = task.examples(task.train.sample(labels, seed), tokenizer, longest)
    models, scores = {}, {}
    for way in WAYS:
        plan = study.variants[f"{way}, {labels}"].config
        rate = RATES[name] if way == "fine-tuned" else plan.learning_rate
        config = replace(
            plan, seed=seed, progress=False, precision="float32", learning_rate=rate
        )
        models[way] = build_model(task, Variant(way), folder, seed)
        finetune(models[way], examples, config=config)
        scores[way] = task.score(models[way], tokenizer, task.test, longest)
    return Live(task, models, scores)


class Curve(NamedTuple):
    """What recorded runs of one checkpoint reached."""

    labels: list[int]  # the numbers of labels, ascending
    scores: dict[str, np.ndarray]  # way -> seeds x labels, in percent

    def at(self, way: str, labels: int) -> np.ndarray:
        """Return the scores of a way with so many labels, one for each seed."""
        return self.scores[way][:, self.labels.index(labels)]

    def lead(self, way: str, other: str, labels: int) -> tuple[float, float]:
        """Return by how much a way leads, seed by seed: the mean, and its standard
        error."""
        leads = self.at(way, labels) - self.at(other, labels)
        return float(leads.mean()), float(leads.std(ddof=1) / np.sqrt(len(leads)))


METRICS: Mapping[str, str] = {"f1": "F1", "accuracy": "accuracy"}


def metric_of(scores: Mapping[str, float]) -> str:
    """Return the metric that a task is told by: F1 where it has one, else accuracy."""
    return next(metric for metric in METRICS if metric in scores)


def curve_of(record: Record, checkpoint: str, ways: Sequence[str] = WAYS) -> Curve:
    """Read the learning curves of a checkpoint from a record of `finetuning_runs`: of
    the seeds that all points have, so that differences are taken seed by seed."""
    found: dict[tuple[str, int], dict[int, float]] = {}
    for run in record.results:
        name, way, labels = run["variant"].split(", ")
        if name == checkpoint and labels.isdecimal():
            score = 100 * run["scores"][metric_of(run["scores"])]
            found.setdefault((way, int(labels)), {})[run["seed"]] = score
    numbers = sorted(
        {labels for _, labels in found if all((way, labels) in found for way in ways)}
    )
    if not numbers:
        raise LookupError(
            f"{record.name} has no runs of {checkpoint} in all of these ways:"
            f" {', '.join(ways)}"
        )
    points = [found[way, labels] for way in ways for labels in numbers]
    seeds = sorted(set(points[0]).intersection(*points))
    return Curve(
        numbers,
        {
            way: np.array([[found[way, x][seed] for x in numbers] for seed in seeds])
            for way in ways
        },
    )


def score_table(record: Record, live: Live | None = None, labels: int = 200) -> str:
    """Write what mini reached in recorded runs, and beside it what the models of the
    page reach, if any."""
    metric, curve = metric_of(record.results[0]["scores"]), curve_of(record, "mini")
    head, rows = [f"{METRICS[metric]} (%)", "mini, recorded"], []
    for way in WAYS:
        rows.append([way, mean_text(curve.at(way, labels).tolist())])
    if live is not None:
        head.insert(1, "tiny, here")
        for row in rows:
            row.insert(1, f"{100 * live.scores[row[0]][metric]:.1f}")
    return markdown_table(head, rows)


def recorded_cells(
    names: Mapping[str, str],
    checkpoint: str,
    labels: Mapping[str, str],
    ways: Sequence[str] = WAYS,
) -> dict[str, list[str]]:
    """Write what recorded runs on real data reached."""
    cells = {}
    for name, metric in names.items():
        record = f"finetuning-{name}"
        runs = (
            load_record(record).results
            if (RESULTS / f"{record}.json").is_file()
            else []
        )
        found = [
            [
                100 * run["scores"][metric]
                for run in runs
                if run["variant"] == f"{checkpoint}, {way}, {labels[name]}"
            ]
            for way in ways
        ]
        cells[name] = [mean_text(scores, least=3) for scores in found]
    return cells
