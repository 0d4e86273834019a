"""How tasks are scored, each GLUE task by its own metric; what a model gets wrong, and
how far its probabilities can be trusted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    log_loss,
    matthews_corrcoef,
)

from course_lib.metrics.entities import Entity, entities
from course_lib.metrics.squad import normalize_answer

Numbers = Sequence[int] | Sequence[float]


def glue_scores(task: str, guesses: Numbers, golds: Numbers) -> dict[str, float]:
    """Score guesses by the metric that GLUE has for a task."""
    if task not in GLUE:
        raise ValueError(
            f"there is no GLUE task {task!r}; there are: {', '.join(GLUE)}"
        )
    if len(guesses) != len(golds) or not len(guesses):
        raise ValueError(
            f"{len(guesses)} guesses but {len(golds)} labels; give as many of both, and"
            " at least one"
        )
    return {
        name: _METRICS[name](np.asarray(guesses), np.asarray(golds))
        for name in GLUE[task]
    }


def _correlation(kind: Callable, guesses: np.ndarray, golds: np.ndarray) -> float:
    if len(np.unique(guesses)) == 1 or len(np.unique(golds)) == 1:
        return float("nan")
    return float(kind(guesses, golds).statistic)


_METRICS: Mapping[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": lambda guesses, golds: float(accuracy_score(golds, guesses)),
    "f1": lambda guesses, golds: float(f1_score(golds, guesses, zero_division=0.0)),
    "matthews": lambda guesses, golds: float(matthews_corrcoef(golds, guesses)),
    "pearson": lambda guesses, golds: _correlation(pearsonr, guesses, golds),
    "spearman": lambda guesses, golds: _correlation(spearmanr, guesses, golds),
}

GLUE: Mapping[str, tuple[str, ...]] = {
    "cola": ("matthews",),
    "sst2": ("accuracy",),
    "mrpc": ("accuracy", "f1"),
    "stsb": ("pearson", "spearman"),
    "qqp": ("accuracy", "f1"),
    "mnli": ("accuracy",),
    "qnli": ("accuracy",),
    "rte": ("accuracy",),
    "wnli": ("accuracy",),
}
"""The nine tasks of GLUE and their metrics (Wang et al. 2019, table 1)."""


class Calibration(NamedTuple):
    """How often guesses of some confidence are right."""

    confidence: list[float]
    accuracy: list[float]
    guesses: list[int]
    error: float


def calibration(
    probabilities: Sequence[Sequence[float]], golds: Sequence[int], bins: int = 10
) -> Calibration:
    """Compare how sure a model is with how often it is right.

    Guo et al. 2017, section 2."""
    _check_pairs(golds, probabilities)
    if bins < 1:
        raise ValueError(f"bins is {bins}; choose at least 1")
    table = np.asarray(probabilities, dtype=np.float64)
    confidence, right = table.max(axis=1), table.argmax(axis=1) == np.asarray(golds)
    # a bin holds its upper bound
    of_bin = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    there = [of_bin == number for number in range(bins) if (of_bin == number).any()]
    sure = [float(confidence[rows].mean()) for rows in there]
    share = [float(right[rows].mean()) for rows in there]
    count = [int(rows.sum()) for rows in there]
    gaps = sum(n * abs(a - b) for a, b, n in zip(share, sure, count, strict=True))
    return Calibration(sure, share, count, gaps / len(golds))


Probabilities: TypeAlias = Float[np.ndarray, "N C"]
AnswerKind: TypeAlias = Literal[
    "right",
    "too long",
    "too short",
    "overlaps",
    "elsewhere",
    "no answer",
    "not answerable",
]
ANSWERS: tuple[AnswerKind, ...] = get_args(AnswerKind)
EntityKind: TypeAlias = Literal[
    "right", "type", "borders", "type and borders", "missed", "invented"
]
ENTITIES: tuple[EntityKind, ...] = get_args(EntityKind)
HOTTEST = 100.0  # a temperature beyond which all classes are as good as equal


class Confusion(NamedTuple):
    """How often each class was taken for each."""

    labels: tuple[str, ...]
    counts: Int[np.ndarray, "C C"]

    @property
    def shares(self) -> Float[np.ndarray, "C C"]:
        """The share of each gold class that was taken for each; a row of zeros for a
        class without gold."""
        return self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)


def confusion(
    golds: Sequence[int], guesses: Sequence[int], labels: Sequence[str]
) -> Confusion:
    """Count which class was taken for which.

    The counting is scikit-learn's."""
    _check_pairs(golds, guesses)
    if not all(0 <= number < len(labels) for number in (*golds, *guesses)):
        raise ValueError(
            f"classes are 0 to {len(labels) - 1}, as many as labels; a gold class or a"
            " guess is another"
        )
    return Confusion(
        tuple(labels), confusion_matrix(golds, guesses, labels=range(len(labels)))
    )


