"""What chapter 6 shows of its live model: tables of guesses, and the picture of what
kind of word fits a gap."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from course_lab.ch06_pretraining.pretrain_scores import Guess
from course_lab.ch06_pretraining.pretraining_probes import CLASSES, Places
from course_lab.ch06_pretraining.pretraining_questions import Question, as_batch
from course_lab.records import mean_text
from course_lib.data.corpus import markdown_table
from course_lib.metrics.scores import Interval, mean_interval


def fill_in(
    guess: Guess, texts: Sequence[str], vocab: Mapping[str, int], most: int = 3
) -> list[list[tuple[str, float]]]:
    """Let something guess the [MASK] of texts."""
    words = list(vocab)
    with torch.no_grad():
        chances, best = (
            guess(as_batch([_question(text) for text in texts], vocab))[0]
            .exp()
            .topk(most, dim=-1)
        )
    return [
        [(words[index], chance) for index, chance in zip(*row, strict=True)]
        for row in zip(best.tolist(), chances.tolist(), strict=True)
    ]


def _question(text: str) -> Question:
    """A text as a question; sentences end at full stops."""
    sentences = [
        [*sentence.split(), "."]
        for sentence in text.strip().removesuffix(".").split(" . ")
    ]
    number = next(
        index for index, sentence in enumerate(sentences) if "[MASK]" in sentence
    )
    return Question(sentences, number, sentences[number].index("[MASK]"))


def class_choices(
    guess: Guess, places: Places, vocab: Mapping[str, int]
) -> tuple[np.ndarray, list[str]]:
    """Hide words whose class is known, and ask which class is expected in their
    place."""
    names = sorted(set(CLASSES.values()))
    of_word = {
        word: names.index(name) for word, name in CLASSES.items() if word in vocab
    }
    members = torch.zeros(len(vocab), len(names))
    members[[vocab[word] for word in of_word], list(of_word.values())] = 1
    with torch.no_grad():
        shares = guess(as_batch(places.questions, vocab))[0].exp() @ members
    shares = shares / shares.sum(dim=1, keepdim=True)
    labels = torch.tensor([names.index(label) for label in places.labels])
    rows = [shares[labels == index].mean(dim=0) for index in range(len(names))]
    return torch.stack(rows).numpy(), names


def runs_of(results: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Sort the runs of a recorded study by variant, and within a variant by seed."""
    sorted_runs: dict[str, list[Mapping[str, Any]]] = {}
    for run in sorted(results, key=lambda run: run["seed"]):
        sorted_runs.setdefault(run["variant"], []).append(run)
    return sorted_runs


def lead_over(
    results: Sequence[Mapping[str, Any]],
    variant: str,
    other: str,
    score: str = "mlm_accuracy",
) -> Interval:
    """Say by how much one variant of a recorded study is ahead of another, seed by
    seed."""
    sorted_runs = runs_of(results)
    ahead, behind = sorted_runs.get(variant, []), sorted_runs.get(other, [])
    if [run["seed"] for run in ahead] != [run["seed"] for run in behind]:
        raise ValueError(
            f"{variant!r} has the seeds {[run['seed'] for run in ahead]}, {other!r}"
            f" {[run['seed'] for run in behind]}; record the same seeds of both"
        )
    pairs = zip(ahead, behind, strict=True)
    return mean_interval(
        [one["scores"][score] - two["scores"][score] for one, two in pairs]
    )


def study_table(results: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> str:
    """Write what a recorded study found as a Markdown table: mean over seeds ± 95%
    interval."""
    head = (
        "variant",
        "hidden words (%)",
        "loss at these (nats)",
        "next sentence (%)",
        "probes, last layer (%)",
    )
    rows, sorted_runs = [], runs_of(results)
    for variant in variants:
        if variant not in sorted_runs:
            known = ", ".join(sorted_runs) or "nothing"
            raise ValueError(f"{variant!r} was not recorded; recorded are: {known}")
        scores = [run["scores"] for run in sorted_runs[variant]]
        asked = [100 * x["nsp_accuracy"] for x in scores if "nsp_accuracy" in x]
        probed = [100 * run["downstream"] for run in sorted_runs[variant]]
        rows.append(
            (
                variant,
                mean_text([100 * x["mlm_accuracy"] for x in scores]),
                mean_text([x["mlm_loss"] for x in scores], 3),
                mean_text(asked) or "not asked",
                mean_text(probed),
            )
        )
    return markdown_table(head, rows)
