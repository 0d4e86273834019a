"""English-French pairs whose French cannot be written without knowing what "it" is,
generated.

"The animal did not cross the street because it was too tired": it is the animal, il.
With "wide" it is the street, elle. Each sentence has two nouns, an animal and a place.
The adjective fits animals or places, so it decides which noun "it" stands for, and the
gender of that noun decides two French words: the pronoun and the adjective's ending.

Uszkoreit (2017) shows a Transformer's attention with this sentence; pairs of sentences
that differ in one word, which decides a pronoun, are Winograd schemas (Levesque et al.
2012).
"""

import random
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple, TypedDict

from course_lib.data.lexicon import elides

SPLITS = {"train": (2, 3, 4, 5), "validation": (1,), "test": (0,)}


class Row(TypedDict):
    """One pair with its gold links, and the places of "it" and of both nouns in the
    English sentence."""

    en: str
    fr: str
    alignment: list[list[int]]
    pronoun: int
    antecedent: int
    other_noun: int


class Noun(NamedTuple):
    """A noun in both languages."""

    en: str
    fr: str
    feminine: bool

    @property
    def article(self) -> str:
        """The French definite article before it."""
        return "l'" if elides(self.fr) else "la" if self.feminine else "le"


class Adjective(NamedTuple):
    """An adjective and its two French forms, which may be one."""

    en: str
    masculine: str
    feminine: str


def _entries(text: str) -> list[list[str]]:
    return [entry.split() for entry in text.split(",")]


def _nouns(text: str, feminine: bool) -> tuple[Noun, ...]:
    return tuple(Noun(en, fr, feminine) for en, fr in _entries(text))


def _adjectives(text: str) -> tuple[Adjective, ...]:
    return tuple(Adjective(*forms) for forms in _entries(text))


def _verbs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((en, fr) for en, fr in _entries(text))


# Masculine, then feminine; six of each, since the splits below go round them.
ANIMALS = (
    _nouns(
        "animal animal, dog chien, cat chat, horse cheval, rabbit lapin, duck canard",
        feminine=False,
    ),
    _nouns(
        "cow vache, goat chèvre, mouse souris, tortoise tortue, hen poule, goose oie",
        feminine=True,
    ),
)
PLACES = (
    _nouns(
        "bridge pont, path sentier, park parc, tunnel tunnel, garden jardin, staircase"
        " escalier",
        feminine=False,
    ),
    _nouns(
        "street rue, road route, river rivière, forest forêt, beach plage, avenue"
        " avenue",
        feminine=True,
    ),
)
OF_ANIMALS = _adjectives(
    "tired fatigué fatiguée, hungry affamé affamée, frightened effrayé effrayée, "
    "lazy paresseux paresseuse, nervous nerveux nerveuse, proud fier fière"
)
OF_PLACES = _adjectives(
    "wide large large, long long longue, narrow étroit étroite, "
    "dark obscur obscure, dangerous dangereux dangereuse, slippery glissant glissante"
)
# What an animal does to a place, and what a place does to an animal.
BY_ANIMALS = _verbs(
    "cross traversé, leave quitté, reach atteint, find trouvé, like aimé, avoid évité"
)
BY_PLACES = _verbs(
    "stop arrêté, attract attiré, surprise surpris, hide caché, tempt tenté, protect"
    " protégé"
)
# What a sentence may begin with, so that a word's place does not say what it is; word
# for word the same in French.
OPENINGS: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("yesterday", "hier"),
    ("this morning", "ce matin"),
)


def generate(split: str, seed: int = 0) -> list[Row]:
    """Generate a split: all combinations of its noun pairs with order, adjective and
    verb, each once."""
    if split not in SPLITS:
        raise ValueError(
            f"there is no split {split!r}; choose one of {', '.join(SPLITS)}"
        )
    rng = random.Random(f"{split} {seed}")
    rows = [
        _row(rng.choice(OPENINGS), subject, verb, object_, antecedent, adjective)
        for animal, place in _noun_pairs(split)
        for subject, object_, verbs in (
            (animal, place, BY_ANIMALS),
            (place, animal, BY_PLACES),
        )
        for verb in verbs
        for antecedent, adjectives in ((animal, OF_ANIMALS), (place, OF_PLACES))
        for adjective in adjectives
    ]
    rng.shuffle(rows)
    return rows


def _noun_pairs(split: str) -> Iterator[tuple[Noun, Noun]]:
    """An animal and a place, each with as many partners as any other."""
    for animals, places in product(ANIMALS, PLACES):
        if split != "train" and animals[0].feminine == places[0].feminine:
            continue
        for (i, animal), (j, place) in product(enumerate(animals), enumerate(places)):
            if (j - i) % len(places) in SPLITS[split]:
                yield animal, place


def _row(
    opening: tuple[str, str],
    subject: Noun,
    verb: tuple[str, str],
    object_: Noun,
    antecedent: Noun,
    adjective: Adjective,
) -> Row:
    pronoun, ending = (
        ("elle", adjective.feminine)
        if antecedent.feminine
        else ("il", adjective.masculine)
    )
    # English words, with the French words that stand for each and their order in
    # French.
    words = [
        *(
            (en, {place: fr})
            for place, (en, fr) in enumerate(zip(*map(str.split, opening), strict=True))
        ),
        ("the", {10: subject.article}),
        (subject.en, {11: subject.fr}),
        ("did", {13: "a"}),
        ("not", {12: "n'", 14: "pas"}),
        (verb[0], {15: verb[1]}),
        ("the", {16: object_.article}),
        (object_.en, {17: object_.fr}),
        ("because", {18: "parce", 19: "qu'"}),
        ("it", {20: pronoun}),
        ("was", {21: "était"}),
        ("too", {22: "trop"}),
        (adjective.en, {23: ending}),
    ]
    english = [word for word, _ in words]
    french = sorted(
        (order, fr, s)
        for s, (_, parts) in enumerate(words)
        for order, fr in parts.items()
    )
    places = {noun.en: english.index(noun.en) for noun in (subject, object_)}
    other = object_ if antecedent is subject else subject
    return Row(
        en=" ".join(english),
        fr=" ".join(fr for _, fr, _ in french),
        alignment=[[s, t] for t, (_, _, s) in enumerate(french)],
        pronoun=english.index("it"),
        antecedent=places[antecedent.en],
        other_noun=places[other.en],
    )