def apply_temperature(
    probabilities: Probabilities, temperature: float
) -> Probabilities:
    """Divide the scores behind probabilities by a temperature, and make probabilities
    of them again."""
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0")
    # A probability may be 0 in float32, where its score was finite; the least number
    # that float32 writes stands for it.
    scores = (
        np.log(np.maximum(probabilities.astype(np.float64), np.finfo(np.float32).tiny))
        / temperature
    )
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    cooled: Probabilities = powers / powers.sum(axis=1, keepdims=True)
    return cooled


def fit_temperature(probabilities: Probabilities, golds: Sequence[int]) -> float:
    """Find the temperature with which the gold classes are most probable.

    Guo et al. 2017, section 4.2: the least mean negative log-likelihood. It has one
    minimum."""
    _check_pairs(golds, probabilities)
    classes = range(probabilities.shape[1])

    def loss(logarithm: float) -> float:
        cooled = apply_temperature(probabilities, float(np.exp(logarithm)))
        return float(log_loss(golds, cooled, labels=classes))

    limit = np.log(HOTTEST)
    return float(
        np.exp(minimize_scalar(loss, bounds=(-limit, limit), method="bounded").x)
    )


def surest_mistakes(
    probabilities: Probabilities, golds: Sequence[int], most: int
) -> list[int]:
    """Find the wrong guesses of which the model is surest."""
    _check_pairs(golds, probabilities)
    wrong = np.flatnonzero(probabilities.argmax(axis=1) != np.asarray(golds))
    order = np.argsort(-probabilities[wrong].max(axis=1), kind="stable")
    return wrong[order][:most].tolist()


class EntityMistake(NamedTuple):
    """An entity that was found, missed, invented, or found with a flaw."""

    kind: EntityKind
    gold: Entity | None
    guess: Entity | None


def entity_mistakes(
    golds: Sequence[str], guesses: Sequence[str]
) -> list[EntityMistake]:
    """Compare the entities of a sentence with those that were guessed, and name what is
    wrong with each."""
    if len(golds) != len(guesses):
        raise ValueError(
            f"{len(golds)} gold tags but {len(guesses)} guesses; give one of both for"
            " each word"
        )
    there, guessed = entities(golds), entities(guesses)
    found: list[EntityMistake] = []
    for kind, fits in _FITS:
        for gold in list(there):
            guess = next((guess for guess in guessed if fits(gold, guess)), None)
            if guess is not None:
                there.remove(gold)
                guessed.remove(guess)
                found.append(EntityMistake(kind, gold, guess))
    found += [EntityMistake("missed", gold, None) for gold in there]
    found += [EntityMistake("invented", None, guess) for guess in guessed]
    return sorted(
        found,
        key=lambda mistake: (mistake.gold or mistake.guess or Entity("", 0, 0)).first,
    )


def _overlap(gold: Entity, guess: Entity) -> bool:
    return gold.first <= guess.last and guess.first <= gold.last


_FITS: tuple[tuple[EntityKind, Callable[[Entity, Entity], bool]], ...] = (
    ("right", lambda gold, guess: gold == guess),
    ("type", lambda gold, guess: gold[1:] == guess[1:]),
    ("borders", lambda gold, guess: gold.type == guess.type and _overlap(gold, guess)),
    ("type and borders", _overlap),
)


def answer_kind(guess: str, golds: Sequence[str]) -> AnswerKind:
    """Say what is wrong with an answer, by its words."""
    words = normalize_answer(guess).split()
    accepted = [normalize_answer(gold).split() for gold in golds]
    if words in (accepted or [[]]):
        return "right"
    if not accepted:
        return "not answerable"
    if not words:
        return "no answer"
    if any(_within(gold, words) for gold in accepted):
        return "too long"
    if any(_within(words, gold) for gold in accepted):
        return "too short"
    return (
        "overlaps" if any(set(words) & set(gold) for gold in accepted) else "elsewhere"
    )


def _within(inner: Sequence[str], outer: Sequence[str]) -> bool:
    """Whether the words stand in the others, side by side; no words stand nowhere."""
    starts = range(len(outer) - len(inner) + 1)
    return bool(inner) and any(
        list(outer[start : start + len(inner)]) == list(inner) for start in starts
    )


def _check_pairs(golds: Sequence, guesses: Sequence | np.ndarray) -> None:
    if len(golds) != len(guesses) or not len(golds):
        raise ValueError(
            f"{len(guesses)} guesses but {len(golds)} gold classes; give as many of"
            " both, at least one"
        )
