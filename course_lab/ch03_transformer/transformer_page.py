"""The tables of chapter 3 and of its laboratory."""

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import torch
from scipy.stats import ttest_ind
from torch import Tensor, nn

from course_lab.ch01_seq2seq import alignment
from course_lab.ch01_seq2seq.seq2seq import Corpus
from course_lab.ch03_transformer.speed import Times
from course_lib.metrics.scores import Interval, mean_interval
from course_lib.training.batches import set_seed
from course_lib.transformer.model import (
    Transformer,
    TransformerConfig,
    TransformerEncoder,
)
from course_lib.transformer.positions import LearnedPositions, sinusoidal_positions

GRU = "GRU with attention"
#: What `microseconds_per_word` measures, in words.
KINDS = {
    "training": "training, 32 sentences",
    "decoding": "decoding, 32 sentences",
    "decoding one": "decoding, one sentence",
}


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def with_interval(values: Sequence[float]) -> str:
    """Write mean and half width of the 95% interval."""
    interval = mean_interval(values)
    return f"{interval.mean:.1f} ± {interval.half_width:.1f}"


def difference(one: Sequence[float], other: Sequence[float]) -> Interval:
    """Return the difference of two means and the half width of its 95% interval
    (Welch's t test, which lets the two spread differently)."""
    low, high = ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    return Interval(float(low + high) / 2, float(high - low) / 2)


def excludes_zero(interval: Interval) -> bool:
    """Say whether a difference may be called one."""
    return abs(interval.mean) > interval.half_width


def tested_up_to(corpus: Corpus, longest: int) -> Corpus:
    """Return the same corpus without the test sentences of more source words."""
    kept = [len(sentence.split()) <= longest for sentence in corpus.text["test"]["en"]]
    text = {
        name: list(compress(column, kept))
        for name, column in corpus.text["test"].items()
    }
    pairs = list(compress(corpus.pairs["test"], kept))
    return Corpus(
        {**corpus.text, "test": text},
        {**corpus.pairs, "test": pairs},
        corpus.tokenizers,
    )


def exact_up_to(run: Mapping[str, Any], limit: int) -> float:
    """Exact match of a recorded run, in percent, over all groups of lengths up to the
    limit."""
    rows = [row for row in run["by_length"] if row["longest"] <= limit]
    right = sum(row["exact_match"] * row["pairs"] for row in rows)
    return 100 * right / sum(row["pairs"] for row in rows)


def shuffling_error(positions: str, ids: Tensor, vocab_size: int) -> float:
    """Largest difference between "encode, then shuffle" and "shuffle, then encode", of
    an untrained encoder in double precision."""
    set_seed(0)
    config = TransformerConfig(
        vocab_size, vocab_size, dim=64, num_heads=4, positions=positions
    )
    encoder = TransformerEncoder(nn.Embedding(vocab_size, 64), config).double().eval()
    order = torch.randperm(len(ids))
    with torch.no_grad():
        difference = encoder(ids[None])[:, order] - encoder(ids[order][None])
    return difference.abs().max().item()


def position_requirements(
    longest: int = 60, dim: int = 64
) -> tuple[str, dict[str, dict[str, float]]]:
    """Measure what is asked of positions for four kinds of them; return a Markdown
    table and the numbers."""
    set_seed(0)
    learned = LearnedPositions(longest, dim)
    kinds = {
        "plain index": lambda n: torch.arange(float(n))[:, None].expand(n, dim),
        "index / length": lambda n: (
            torch.arange(float(n))[:, None].expand(n, dim) / (n - 1)
        ),
        "sinusoidal": lambda n: sinusoidal_positions(n, dim),
        "learned (before training)": lambda n: learned(torch.arange(n)).detach(),
    }
    rows, figures = [], {}
    for name, table_of in kinds.items():
        whole = table_of(longest)
        nearest = torch.cdist(whole, whole).fill_diagonal_(math.inf).min().item()
        steps = torch.cat(
            [(table_of(n)[1:] - table_of(n)[:-1]).norm(dim=1) for n in (3, 10, 30, 60)]
        )
        low, high = steps.min().item(), steps.max().item()
        most = whole.abs().max().item()
        same = torch.equal(table_of(3)[:2], whole[:2])
        try:
            beyond = table_of(10 * longest)[longest:].abs().max().item()
            longer = f"yes, values up to {beyond:.3g}"
        except IndexError:
            longer = "no vector"
        figures[name] = {"low": low, "high": high, "largest": most}
        spread = f"{low:.2f} to {high:.2f}"
        fixed = "yes" if same else "no"
        rows.append([name, f"{nearest:.2f}", spread, f"{most:.2f}", fixed, longer])
    header = ["position", "unique: least distance", "consistent: neighbours' distance"]
    header += ["bounded: largest value", "deterministic", f"beyond {longest} words"]
    return markdown_table(header, rows), figures


