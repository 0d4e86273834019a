"""How tasks are scored: each GLUE task by its own metric, and how far probabilities can
be believed.

The metrics are those of scikit-learn and SciPy.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

__all__ = ["GLUE", "Calibration", "calibration", "glue_scores"]

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
    """How often guesses of some confidence are right.

    Parameters
    ----------
    confidence
        Of each bin that is not empty: the mean probability of the guessed class.
    accuracy
        Of each: the share of guesses that are right.
    guesses
        Of each: their number.
    error
        The expected calibration error: the mean distance of both, over all guesses.
    """

    confidence: list[float]
    accuracy: list[float]
    guesses: list[int]
    error: float


def calibration(
    probabilities: Sequence[Sequence[float]], golds: Sequence[int], bins: int = 10
) -> Calibration:
    """Compare how sure a model is with how often it is right.

    Parameters
    ----------
    probabilities
        Of all classes, for each example.
    golds
        The right classes.
    bins
        Into how many equal parts the range of confidence, 0 to 1, is cut.

    Returns
    -------
    Calibration
        By bin, and the expected calibration error.

    Raises
    ------
    ValueError
        If there is nothing to score, the lists differ in length, or `bins` is below 1.

    Notes
    -----
    Guo et al. 2017, section 2.

    Examples
    --------
    >>> calibration([[0.75, 0.25], [0.25, 0.75], [0.125, 0.875]], [0, 0, 1], bins=5)
    Calibration(confidence=[0.75, 0.875], accuracy=[0.5, 1.0], guesses=[2, 1],
    error=0.20833333333333334)
    """
    if len(probabilities) != len(golds) or not len(golds):
        raise ValueError(
            f"{len(probabilities)} guesses but {len(golds)} labels; give as many of"
            " both, at least one"
        )
    if bins < 1:
        raise ValueError(f"bins is {bins}; choose at least 1")
    table = np.asarray(probabilities, dtype=np.float64)
    confidence, right = table.max(axis=1), table.argmax(axis=1) == np.asarray(golds)
    of_bin = np.clip(
        np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1
    )  # a bin holds its upper bound
    there = [of_bin == number for number in range(bins) if (of_bin == number).any()]
    sure = [float(confidence[rows].mean()) for rows in there]
    share = [float(right[rows].mean()) for rows in there]
    count = [int(rows.sum()) for rows in there]
    gaps = sum(n * abs(a - b) for a, b, n in zip(share, sure, count, strict=True))
    return Calibration(sure, share, count, gaps / len(golds))
