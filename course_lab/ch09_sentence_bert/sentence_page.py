"""What chapter 9 shows of recorded runs: tables and bars of our sentence encoders, with
published ones beside."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from course_lab.ch09_sentence_bert.sentence_cost import Cost
from course_lab.ch09_sentence_bert.sentences import measure, ranks
from course_lab.records import Record, mean_text
from course_lib.data.corpus import markdown_table
from course_lib.metrics.scores import mean_interval

MINI, REAL = "mini", "all-MiniLM-L6-v2"


#: For each encoder its name on the page, and checkpoint, variant and stage in the
#: record.
ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("averaged static vectors", MINI, "static", "start"),
    ("raw, mean", MINI, "raw mean", "start"),
    ("raw, [CLS]", MINI, "raw [CLS]", "start"),
    ("untrained, mean", MINI, "untrained", "start"),
    ("static, minus the mean", MINI, "static, centred", "start"),
    ("static, whitened", MINI, "static, whitened", "start"),
    ("raw, mean, minus the mean", MINI, "raw mean, centred", "start"),
    ("raw, mean, whitened", MINI, "raw mean, whitened", "start"),
    ("untrained, mean, whitened", MINI, "untrained, whitened", "start"),
    ("NLI, classes", MINI, "classes", "classes"),
    ("NLI, classes, then STS-B", MINI, "classes", "scores"),
    ("NLI, in the batch", MINI, "pairs", "pairs"),
    ("NLI, in the batch, then STS-B", MINI, "pairs", "scores"),
    ("STS-B alone", MINI, "scores", "scores"),
    ("a published sentence encoder", REAL, "published", "start"),
)
#: Reimers and Gurevych 2019: Spearman x 100 on STS-B, tables 1 and 2, of models that
#: are ours in role only.
PUBLISHED: Mapping[str, float] = {
    "averaged static vectors": 58.02,
    "raw, mean": 46.35,
    "raw, [CLS]": 16.50,
    "NLI, classes": 77.03,
    "NLI, classes, then STS-B": 85.35,
    "STS-B alone": 84.67,
    "a published sentence encoder": 82.03,
}
PROBES = ("SUBJ", "TREC", "MRPC", "SST")
#: The same, table 5: accuracy in percent on the four of its seven probes that are run
#: here.
PUBLISHED_PROBES: Mapping[str, tuple[float, ...]] = {
    "averaged GloVe": (91.17, 83.0, 72.87, 80.18),
    "BERT-base, mean": (94.37, 92.8, 69.45, 84.40),
    "BERT-base, [CLS]": (94.21, 91.4, 71.13, 84.13),
    "SBERT-NLI-base": (94.39, 89.6, 76.00, 88.96),
}


#: What the cross-encoder of `course_lab.ch09_sentence_bert.sentence_cost.KINDS` is
#: called on the page.
READERS: Mapping[str, str] = {
    "first state": "last layer for [CLS]",
    "every state": "last layer for every token",
    "sentence-transformers": "sentence-transformers",
}


def cost_rows(cost: Cost) -> str:
    """Write what all pairs of 10,000 sentences cost, here and in the paper."""
    hours, seconds = np.median(cost.cross) / 3600, np.median(cost.bi)
    return markdown_table(
        ("10,000 sentences", "cross-encoder, every pair", "bi-encoder and search"),
        [
            ("the paper, BERT, one V100", "65 hours", "5 seconds"),
            (
                "tiny, one core, here",
                f"{hours:.0f} hours (extrapolated)",
                f"{seconds:.0f} seconds",
            ),
        ],
    )


def search_table(
    scores: Mapping[str, Tensor], right: Sequence[int]
) -> tuple[dict[str, float], str]:
    """Return the MRR x 100 of each way to score, and a table with its 95% interval over
    the queries."""
    mrr, rows = {}, []
    for name, of_one in scores.items():
        places = ranks(of_one, right)
        found, half = measure(places), mean_interval((100 / places).tolist()).half_width
        mrr[name] = 100 * found.mrr
        shares = (f"{100 * share:.1f}" for share in found[1:])
        rows.append((name, f"{mrr[name]:.1f} ± {half:.1f}", *shares))
    head = ("score by", "MRR × 100", "first (%)", "in the first ten (%)")
    return mrr, markdown_table(head, rows)


def lengths_of(record: Record) -> list[int]:
    """Return the lengths of sentences for which ``benchmark-sentence_bert`` has the
    cost of pairs, in tokens."""
    return sorted({row["length"] for row in record.results if row["what"] == "length"})


def cost_runs(record: Record, model: str) -> dict[str, np.ndarray]:
    """Return how many times as much a cross-encoder costs, for
    `course_lib.figures.curves.growth_curves`."""
    rows = {
        (row["peer"], row["length"]): row["ratios"]
        for row in _by_length(record)
        if row["mode"] == model
    }
    return {
        name: np.array([rows[kind, length] for length in lengths_of(record)]).T
        for kind, name in READERS.items()
    }


def cost_table(record: Record, sentences: int) -> str:
    """Write how many times as much a cross-encoder costs, for each model, reader and
    length, and what tokens alone say."""
    lengths = lengths_of(record)
    cells = {
        (
            row["mode"],
            row["peer"],
            row["length"],
        ): f"{row['ratio']:,.0f} ({row['low']:,.0f} to {row['high']:,.0f})"
        for row in _by_length(record)
    }
    models = dict.fromkeys(row["mode"] for row in _by_length(record))
    rows = [
        (model, READERS[kind], *(cells[model, kind, length] for length in lengths))
        for model in models
        for kind in READERS
    ]
    counted = [(sentences - 1) * (2 * length - 1) / (2 * length) for length in lengths]
    rows.append(("*tokens alone*", "", *(f"{ratio:,.0f}" for ratio in counted)))
    return markdown_table(
        ("model", "cross-encoder", *(f"{length} tokens" for length in lengths)), rows
    )


def reaching(record: Record, least: float) -> str:
    """Say in words for which models, readers and lengths the median ratio is at least
    so high."""
    found: dict[tuple[str, str], list[int]] = {}
    for row in _by_length(record):
        if row["ratio"] >= least:
            found.setdefault((row["mode"], row["peer"]), []).append(row["length"])
    parts = [
        f"{mode}, {READERS[kind]}: {', '.join(map(str, sorted(at)))} tokens"
        for (mode, kind), at in found.items()
    ]
    return "; ".join(parts) or "nowhere"


def _by_length(record: Record) -> list[dict[str, Any]]:
    return [row for row in record.results if row["what"] == "length"]


def recorded(record: Record, row: Sequence[str], what: str = "stsb") -> list[float]:
    """Return what an encoder reached, one value for each seed; none if there was no
    such run."""
    _, checkpoint, variant, stage = row
    runs = [
        run for run in record.results if run["variant"] == f"{checkpoint}, {variant}"
    ]
    scale = 100 if what == "stsb" else 1
    return [scale * run["after"][stage][what] for run in runs]


def middle(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and half of the 95% interval over seeds, 0 if there is only
    one."""
    if len(values) < 2:
        return float(np.mean(values)), 0.0
    interval = mean_interval(values)
    return interval.mean, interval.half_width


