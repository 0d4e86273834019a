"""What a pre-training found: the curve, the speed, the scores on the untouched test
split beside all controls.

``log.json`` holds every figure that the model card and the book show of a run.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_lab.ch06_pretraining.pretrain import Plan, build, tokens_of_steps
from course_lab.ch06_pretraining.pretrain_controls import NGrams, controls
from course_lab.ch06_pretraining.pretrain_cost import Work, matrix_rate, training_flops
from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretrain_scores import (
    Scores,
    evaluation,
    hidden_tokens,
    score,
    share_with_interval,
)
from course_lib.bert.model import BertForPreTraining
from course_lib.files import write_whole
from course_lib.training.loop import History, device
from course_lib.training.precision import choose_precision

LOG = "log.json"
POINTS = 500  # of a curve: each the mean of as many steps
# over the split, each with other pairs and other hidden tokens
PASSES = {"validation": 1, "test": 2}


def write_log(
    folder: Path,
    content: Mapping[str, Any],
    history: History,
    found: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Write ``log.json``, whole or not at all."""
    log = {
        **content,
        "curve": curve(history),
        "evaluations": _evaluations(history),
        "results": found,
    }
    write_whole(folder / LOG, json.dumps(log, indent=1) + "\n")
    return log


def curve(history: History, points: int = POINTS) -> dict[str, list[float | int]]:
    """Return a history in few points: the last step of each stretch, and its means."""
    stretch = max(1, math.ceil(len(history.steps) / points))
    cuts = range(0, len(history.steps), stretch)
    means = {
        name: [_short(float(np.mean(values[cut : cut + stretch]))) for cut in cuts]
        for name, values in (
            ("loss", history.losses),
            ("learning_rate", history.learning_rates),
            ("gradient_norm", history.gradient_norms),
        )
    }
    last = {
        name: [_short(values[cut : cut + stretch][-1]) for cut in cuts]
        for name, values in (
            ("step", history.steps),
            ("sequences", history.tokens),
            ("seconds", history.seconds),
        )
    }
    return {**last, **means}


def _evaluations(history: History) -> dict[str, list[float | int]]:
    return {
        "step": list(history.metric_steps),
        **{name: list(map(_short, v)) for name, v in history.metrics.items()},
    }


def _short(value: float | int) -> float | int:
    """Seven digits: as many as float32 has."""
    return value if isinstance(value, int) else float(f"{value:.7g}")


def results(
    plan: Plan, corpus: Corpus, model: BertForPreTraining, history: History
) -> dict[str, Any]:
    """Measure a model at its end."""
    untrained = build(plan, corpus).to(next(model.parameters()).device)
    ngrams = NGrams(corpus.stores["train"])
    scores: dict[str, dict[str, Any]] = {}
    for split in ("validation", "test"):
        measure = evaluation(corpus, split, plan.max_length, PASSES[split])
        scores[split] = {
            "model": _told(measure(model)),
            "untrained": _told(measure(untrained)),
        }
        data = hidden_tokens(
            corpus.stores[split], corpus.tokenizer.vocab, plan.max_length
        )
        scores[split] |= {
            name: _told(score(guess, data, PASSES[split]))
            for name, guess in controls(ngrams).items()
        }
    work = work_of(plan, corpus, len(history.steps))
    precision = choose_precision(plan.training.precision, device())
    rate = matrix_rate(device(), getattr(torch, precision))
    seconds = history.seconds[-1]
    return {
        "scores": scores,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "sizes": {
            split: {
                "documents": len(store),
                "sentences": store.sentences,
                "tokens": len(store.ids),
            }
            for split, store in corpus.stores.items()
        },
        "work": dataclasses.asdict(work),
        "speed": {
            "seconds": seconds,
            "tokens_per_second": work.tokens / seconds,
            "sequences_per_second": work.sequences / seconds,
            "matrix_flops_per_second": rate,
            "utilisation": work.flops / seconds / rate,
        },
    }


def work_of(plan: Plan, corpus: Corpus, steps: int) -> Work:
    """Count what the first steps of a plan read and compute."""
    config, sequences, tokens, flops = plan.config(len(corpus.tokenizer)), 0, 0, 0.0
    rate = plan.mean_rate(corpus)
    for lengths in tokens_of_steps(plan.batches(corpus), steps):
        sequences, tokens = sequences + len(lengths), tokens + int(lengths.sum())
        flops += training_flops(config, lengths, rate * float((lengths - 3).sum()))
    return Work(sequences, tokens, flops)


def _told(scores: Scores) -> dict[str, Any]:
    """Figures with half of a 95% interval for each share."""
    told: dict[str, Any] = {
        name: _short(value) for name, value in scores.figures().items()
    }
    _, width = share_with_interval(scores.token_right, scores.token_document)
    told |= {
        "mlm_accuracy_interval": _short(width),
        "hidden_tokens": len(scores.token_right),
    }
    if len(scores.pair_right):
        _, width = share_with_interval(scores.pair_right, scores.pair_document)
        told |= {
            "nsp_accuracy_interval": _short(width),
            "pairs": len(scores.pair_right),
        }
    return told
