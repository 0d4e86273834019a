"""What chapter 6 shows of its live model: tables of guesses, and the picture of the times of day."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from course_lib.data import stories_lexicon as lex
from course_lib.experiments.pretrain_scores import Guess
from course_lib.experiments.pretraining_questions import Question, as_batch
from course_lib.metrics import mean_interval

TELLERS = ("Ruth", "Omar", "Tessa", "Felix", "Nora", "Karim", "Iris", "Boris")
HOURS = ("at dawn", "in the morning", "at noon", "in the afternoon", "towards evening", "at dusk", "at night")
NEXT = {"dawn": 0, "sunrise": 0, "noon": 2, "midday": 2, "sunset": 4, "dusk": 5, "night": 6, "midnight": 6}


def fill_in(
    guess: Guess, texts: Sequence[str], vocab: Mapping[str, int], most: int = 3
) -> list[list[tuple[str, float]]]:
    """Let something guess the [MASK] of texts.

    Parameters
    ----------
    guess
        A model or a control, as `course_lib.experiments.pretrain_scores.score` takes it.
    texts
        Words of the vocabulary, separated by spaces, sentences ending with a full stop; one [MASK] in each.
    vocab
        Token -> id.
    most
        How many guesses to return.

    Returns
    -------
    list
        For each text the likeliest words with their probabilities.
    """
    words = list(vocab)
    with torch.no_grad():
        chances, best = guess(as_batch([_question(text) for text in texts], vocab))[0].exp().topk(most, dim=-1)
    return [
        [(words[index], chance) for index, chance in zip(*row, strict=True)]
        for row in zip(best.tolist(), chances.tolist(), strict=True)
    ]


def _question(text: str) -> Question:
    """A text as a question; sentences end at full stops."""
    sentences = [[*sentence.split(), "."] for sentence in text.strip().removesuffix(".").split(" . ")]
    number = next(index for index, sentence in enumerate(sentences) if "[MASK]" in sentence)
    return Question(sentences, number, sentences[number].index("[MASK]"))


def next_times(guess: Guess, vocab: Mapping[str, int]) -> tuple[np.ndarray, list[str]]:
    """Ask which time of day comes after another one.

    Parameters
    ----------
    guess
        A model or a control.
    vocab
        Token -> id.

    Returns
    -------
    shares : np.ndarray
        (7, 5): for each of `HOURS`, told first, the shares of the times that can follow *at*. Words of the same hour
        are added up; mean over `TELLERS` and two continuations.
    names : list of str
        Of the columns.
    """
    texts = [
        f"{hour} , {name} walked to the mill . on the road {pronoun} saw a wild horse . at [MASK] , {name} {rest} ."
        for hour in HOURS
        for name in map(str.lower, TELLERS)
        for pronoun in ["she" if name.capitalize() in lex.WOMEN else "he"]
        for rest in ("ate some bread with honey", "walked home slowly")
    ]
    with torch.no_grad():
        chances = guess(as_batch([_question(text) for text in texts], vocab))[0].exp()
    hours = sorted(set(NEXT.values()))
    names = [" or ".join(word for word, hour in NEXT.items() if hour == wanted) for wanted in hours]
    columns = [chances[:, [vocab[word] for word in name.split(" or ")]].sum(dim=1) for name in names]
    table = torch.stack(columns, dim=1).unflatten(0, (len(HOURS), -1)).mean(dim=1)
    return (table / table.sum(dim=1, keepdim=True)).numpy(), names


def study_table(results: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> str:
    """Write what a recorded study found as a Markdown table: mean over seeds ± 95% interval.

    Parameters
    ----------
    results
        Of a record that `course_lib.experiments.pretraining_plans.record_study` made.
    variants
        Which of it, from top to bottom.

    Returns
    -------
    str
        A row for each variant.

    Raises
    ------
    ValueError
        If a variant was not recorded.
    """
    lines = [
        "| variant | hidden words (%) | loss at these (nats) | next sentence (%) | probes, last layer (%) |",
        "| --- " * 5 + "|",
    ]
    for variant in variants:
        runs = [result for result in results if result["variant"] == variant]
        if not runs:
            known = ", ".join(dict.fromkeys(result["variant"] for result in results)) or "nothing"
            raise ValueError(f"{variant!r} was not recorded; recorded are: {known}")
        columns: list[tuple[list[float], int]] = [
            ([100 * run["scores"]["mlm_accuracy"] for run in runs], 1),
            ([run["scores"]["mlm_loss"] for run in runs], 3),
            ([100 * run["scores"]["nsp_accuracy"] for run in runs if "nsp_accuracy" in run["scores"]], 1),
            ([100 * run["downstream"] for run in runs], 1),
        ]
        cells = []
        for values, digits in columns:
            interval = mean_interval(values) if values else None
            cells.append(f"{interval.mean:.{digits}f} ± {interval.half_width:.{digits}f}" if interval else "not asked")
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
