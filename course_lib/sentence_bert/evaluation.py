"""How good sentence vectors are: agreement with people on similarity, and what a linear
classifier finds in them.

Other letters: N, sentences or pairs; D, features of a vector.

Nothing here trains an encoder. Both measures are those of Reimers and Gurevych 2019,
sections 4 and 5; the arithmetic is SciPy's and scikit-learn's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from torch import Tensor


def sts_score(
    first: Float[Tensor, "N D"], second: Float[Tensor, "N D"], scores: Sequence[float]
) -> float:
    """Rank pairs by cosine and by how similar people find them: Spearman's correlation
    of both.

    Reimers and Gurevych 2019, section 4; for Spearman against Pearson: Reimers et al.
    2016."""
    if not len(first) == len(second) == len(scores):
        raise ValueError(
            f"{len(first)} and {len(second)} vectors but {len(scores)} scores; give"
            " each pair one"
        )
    cosines = F.cosine_similarity(first.double(), second.double()).cpu().numpy()
    for name, values in (("scores", np.asarray(scores)), ("cosines", cosines)):
        if len(np.unique(values)) < 2:
            raise ValueError(
                f"the {name} of {len(values)} pairs are all equal, so nothing is"
                " ranked; take other pairs"
            )
    return float(spearmanr(cosines, scores).statistic)


def pair_features(
    u: Float[Tensor, "N D"], v: Float[Tensor, "N D"]
) -> Float[Tensor, "N 2*D"]:
    """Make the features by which a probe judges a pair: (abs(u - v), u · v), feature by
    feature."""
    return torch.cat([(u - v).abs(), u * v], dim=1)  # 2 x (N, D) -> (N, 2 D)


@dataclass(frozen=True)
class Probe:
    """What a logistic regression on frozen vectors gets right."""

    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """The mean over folds."""
        return float(np.mean(self.accuracies))


def probe(
    vectors: Float[Tensor, "N D"],
    labels: Sequence[int] | Sequence[str],
    strengths: Sequence[float] = (1.0,),
    folds: int = 10,
    seed: int = 0,
) -> Probe:
    """Cross-validate a logistic regression on sentence vectors: what can be read off
    them by a straight cut?

    Parameters
    ----------
    vectors
        One for each sentence, or `pair_features`.
    labels
        Their classes.
    strengths
        The values of C, the inverse of how much large weights cost. Of several, one is
        chosen in each fold by cross-validation within its training part.
    folds
        Parts, each of them once the test part.
    seed
        Of the parts, which have the same shares of classes.

    Returns
    -------
    Probe
        The encoder learns nothing, and a fold's test part takes no part in fitting or
        choosing.

    Raises
    ------
    ValueError
        If there are not as many labels as vectors, there is one class only, or a class
        has fewer rows than `folds`.

    Notes
    -----
    Conneau and Kiela 2018, section 3: for MR, CR, SUBJ and MPQA. Tasks with a test part
    of their own: `probe_split`.

    Examples
    --------
    >>> vectors = torch.tensor(
    ...     [[x, 1.0] for x in (-3.0, -2.5, -2.0, -1.5, 1.5, 2.0, 2.5, 3.0)]
    ... )
    >>> probe(vectors, ["bad"] * 4 + ["good"] * 4, folds=4)
    Probe(accuracies=(1.0, 1.0, 1.0, 1.0))
    """
    _check_labels(vectors, labels, folds)
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
    found = cross_val_score(
        _classifier(strengths, folds, seed),
        _rows(vectors),
        np.asarray(labels),
        cv=parts,
    )
    return Probe(tuple(float(accuracy) for accuracy in found))


def probe_split(
    train: Float[Tensor, "N D"],
    train_labels: Sequence[int] | Sequence[str],
    test: Float[Tensor, "M D"],
    test_labels: Sequence[int] | Sequence[str],
    strengths: Sequence[float] = (1.0,),
    folds: int = 10,
    seed: int = 0,
) -> float:
    """Fit a logistic regression on one part and return its accuracy on another."""
    _check_labels(train, train_labels, folds if len(strengths) > 1 else 1)
    _check_labels(test, test_labels, 0)
    fitted = _classifier(strengths, folds, seed).fit(
        _rows(train), np.asarray(train_labels)
    )
    return float(fitted.score(_rows(test), np.asarray(test_labels)))


def _classifier(strengths: Sequence[float], folds: int, seed: int) -> BaseEstimator:
    if not len(strengths) or not min(strengths) > 0:
        raise ValueError(
            f"strengths is {list(strengths)}; give at least one value of C, above 0"
        )
    if len(strengths) == 1:
        return LogisticRegression(C=strengths[0], max_iter=1000)
    parts = StratifiedKFold(min(folds, 5), shuffle=True, random_state=seed)
    return GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": sorted(strengths)}, cv=parts
    )


def _rows(vectors: Tensor) -> np.ndarray:
    return vectors.detach().cpu().double().numpy()


def _check_labels(
    vectors: Tensor, labels: Sequence[int] | Sequence[str], fewest: int
) -> None:
    if len(labels) != len(vectors) or not len(labels):
        raise ValueError(
            f"{len(vectors)} vectors but {len(labels)} labels; give as many of both,"
            " and at least one"
        )
    if not fewest:
        return
    names, counts = (
        x.tolist() for x in np.unique(np.asarray(labels), return_counts=True)
    )
    if len(names) < 2:
        raise ValueError(
            f"all {len(labels)} labels are {names[0]!r}; a probe needs at least two"
            " classes"
        )
    if min(counts) < fewest:
        raise ValueError(
            f"class {names[counts.index(min(counts))]!r} has {min(counts)} rows, too"
            f" few for {fewest} folds; take fewer folds, or leave the class out"
        )
