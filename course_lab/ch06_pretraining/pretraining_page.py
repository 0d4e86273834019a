"""What chapter 6 and its laboratory show: the regions of the live loss, tables of
scores and predictions, and what kind of word a model expects in a gap."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from course_lab.ch06_pretraining.pretrain_scores import Guess
from course_lab.ch06_pretraining.pretraining_probes import CLASSES, Places
from course_lab.ch06_pretraining.pretraining_questions import Question, as_batch
from course_lab.records import lead_text, mean_text
from course_lib.data.corpus import markdown_table
from course_lib.metrics.scores import Interval, mean_interval
from course_lib.pretraining.token_store import TokenStore

#: What is scored, by the name that pages give it.
SCORES = {
    "mlm_accuracy": "masked tokens",
    "nsp_accuracy": "next sentence",
    "grammar": "grammar words",
    "name": "names",
    "pronoun": "pronouns",
    "time": "times of day",
}
#: The same, where runs were also scored with [MASK] at all chosen positions.
SCORES_AT_MASK = {"mask_accuracy": "masked tokens, all [MASK]", **SCORES}


class Regions(NamedTuple):
    """A training loss, and the two levels that divide it into three regions."""

    steps: np.ndarray
    smoothed: np.ndarray  # means over the last tenth of the steps
    chances: float  # of a model that knows nothing
    frequencies: float  # of one that knows how frequent words are
    reached: int  # first step within a quarter of a nat of the frequencies
    left: int  # first step half a nat below them


def regions(losses: Sequence[float], store: TokenStore) -> Regions:
    """Divide the loss of a pre-training with pairs by what it says of the model."""
    steps = np.arange(1, len(losses) + 1)
    # What a batch happens to hold makes single losses jump.
    smoothed = np.array([np.mean(losses[n - 1 - n // 10 : n]) for n in steps.tolist()])
    counts = np.bincount(store.ids, minlength=store.vocab_size)
    shares = counts[counts > 0] / counts.sum()
    frequencies = float(-(shares * np.log(shares)).sum()) + math.log(2)

    def first_below(level: float) -> int:
        if not (smoothed < level).any():
            raise ValueError(
                f"the loss never falls below {level:.2f}; train for longer"
            )
        return int(steps[np.argmax(smoothed < level)])

    return Regions(
        steps,
        smoothed,
        math.log(store.vocab_size) + math.log(2),
        frequencies,
        first_below(frequencies + 0.25),
        first_below(frequencies - 0.5),
    )


def score_table(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Write the scores of models and controls as a Markdown table, in percent."""
    rows = [
        (name, *(f"{100 * of[key]:.1f}" if key in of else "" for key in SCORES))
        for name, of in figures.items()
    ]
    heads = ("predicted by", *(f"{name} (%)" for name in SCORES.values()))
    return markdown_table(heads, rows)


def gap_table(
    texts: Sequence[str], found: Mapping[str, Sequence[Sequence[tuple[str, float]]]]
) -> str:
    """Write what models put into the [MASK] of texts as a Markdown table."""
    rows = []
    for i, text in enumerate(texts):
        likeliest = [
            ", ".join(f"`{word}` {100 * p:.0f}%" for word, p in of[i])
            for of in found.values()
        ]
        rows.append((text, *likeliest))
    return markdown_table(("text", *found), rows)


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
    of: str = "scores",
) -> Interval:
    """Say by how much one variant of a recorded study is ahead of another, seed by
    seed, in one of its scores or questions."""
    sorted_runs = runs_of(results)
    ahead, behind = sorted_runs.get(variant, []), sorted_runs.get(other, [])
    if [run["seed"] for run in ahead] != [run["seed"] for run in behind]:
        raise ValueError(
            f"{variant!r} has the seeds {[run['seed'] for run in ahead]}, {other!r}"
            f" {[run['seed'] for run in behind]}; record the same seeds of both"
        )
    pairs = zip(ahead, behind, strict=True)
    return mean_interval([one[of][score] - two[of][score] for one, two in pairs])


def study_table(results: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> str:
    """Write what a recorded study found as a Markdown table: mean over seeds ± 95%
    interval."""
    head = (
        "variant",
        "masked tokens (%)",
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


def lead_table(
    results: Sequence[Mapping[str, Any]],
    base: str,
    variants: Sequence[str],
    scores: Mapping[str, str] = SCORES,
) -> str:
    """Write by how many points each variant differs from the base, seed by seed, with
    95% intervals; in bold where the interval leaves out 0."""
    rows = []
    for variant in variants:
        cells = []
        for key in scores:
            of = "scores" if key.endswith("_accuracy") else "questions"
            if key not in runs_of(results)[variant][0][of]:
                cells.append("not trained")
                continue
            lead = lead_over(results, variant, base, key, of)
            points = Interval(100 * lead.mean, 100 * lead.half_width)
            cells.append(lead_text(points))
        rows.append((variant, *cells))
    return markdown_table(("change", *scores.values()), rows)
