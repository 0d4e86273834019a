"""What chapter 8 shows of fine-tuning: small models trained on the page, and tables of recorded runs.

A run on the page has the settings of `course_lib.experiments.finetuning_plans.PLANS`, with the smaller of the shipped
checkpoints, its own rate, and the models themselves to look at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from course_lib.experiments.finetuning_plans import PLANS, Variant
from course_lib.experiments.finetuning_runs import build_model
from course_lib.experiments.finetuning_tasks import Task, read_task
from course_lib.experiments.records import RESULTS, Record
from course_lib.experiments.records import load as load_record
from course_lib.experiments.shipped import CHECKPOINTS
from course_lib.fast_wordpiece import FastWordPiece
from course_lib.finetuning import FineTuningConfig, finetune
from course_lib.finetuning_files import TaskModel, looking
from course_lib.finetuning_heads import SpanClassifier
from course_lib.metrics import Interval, mean_interval
from course_lib.span_decoding import windows

WAYS = ("fine-tuned", "frozen", "from scratch")
TESTED = 300  # rows of the test split: a page has to be quick
TASKS: Mapping[str, str] = {
    "pydocs-topic": "topic", "pydocs-pair": "pair", "pydocs-tag": "tags",
    "pydocs-span": "span", "pydocs-choice": "choice",
}  # fmt: skip
# The rate at which tiny was best on validation rows, of three, with 200 labels and one seed.
RATES: Mapping[str, float] = {
    "pydocs-topic": 2e-3, "pydocs-pair": 2e-4, "pydocs-tag": 5e-4, "pydocs-span": 2e-3, "pydocs-choice": 2e-4,
}  # fmt: skip


class Live(NamedTuple):
    """A task of the page and the models that were trained on it.

    Parameters
    ----------
    task
        Its rows.
    tokenizer
        Of the checkpoint.
    max_length
        Tokens of an input.
    models
        By the way in which they were made, of `WAYS`.
    scores
        On some test rows, by way and metric, from 0 to 1.
    """

    task: Task
    tokenizer: FastWordPiece
    max_length: int
    models: dict[str, TaskModel]
    scores: dict[str, dict[str, float]]


def train_ways(name: str, labels: int = 200, seed: int = 0, folder: Path = CHECKPOINTS / "tiny") -> Live:
    """Fine-tune a checkpoint on a task, only its head, and the same model from random weights; test all three.

    Parameters
    ----------
    name
        A key of `RATES`.
    labels
        32, 200 or 2000 rows to learn from.
    seed
        Of the rows, of what is new in the models, and of the order.
    folder
        The checkpoint.

    Returns
    -------
    Live
        The models, in evaluation mode, and their scores.
    """
    study, task, tokenizer = PLANS[name], read_task(name, source="embedded"), FastWordPiece.load(folder)
    examples = task.examples(task.train.sample(labels, seed), tokenizer, study.max_length)
    tested = task.test.sample(TESTED, seed=0)
    models, scores = {}, {}
    for way in WAYS:
        config = study.variants[f"{way}, {labels}"].config
        rate = RATES[name] if way == "fine-tuned" else config.learning_rate
        model = build_model(task, Variant(way), folder, seed)
        finetune(model, examples, config=_live(config, rate, seed))
        models[way], scores[way] = model, task.score(model, tokenizer, tested, study.max_length)
    return Live(task, tokenizer, study.max_length, models, scores)


def scores_before(name: str, seeds: Sequence[int], folder: Path = CHECKPOINTS / "mini") -> list[float]:
    """Score a pre-trained model on a task before it has learnt any of it: its new layer holds what a seed drew.

    Parameters
    ----------
    name
        A key of `TASKS`.
    seeds
        As in recorded runs: the same seed draws the same layer there.
    folder
        The checkpoint.

    Returns
    -------
    list of float
        For each seed, in percent, on some rows of the test split.
    """
    study, task, tokenizer = PLANS[name], read_task(name, source="embedded"), FastWordPiece.load(folder)
    tested = task.test.sample(TESTED, seed=0)
    found = []
    for seed in seeds:
        scores = task.score(build_model(task, Variant("fine-tuned"), folder, seed), tokenizer, tested, study.max_length)
        found.append(100 * scores[metric_of(scores)])
    return found


class Curve(NamedTuple):
    """What recorded runs of one checkpoint reached.

    Parameters
    ----------
    labels
        The numbers of labels, ascending.
    scores
        Way -> seeds x labels, in percent.
    """

    labels: list[int]
    scores: dict[str, np.ndarray]

    def at(self, way: str, labels: int) -> np.ndarray:
        """Return the scores of a way with so many labels, one for each seed."""
        return self.scores[way][:, self.labels.index(labels)]

    def lead(self, way: str, other: str, labels: int) -> tuple[float, float]:
        """Return by how much a way leads, seed by seed: the mean, and its standard error."""
        leads = self.at(way, labels) - self.at(other, labels)
        return float(leads.mean()), float(leads.std(ddof=1) / np.sqrt(len(leads)))


METRICS: Mapping[str, str] = {"f1": "F1", "accuracy": "accuracy"}


def metric_of(scores: Mapping[str, float]) -> str:
    """Return the metric that a task is told by: F1 where it has one, else accuracy.

    Examples
    --------
    >>> metric_of({"exact": 0.5, "f1": 0.6})
    'f1'
    """
    return next(metric for metric in METRICS if metric in scores)


def curve_of(record: Record, checkpoint: str, ways: Sequence[str] = WAYS) -> Curve:
    """Read the learning curves of a checkpoint from a record of `finetuning_runs`.

    Parameters
    ----------
    record
        Its variants are called "checkpoint, way, number of labels".
    checkpoint
        The name.
    ways
        Which of them.

    Returns
    -------
    Curve
        By way, with the numbers of labels that all of them have.

    Raises
    ------
    LookupError
        If the record has no run of a way with this checkpoint.
    """
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for run in record.results:
        name, way, labels = run["variant"].split(", ")
        if name == checkpoint and labels.isdecimal():
            score = 100 * run["scores"][metric_of(run["scores"])]
            found.setdefault((way, int(labels)), []).append((run["seed"], score))
    numbers = sorted({labels for _, labels in found if all((way, labels) in found for way in ways)})
    if not numbers:
        raise LookupError(f"{record.name} has no runs of {checkpoint} in all of these ways: {', '.join(ways)}")
    return Curve(
        numbers,
        {way: np.array([[s for _, s in sorted(found[way, labels])] for labels in numbers]).T for way in ways},
    )


def score_table(live: Live, recorded: Curve, labels: int = 200) -> str:
    """Write what the models of the page reach, and beside it what the larger one reached in recorded runs.

    Parameters
    ----------
    live
        From `train_ways`.
    recorded
        Of the same task.
    labels
        Of both.

    Returns
    -------
    str
        A table in Markdown, in percent.
    """
    metric = metric_of(live.scores["frozen"])
    lines = [f"| {METRICS[metric]} (%) | tiny, here | mini, recorded |", "| --- | --- | --- |"]
    for way in WAYS:
        interval = mean_interval(recorded.at(way, labels).tolist())
        lines.append(f"| {way} | {100 * live.scores[way][metric]:.1f} | {cell(interval)} |")
    return "\n".join(lines)


def cell(interval: Interval) -> str:
    """Write a mean with half of its interval.

    Examples
    --------
    >>> cell(Interval(51.26, 2.04))
    '51.3 ± 2.0'
    """
    return f"{interval.mean:.1f} ± {interval.half_width:.1f}"


def careless_spans(
    model: SpanClassifier, tokenizer: FastWordPiece, questions: Sequence[tuple[str, str]], max_length: int
) -> float:
    """Say how often the best start and the best end, each found on its own, make no span of the context.

    Parameters
    ----------
    model, tokenizer
        Fine-tuned, and its own.
    questions
        Pairs of a question and its context; only the first window of each is looked at.
    max_length
        Tokens of the window.

    Returns
    -------
    float
        The share of questions where the end comes before the start, or one of both is no token of the context.
    """
    careless = 0
    with looking(model) as where:
        for question, context in questions:
            window = windows(question, context, tokenizer, max_length, max_length // 3)[0]
            ids, segments = (torch.tensor([row], device=where) for row in (window.input_ids, window.token_type_ids))
            start, end = (int(logits[0].argmax()) for logits in model(ids, None, segments))
            careless += end < start or window.offsets[start] is None or window.offsets[end] is None
    return careless / len(questions)


def layer_decay_scores(
    name: str, decays: Sequence[float], seeds: Sequence[int], labels: int = 200
) -> list[list[float]]:
    """Fine-tune tiny with rates that fall from layer to layer, from the same rate of the head.

    Parameters
    ----------
    name
        A key of `RATES`.
    decays
        Values of `FineTuningConfig.layer_decay`.
    seeds
        As in `train_ways`; each value has the same.
    labels
        As in `train_ways`.

    Returns
    -------
    list of list of float
        For each value the scores of its seeds, in percent.
    """
    folder, study, task = CHECKPOINTS / "tiny", PLANS[name], read_task(name, source="embedded")
    tokenizer, config = FastWordPiece.load(folder), study.variants[f"fine-tuned, {labels}"].config
    scores: list[list[float]] = [[] for _ in decays]
    for seed in seeds:
        examples = task.examples(task.train.sample(labels, seed), tokenizer, study.max_length)
        for decay, of_decay in zip(decays, scores, strict=True):
            model = build_model(task, Variant("fine-tuned"), folder, seed)
            finetune(model, examples, config=_live(config, RATES[name], seed, decay))
            found = task.score(model, tokenizer, task.test.sample(TESTED, seed=0), study.max_length)
            of_decay.append(100 * found[metric_of(found)])
    return scores


def _live(config: FineTuningConfig, rate: float, seed: int, decay: float = 1.0) -> FineTuningConfig:
    """A plan's settings on the page: in float32, so that it shows the same on every machine."""
    return replace(config, learning_rate=rate, layer_decay=decay, seed=seed, precision="float32", progress=False)


def recorded_cells(
    names: Mapping[str, str], checkpoint: str, labels: Mapping[str, str], ways: Sequence[str] = WAYS
) -> dict[str, list[str]]:
    """Write what recorded runs on real data reached.

    Parameters
    ----------
    names
        Data set -> the metric that is told of it.
    checkpoint
        The name.
    labels
        Data set -> its number of labels, or "all".
    ways
        Of using it.

    Returns
    -------
    dict
        Data set -> a cell for each way: the mean over seeds in percent, with an interval from three seeds on. Empty
        where there was no such run, which the page says.
    """
    cells = {}
    for name, metric in names.items():
        record = f"finetuning-{name}"
        runs = load_record(record).results if (RESULTS / f"{record}.json").is_file() else []
        found = [
            [100 * run["scores"][metric] for run in runs if run["variant"] == f"{checkpoint}, {way}, {labels[name]}"]
            for way in ways
        ]
        cells[name] = [_cell_of(scores) for scores in found]
    return cells


def _cell_of(scores: Sequence[float]) -> str:
    if len(scores) >= 3:
        return cell(mean_interval(scores))
    return f"{np.mean(scores):.1f}" if scores else ""