def distributions(
    words: Sequence[str], read: Sequence[str], probabilities: Sequence[Tensor]
) -> str:
    """Write what a decoder read at each step, and its distribution of the next word."""

    def escaped(word: str) -> str:
        return word.replace("<", "\\<")

    rows = []
    for word, step in zip(read, probabilities, strict=True):
        best = int(step.argmax())
        cells = [f"{p:.3f}" for p in step.tolist()]
        cells[best] = f"**{cells[best]}**"
        rows.append([escaped(word), *cells])
    return markdown_table(["reads", *map(escaped, words)], rows)


def figures_of(run: Mapping[str, Any], limit: int) -> tuple[float, float, float]:
    """Return a run's exact match in percent at lengths seen in training, its BLEU just
    beyond them, and its BLEU over all test sentences."""
    beyond = next(row for row in run["by_length"] if row["longest"] > limit)
    return exact_up_to(run, limit), beyond["bleu"], run["scores"]["bleu"]


def comparison(
    runs: Mapping[str, Sequence[Mapping[str, Any]]], limit: int, base: str
) -> tuple[str, dict[str, list[Interval]]]:
    """Write quality at lengths seen and not seen in training, a row for each model;
    also return each model's differences from the base, in the table's columns."""
    columns = {
        name: list(zip(*(figures_of(run, limit) for run in of_model), strict=True))
        for name, of_model in runs.items()
    }
    edges = [row["longest"] for row in runs[base][0]["by_length"]]
    next_edge = min(edge for edge in edges if edge > limit)
    differences = {
        name: [
            difference(ours, bases)
            for ours, bases in zip(columns[name], columns[base], strict=True)
        ]
        for name in runs
        if name != base
    }
    rows = [
        [name, f"{runs[name][0]['parameters']:,}", *map(with_interval, columns[name])]
        for name in runs
    ]
    header = ["model", "parameters", f"exact match, up to {limit} words (%)"]
    header += [f"BLEU, {limit + 1} to {next_edge} words", "BLEU, all test sentences"]
    return markdown_table(header, rows), differences


def heads_and_controls(
    trained: Transformer, untrained: Transformer, corpus: Corpus, seed: int
) -> tuple[str, dict[str, float]]:
    """Compare each head's links with the gold alignment; return a Markdown table of
    error rates, and those of the last layer's mean with its controls."""
    weights, before = (
        alignment.cross_attention_weights(model, corpus.pairs["test"])
        for model in (trained, untrained)
    )
    rates = alignment.error_rate_of_heads(weights, corpus.text["test"]["alignment"])
    layers, heads = rates.shape
    table = markdown_table(
        ["", *(f"head {head}" for head in range(1, heads)), "mean of heads"],
        [
            [f"layer {layer + 1}", *(f"{rate:.2f}" for rate in rates[layer])]
            for layer in range(layers)
        ],
    )
    last, last_before = (
        [of_pair[-1].mean(dim=0) for of_pair in of_model]
        for of_model in (weights, before)
    )
    scores = alignment.scores_of(last, corpus, seed)
    scores["trained"] = scores.pop("model")
    scores["untrained"] = alignment.scores_of(last_before, corpus, seed)["model"]
    return table, scores


def quartiles(values: np.ndarray, digits: int = 0) -> str:
    """Write the median, and the first to the third quartile."""
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{median:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def time_table(
    times: Times, lengths: Sequence[int], unit: str = "word"
) -> tuple[str, dict[tuple[str, int], np.ndarray]]:
    """Write microseconds a word of both models; return the table and, repeat by repeat,
    how many times as long the GRU takes."""
    rows, ratios = [], {}
    for kind, what in KINDS.items():
        ours, theirs = (np.array(times[name][kind]) for name in ("Transformer", GRU))
        for place, length in enumerate(lengths):
            ratio = ratios[kind, length] = theirs[:, place] / ours[:, place]
            cells = quartiles(ours[:, place]), quartiles(theirs[:, place])
            rows.append((what, length, *cells, quartiles(ratio, 2)))
    header = ("what", f"length ({unit}s)", "Transformer (µs)", f"{GRU} (µs)")
    return markdown_table((*header, "GRU / Transformer"), rows), ratios
