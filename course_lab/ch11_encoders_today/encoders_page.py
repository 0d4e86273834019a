"""What chapter 11 shows of its records: tables of variants, in percent, each with its
lead over a control, seed by seed.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from time import process_time
from typing import Any

import torch

from course_lab.ch06_pretraining.pretraining_page import runs_of
from course_lab.ch11_encoders_today import modern_stories
from course_lab.ch11_encoders_today.adapting import FEW, MANY
from course_lab.records import (
    lead_text,
    load,
    mean_text,
    not_yet,
    recorded_note,
    results_of,
)
from course_lib.data.corpus import markdown_table
from course_lib.metrics.scores import Interval, mean_interval

ACCURACY = ("scores", "accuracy")
VOCABULARY = 1588  # tokens of the stories
WHOLE, NESTED = "vectors", "vectors, Matryoshka"
Path = Sequence[str]  # the keys that lead to a figure within a run


def runs(name: str, variant: str) -> Sequence[Mapping[str, Any]]:
    """Return a variant's recorded runs, by seed; none if there are none."""
    return runs_of(results_of(name)).get(variant, [])


def values(name: str, variant: str, figure: Path) -> list[float]:
    """Return a figure of a variant's recorded runs in percent, by seed."""
    found: list[Any] = list(runs(name, variant))
    for key in figure:
        found = [part[key] for part in found]
    return [100 * float(value) for value in found]


def lead(name: str, variant: str, control: str, figure: Path) -> Interval:
    """Say by how many points a variant is ahead of a control, over the seeds of
    both."""
    ours, theirs = (values(name, x, figure) for x in (variant, control))
    return mean_interval([a - b for a, b in zip(ours, theirs, strict=True)])


def noted(name: str, variant: str, table: str) -> str:
    """Put what it was recorded by before a table."""
    seeds = len(runs(name, variant))
    note = recorded_note(load(name), f"The next table, of {seeds} seeds, was")
    return f"{note}\n\n{table}"


def comparison(
    name: str, control: str, variants: Sequence[str], columns: Mapping[str, Path]
) -> str:
    """Write a control and variants as a table: means over seeds ± 95% intervals, and
    the lead over the control in the first column's figure; the command that makes the
    runs, where there are none."""
    recorded = runs_of(results_of(name, least=2))
    if control not in recorded:
        return not_yet(f"course record {name}")
    first = next(iter(columns.values()))
    rows = []
    for variant in (control, *(x for x in variants if x in recorded)):
        figures = [mean_text(values(name, variant, x)) for x in columns.values()]
        ahead = lead_text(lead(name, variant, control, first))
        rows.append((variant, *figures, "" if variant == control else ahead))
    head = ("variant", *columns, f"ahead of {control}")
    return noted(name, control, markdown_table(head, rows))


def costs_table(rounds: int = 5) -> str:
    """Write how many weights of a changed BERT are trained, and the processor time of
    its step, forwards and back, beside that of BERT: measured here, in turns."""
    variants = modern_stories.STUDIES["stories"].variants
    times: dict[str, list[float]] = {}
    models: dict[str, Any] = {
        name: modern_stories.build(variants[name], VOCABULARY)
        for name in variants
        if name not in ("no next sentence", "30% masked")  # the model is BERT's
    }
    chance = torch.Generator().manual_seed(0)
    ids = torch.randint(5, VOCABULARY, (64, 64), generator=chance)
    asked = {"masked_positions": torch.arange(0, ids.numel(), 7)}
    for _ in range(rounds + 1):  # the first warms up
        for name, model in models.items():
            begin = process_time()
            model(ids, **asked).prediction_logits.logsumexp(dim=1).sum().backward()
            times.setdefault(name, []).append(process_time() - begin)
    rows = []
    for name, model in models.items():
        ratios = [a / b for a, b in zip(times[name], times["BERT"], strict=True)]
        weights = sum(x.numel() for x in model.parameters() if x.requires_grad)
        rows.append((name, f"{weights:,}", f"{median(ratios[1:]):.2f}"))
    return markdown_table(("variant", "weights", "time of a step"), rows)


def sparse_table() -> str:
    """Write nDCG@10 and the weights of a text, of sparse encoders with the loss on
    operations and without."""
    name, rows = "encoders-pydocs-pair", []
    for variant in ("sparse", "sparse, no FLOPS loss"):
        weights = [
            mean_text([run["weights"][f"of a {text}"] for run in runs(name, variant)])
            for text in ("query", "document")
        ]
        found = mean_text(values(name, variant, ("scores", "ndcg_10")))
        rows.append((variant, found, *weights))
    head = ("variant", "nDCG@10", "weights of a query", "of a document")
    return noted(name, "sparse", markdown_table(head, rows))


def sizes_table() -> str:
    """Write nDCG@10 by how many first features of a vector are used, with Matryoshka's
    loss and without."""
    name, rows = "encoders-pydocs-pair", []
    recorded = runs_of(results_of(name, least=2))
    for size in recorded[NESTED][0]["ndcg_10 by size"]:
        figure = ("ndcg_10 by size", size)
        figures = [mean_text(values(name, x, figure)) for x in (WHOLE, NESTED)]
        rows.append((size, *figures, lead_text(lead(name, NESTED, WHOLE, figure))))
    return markdown_table(("first features", WHOLE, NESTED, "ahead"), rows)


def adapting_table() -> str:
    """Ways to adapt an encoder with few and with many labels, and what each trains."""
    name, rows = "encoders-adapting", []
    recorded = runs_of(results_of(name, least=2))
    for way in dict.fromkeys(variant.rpartition(", ")[0] for variant in recorded):
        row = [way, f"{recorded[f'{way}, {FEW}'][0]['size']:,}"]
        for labels in (FEW, MANY):
            variant, control = f"{way}, {labels}", f"fine-tuned, {labels}"
            ahead = lead_text(lead(name, variant, control, ACCURACY))
            row.append(mean_text(values(name, variant, ACCURACY)))
            row.append("" if variant == control else ahead)
        rows.append(row)
    many = (f"{labels:,} labels (%)" for labels in (FEW, MANY))
    head = ("way", "weights trained", next(many), "ahead", next(many), "ahead")
    return noted(name, f"frozen, {FEW}", markdown_table(head, rows))
