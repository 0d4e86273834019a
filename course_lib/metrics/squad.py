"""How answers to questions are scored: exact match and F1, by the rules of SQuAD's own
script.

Two answers are compared after both are normalised: small letters, no ASCII punctuation,
no articles, single spaces. A question has several gold answers, and the one that fits
best counts.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class SquadScore(NamedTuple):
    """Exact match and F1, in percent."""

    exact: float
    f1: float


def normalize_answer(text: str) -> str:
    """Write an answer as it is compared."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def squad_exact(guess: str, gold: str) -> float:
    """Say whether a guess is the gold answer.

    Parameters
    ----------
    guess, gold
        Two answers; empty for "no answer".

    Returns
    -------
    float
        1 if they are equal after `normalize_answer`, else 0.

    Notes
    -----
    Rajpurkar et al. 2016, section 6.1.

    Examples
    --------
    >>> squad_exact("the Broncos", "Broncos.")
    1.0
    """
    return float(normalize_answer(guess) == normalize_answer(gold))


def squad_f1(guess: str, gold: str, version: int = 2) -> float:
    """Compare the words of a guess with those of the gold answer.

    Parameters
    ----------
    guess, gold
        Two answers; empty for "no answer".
    version
        Of the script. They differ where nothing is left of an answer after
        `normalize_answer`: in version 2 the score is then 1 if nothing is left of the
        other too, in version 1 it is 0.

    Returns
    -------
    float
        The harmonic mean of precision and recall over words, from 0 to 1; a word that
        stands twice counts twice.

    Raises
    ------
    ValueError
        If there is no such version.

    Notes
    -----
    Rajpurkar et al. 2016, section 6.1; version 2: Rajpurkar et al. 2018.

    Examples
    --------
    >>> round(squad_f1("the Denver Broncos team", "Broncos"), 3)
    0.5
    """
    _check_version(version)
    guessed, wanted = (
        Counter(normalize_answer(text).split()) for text in (guess, gold)
    )
    if version == 2 and not (guessed and wanted):
        return float(guessed == wanted)
    same = (guessed & wanted).total()
    return 2 * same / (guessed.total() + wanted.total()) if same else 0.0


def squad_scores(
    guesses: Sequence[str], golds: Sequence[Sequence[str]], version: int = 2
) -> SquadScore:
    """Score answers to many questions.

    Rajpurkar et al. 2016, section 6.1; version 2: Rajpurkar et al. 2018."""
    _check_version(version)
    if len(guesses) != len(golds):
        raise ValueError(
            f"{len(guesses)} guesses but {len(golds)} lists of gold answers; give one"
            " of each"
        )
    if not guesses:
        raise ValueError("no guesses: there is nothing to score; give at least one")
    exact, f1 = 0.0, 0.0
    for number, (guess, of_question) in enumerate(zip(guesses, golds, strict=True)):
        accepted = (
            [gold for gold in of_question if normalize_answer(gold)] or [""]
            if version == 2
            else of_question
        )
        if not accepted:
            raise ValueError(
                f"question {number} has no gold answer; only version 2 knows questions"
                " without an answer"
            )
        exact += max(squad_exact(guess, gold) for gold in accepted)
        f1 += max(squad_f1(guess, gold, version) for gold in accepted)
    return SquadScore(100 * exact / len(guesses), 100 * f1 / len(guesses))


def _check_version(version: int) -> None:
    if version not in (1, 2):
        raise ValueError(f"version is {version}; SQuAD's script has versions 1 and 2")