def similarity_table(record: Record) -> str:
    """Write Spearman on STS-B and the mean cosine of unrelated sentences, of each
    encoder that was run."""
    rows = [
        (
            row[0],
            mean_text(recorded(record, row)),
            f"{PUBLISHED[row[0]]:.1f}" if row[0] in PUBLISHED else "",
            mean_text(recorded(record, row, "cosine"), 2),
        )
        for row in ROWS
        if recorded(record, row)
    ]
    return markdown_table(
        ("vectors", "STS-B, ours", "STS-B, published", "mean cosine, ours"), rows
    )


def similarity_bars(record: Record) -> dict[str, tuple[float, float]]:
    """Return the scores on STS-B as `course_lib.figures.bars.score_bars`
    takes them."""
    return {
        row[0]: middle(recorded(record, row)) for row in ROWS if recorded(record, row)
    }


def probe_table(record: Record) -> str:
    """Write what a logistic regression finds in the vectors, in percent, with published
    figures below."""
    rows = []
    # probes are of the vectors after the last stage
    last = {row[1:3]: row for row in ROWS}
    for row in last.values():
        runs = [
            run["probes"]
            for run in record.results
            if run["variant"] == f"{row[1]}, {row[2]}" and run["probes"]
        ]
        if runs:
            values = [[100 * run[name] for run in runs] for name in PROBES]
            rows.append(
                (
                    row[0],
                    *(mean_text(found) for found in values),
                    f"{np.mean(values):.1f}",
                )
            )
    for name, published in PUBLISHED_PROBES.items():
        rows.append(
            (
                f"*{name}, published*",
                *(f"{x:.1f}" for x in published),
                f"{np.mean(published):.1f}",
            )
        )
    return markdown_table(("vectors", *PROBES, "mean"), rows)
