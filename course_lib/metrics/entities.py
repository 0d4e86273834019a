"""How tags are scored: by whole entities, of which the first word, the last word and
the type must all be right.

Tags are of the form B-PER, I-PER and O. What a model guesses need not be well formed,
so the rule of CoNLL's script applies, as in the library seqeval: an I- that does not go
on with an entity of its own type begins one.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Entity(NamedTuple):
    """A named stretch of a sentence."""

    type: str
    first: int
    last: int


class EntityScore(NamedTuple):
    """Precision, recall and their harmonic mean, from 0 to 1, and what they are made
    of."""

    precision: float
    recall: float
    f1: float
    right: int
    guessed: int
    gold: int


def entities(tags: Sequence[str]) -> list[Entity]:
    """Read the entities off the tags of a sentence."""
    found: list[Entity] = []
    before = None  # the type of the word before, if it has one
    for place, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if tag != "O":
            if prefix not in ("B", "I") or not kind:
                raise ValueError(
                    f"tag {place} is {tag!r}; a tag is O, or B- or I- and a type, such"
                    " as B-PER"
                )
            if prefix == "I" and before == kind:
                found[-1] = found[-1]._replace(last=place)
            else:
                found.append(Entity(kind, place, place))
        before = kind if tag != "O" else None
    return found


def entity_scores(
    golds: Sequence[Sequence[str]], guesses: Sequence[Sequence[str]]
) -> EntityScore:
    """Score the tags of many sentences, with all their entities counted together.

    Tjong Kim Sang and De Meulder 2003; equal to ``f1_score`` of seqeval, in its default
    mode."""
    if len(golds) != len(guesses) or not golds:
        raise ValueError(
            f"{len(golds)} sentences of gold tags but {len(guesses)} of guesses; give"
            " as many, at least 1"
        )
    wanted, guessed = set(), set()
    for number, (gold, guess) in enumerate(zip(golds, guesses, strict=True)):
        if len(gold) != len(guess):
            raise ValueError(
                f"sentence {number} has {len(gold)} gold tags but {len(guess)} guesses;"
                " one for each word"
            )
        wanted |= {(number, entity) for entity in entities(gold)}
        guessed |= {(number, entity) for entity in entities(guess)}
    right = len(wanted & guessed)
    precision, recall = right / max(len(guessed), 1), right / max(len(wanted), 1)
    f1 = 2 * right / (len(guessed) + len(wanted)) if right else 0.0
    return EntityScore(precision, recall, f1, right, len(guessed), len(wanted))
