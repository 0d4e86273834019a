"""How the course scores: BLEU, exact match, alignment error rate, and an interval over
seeds.

BLEU is sacrebleu's, because a BLEU that one computes oneself cannot be compared with
anyone's.

    B  sentences   S  source words   T  target words
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import sacrebleu
from jaxtyping import Float
from scipy.special import stdtrit
from torch import Tensor

Links = Collection[tuple[int, int]]


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> float:
    """Return corpus BLEU as sacrebleu computes it (Papineni et al. 2002; Post 2018).

    Parameters
    ----------
    hypotheses
        B translations, plain text.
    references
        B reference translations, one each.
    tokenize
        Sacrebleu's tokeniser; "13a" is its default, "none" for text that is already
        tokenised.

    Returns
    -------
    float
        BLEU from 0 to 100.

    Raises
    ------
    ValueError
        If there is nothing to score or the two lists differ in length.

    Examples
    --------
    >>> round(bleu(["the cat sat on the old mat"], ["the cat sat on the red mat"]), 1)
    64.3
    """
    _check_pairs(hypotheses, references, "hypotheses", "references")
    return float(
        sacrebleu.corpus_bleu(
            list(hypotheses), [list(references)], tokenize=tokenize
        ).score
    )


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return the fraction of hypotheses that equal their reference word for word."""
    _check_pairs(hypotheses, references, "hypotheses", "references")
    return sum(
        h.split() == r.split() for h, r in zip(hypotheses, references, strict=True)
    ) / len(hypotheses)


def alignment_error_rate(
    predicted: Iterable[Links],
    sure: Iterable[Links],
    possible: Iterable[Links] | None = None,
) -> float:
    """Return the alignment error rate over a corpus: 1 - (|A∩S| + |A∩P|) / (|A| + |S|)
    (Och and Ney 2003, section 4.1)."""
    links, sures = [set(a) for a in predicted], [set(s) for s in sure]
    possibles = sures if possible is None else [set(p) for p in possible]
    if not len(links) == len(sures) == len(possibles):
        raise ValueError(
            f"predicted has {len(links)} sentences, sure {len(sures)}, possible"
            f" {len(possibles)}; give one set for each"
        )
    for i, (must, may) in enumerate(zip(sures, possibles, strict=True)):
        if not must <= may:
            raise ValueError(
                f"sentence {i}: sure links {sorted(must - may)} are not among the"
                " possible ones"
            )
    total = sum(len(a) + len(s) for a, s in zip(links, sures, strict=True))
    if total == 0:
        raise ValueError(
            "no links, predicted or sure: the rate is undefined; give at least one"
            " sentence with a link"
        )
    found = sum(
        len(a & s) + len(a & p) for a, s, p in zip(links, sures, possibles, strict=True)
    )
    return 1 - found / total


def alignment_from_weights(weights: Float[Tensor, "T S"]) -> set[tuple[int, int]]:
    """Read an alignment off attention weights: each target word is linked to the source
    word it attends to most."""
    if weights.isnan().any():
        raise ValueError(
            "weights hold NaN; a softmax over a row with every position masked gives"
            " that"
        )
    return {(int(s), t) for t, s in enumerate(weights.argmax(dim=1))}


class Interval(NamedTuple):
    """A mean and the half width of its interval: the interval is mean - half_width to
    mean + half_width."""

    mean: float
    half_width: float


def mean_interval(values: Sequence[float | int]) -> Interval:
    """Return the mean over seeds and the half width of its 95% Student t interval.

    Three seeds say little: the t distribution with 2 degrees of freedom makes the
    interval 2.2 times as wide as the normal one would be, and that is the honest width.

    Parameters
    ----------
    values
        One figure for each seed, at least 2.

    Returns
    -------
    Interval
        Mean and half width t(0.975, n - 1) · s / sqrt(n), in the unit of the values; s
        has n - 1 in its denominator.

    Raises
    ------
    ValueError
        If there are fewer than 2 values: one run has no interval.

    Examples
    --------
    >>> interval = mean_interval([0.90, 0.94, 0.95])
    >>> f"{interval.mean:.3f} ± {interval.half_width:.3f}"
    '0.930 ± 0.066'
    """
    n = len(values)
    if n < 2:
        raise ValueError(
            f"{n} value: an interval needs at least 2 seeds; 3 is the course's minimum"
        )
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Interval(mean, student_t(n - 1) * deviation / math.sqrt(n))


def student_t(degrees_of_freedom: int) -> float:
    """Return the 97.5% point of Student's t distribution, the factor of a two-sided 95%
    interval."""
    if degrees_of_freedom < 1:
        raise ValueError(
            f"degrees_of_freedom is {degrees_of_freedom}; it needs 1 or more"
        )
    return float(stdtrit(degrees_of_freedom, 0.975))


def _check_pairs(
    first: Sequence[str], second: Sequence[str], first_name: str, second_name: str
) -> None:
    if len(first) != len(second):
        raise ValueError(
            f"{len(first)} {first_name} but {len(second)} {second_name}; give one for"
            " each"
        )
    if not first:
        raise ValueError(
            f"no {first_name}: there is nothing to score; give at least one sentence"
        )
