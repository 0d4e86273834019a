"""What the pages of chapter 1 compute beside their text: runs by model, one model's
searches sentence by sentence, and tables of means with intervals."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from course_lab.ch01_seq2seq.alignment import attention_weights
from course_lab.ch01_seq2seq.scoring import quality_by_length, translate
from course_lab.ch01_seq2seq.seq2seq import Corpus, Recipe
from course_lab.ch01_seq2seq.translator_measures import SEARCHES, search
from course_lab.records import Record
from course_lib.figures import maps
from course_lib.metrics.scores import Interval, bleu, mean_interval
from course_lib.seq2seq.model import Seq2Seq

#: What is measured of each translation, and with how many decimals it is shown.
COLUMNS = {"log-probability (nats)": 2, "BLEU": 1, "length (words)": 1}


def by_attention(record: Record) -> dict[str, list[dict[str, Any]]]:
    """Return the runs with attention and those without, each in the order of the same
    seeds."""
    runs = {
        name: sorted(
            (run for run in record.results if run["attention"] == kind),
            key=lambda run: run["seed"],
        )
        for name, kind in (("attention", "dot"), ("no attention", None))
    }
    seeds = {tuple(run["seed"] for run in found) for found in runs.values()}
    if len(seeds) != 1:
        raise ValueError(f"the models of {record.name} have other seeds: {seeds}")
    return runs


def searched(
    model: Seq2Seq, corpus: Corpus, seed: int, sentences: int
) -> dict[str, np.ndarray]:
    """Translate the first test sentences in each way; for each, a row of `COLUMNS`."""
    references = corpus.text["test"]["fr"][:sentences]
    measured = {}
    for name, settings in SEARCHES.items():
        found = search(model, corpus, 60, seed, sentences, **settings)
        texts = zip(found, corpus.decode(found), references, strict=True)
        measured[name] = np.array(
            [[h.log_prob, bleu([text], [ref]), len(h.tokens)] for h, text, ref in texts]
        )
    return measured


def gain(
    measured: Mapping[str, np.ndarray], first: str, second: str, column: str
) -> Interval:
    """Return the mean difference of two searches, sentence by sentence."""
    place = list(COLUMNS).index(column)
    return mean_interval((measured[first] - measured[second])[:, place].tolist())


def interval_table(
    first: str, values: Mapping[str, np.ndarray | Sequence[Sequence[float]]]
) -> str:
    """Return a table in Markdown: of each name the mean and interval of `COLUMNS`."""
    header = [first, *COLUMNS]
    lines = [f"| {' | '.join(header)} |", "| --- " * len(header) + "|"]
    for name, rows in values.items():
        intervals = map(mean_interval, np.asarray(rows).T.tolist())
        cells = [
            f"{i.mean:.{digits}f} ± {i.half_width:.{digits}f}"
            for i, digits in zip(intervals, COLUMNS.values(), strict=True)
        ]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def shortest(corpus: Corpus, fits: Callable[[list[str], list[list[int]]], bool]) -> int:
    """Return the place of the shortest test sentence whose English words and gold links
    fit."""
    test = corpus.text["test"]
    english = [sentence.split() for sentence in test["en"]]
    places = [
        place
        for place, links in enumerate(test["alignment"])
        if fits(english[place], links)
    ]
    return min(places, key=lambda place: len(english[place]))


def alignment_map(model: Seq2Seq, corpus: Corpus, place: int) -> Figure:
    """Draw a model's weights for one test sentence, with its gold links outlined."""
    test = corpus.text["test"]
    weights = attention_weights(model, [corpus.pairs["test"][place]])[0]
    english, french = (test[side][place].split() for side in ("en", "fr"))
    return maps.alignment_map(weights, english, french, test["alignment"][place])


def scores_by_length(
    model: Seq2Seq, corpus: Corpus, recipe: Recipe
) -> list[dict[str, int | float]]:
    """Translate the test split greedily and score it by source length."""
    test = corpus.text["test"]
    texts = corpus.decode(translate(model, corpus.pairs["test"]))
    return quality_by_length(texts, test["fr"], test["en"], recipe.length_bins)
