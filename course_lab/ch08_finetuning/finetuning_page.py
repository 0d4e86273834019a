"""What chapter 8 and its laboratory show of fine-tuning: features compared, and tables
of recorded runs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from course_lab.ch08_finetuning.features import majority
from course_lab.ch08_finetuning.finetuning_runs import LINEAR
from course_lab.records import Record, lead_text, mean_text, results_of
from course_lib.data.corpus import markdown_table
from course_lib.metrics.scores import Interval, mean_interval

WAYS = ("fine-tuned", "frozen", "from scratch")
TASKS: Mapping[str, str] = {
    "pydocs-topic": "topic", "pydocs-pair": "pair", "pydocs-tag": "tags",
    "pydocs-span": "span", "pydocs-choice": "choice",
}  # fmt: skip
SPLITS = ("random split, 1,500", "other modules, 200", "other modules, 2,000")


def feature_scores(
    inputs: Mapping[str, tuple[Any, Any, Any]],
    labels: Sequence[int],
    test_labels: Sequence[int],
    few: int = 200,
) -> dict[str, list[float]]:
    """Fit each classifier on its training rows and score it, in percent: on a random
    part of these rows, and on its test rows with few labels and with all."""
    found = {}
    for name, (classifier, train, test) in inputs.items():
        split = train_test_split(train, labels, test_size=500, random_state=0)
        parts = (
            (split[0], split[2], split[1], split[3]),
            (train[:few], labels[:few], test, test_labels),
            (train, labels, test, test_labels),
        )
        found[name] = [100 * classifier.fit(x, y).score(u, v) for x, y, u, v in parts]
    return found


def feature_table(
    scores: Mapping[str, Sequence[float]],
    labels: Sequence[int],
    test_labels: Sequence[int],
) -> str:
    """Write what `feature_scores` found, and what the largest class gets."""
    rows = [[name, *(f"{score:.1f}" for score in of)] for name, of in scores.items()]
    largest = f"{100 * majority(labels, test_labels):.1f}"
    rows.append(["largest class", "", largest, largest])
    return markdown_table(["accuracy (%), features", *SPLITS], rows)


class Curve(NamedTuple):
    """What recorded runs of one checkpoint reached."""

    labels: list[int]  # the numbers of labels, ascending
    scores: dict[str, np.ndarray]  # way -> seeds x labels, in percent

    def at(self, way: str, labels: int) -> np.ndarray:
        """Return the scores of a way with so many labels, one for each seed."""
        return self.scores[way][:, self.labels.index(labels)]

    def lead(self, way: str, other: str, labels: int) -> Interval:
        """Return by how much a way leads, seed by seed: mean and 95% interval."""
        leads = self.at(way, labels) - self.at(other, labels)
        return mean_interval(leads.tolist())


def clear(lead: Interval) -> bool:
    """Whether the interval of a difference leaves 0 out."""
    return abs(lead.mean) > lead.half_width


def linear_curves(
    recorded: Mapping[str, Record], numbers: Sequence[int]
) -> dict[tuple[str, int], Curve]:
    """Task and number of labels -> fine-tuning and both linear models, on the seeds
    that all three have."""
    ways = ("fine-tuned", *LINEAR)
    return {
        (name, labels): curve_of(record, "mini", ways, [labels])
        for name, record in recorded.items()
        for labels in numbers
        if name != "pydocs-span"  # a place in a text is no class
    }


def linear_table(curves: Mapping[tuple[str, int], Curve]) -> str:
    """Write what linear models reach, and by how much fine-tuning leads them."""
    rows = []
    for (name, labels), curve in curves.items():
        scores = [mean_text(curve.at(way, labels).tolist()) for way in curve.scores]
        leads = [lead_text(curve.lead("fine-tuned", way, labels)) for way in LINEAR]
        seeds = str(len(curve.at("words", labels)))
        rows.append([TASKS[name], f"{labels:,}", *scores, *leads, seeds])
    head = ["task", "labels", "fine-tuned", "bag of words", "frozen states"]
    return markdown_table([*head, *(f"over {way}" for way in LINEAR), "seeds"], rows)


def lead_table(
    curves: Mapping[str, Curve], way: str, other: str, labels: Sequence[int]
) -> str:
    """Write by how much a way leads another on each task, by number of labels."""
    head = [f"{way} minus {other}", *(f"{number:,} labels" for number in labels)]
    rows = [
        [TASKS[name], *(lead_text(curve.lead(way, other, x)) for x in labels)]
        for name, curve in curves.items()
    ]
    return markdown_table(head, rows)


METRICS: Mapping[str, str] = {"f1": "F1", "accuracy": "accuracy"}


def metric_of(scores: Mapping[str, float]) -> str:
    """Return the metric that a task is told by: F1 where it has one, else accuracy."""
    return next(metric for metric in METRICS if metric in scores)


def curve_of(
    record: Record,
    checkpoint: str,
    ways: Sequence[str] = WAYS,
    of: Sequence[int] | None = None,
) -> Curve:
    """Read the learning curves of a checkpoint from a record of `finetuning_runs`, with
    all numbers of labels or `of` some; of the seeds that all points have, so that
    differences are taken seed by seed."""
    found: dict[tuple[str, int], dict[int, float]] = {}
    for run in record.results:
        name, way, labels = run["variant"].split(", ")
        asked = labels.isdecimal() and (of is None or int(labels) in of)
        if name == checkpoint and asked:
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


def recorded_cells(
    names: Mapping[str, str],
    checkpoint: str,
    labels: Mapping[str, str],
    ways: Sequence[str] = WAYS,
) -> dict[str, list[str]]:
    """Write what recorded runs on real data reached."""
    cells = {}
    for name, metric in names.items():
        runs = results_of(f"finetuning-{name}")
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


def lead_cells(
    names: Mapping[str, str], ahead: str, behind: str, labels: str = "all"
) -> dict[str, str]:
    """Write by how much one "checkpoint, way" leads another on each task, in points and
    over the seeds that both have; nothing where these are fewer than three."""
    cells = {}
    for name, metric in names.items():
        runs = results_of(f"finetuning-{name}")
        one, other = (
            {
                run["seed"]: 100 * run["scores"][metric]
                for run in runs
                if run["variant"] == f"{way}, {labels}"
            }
            for way in (ahead, behind)
        )
        leads = [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]
        cells[name] = lead_text(mean_interval(leads)) if len(leads) > 2 else ""
    return cells
