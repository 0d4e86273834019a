"""The words of the `translation` data set, as `translation.toml` lists them.

The one thing worked out here is whether a word begins with a vowel sound, which decides
l', d', n', qu', cet, mon, vieil: French elides before a vowel and before most h (l'
homme), but not before the "aspirated" h of le hibou.
"""

import tomllib
from pathlib import Path
from typing import NamedTuple

ASPIRATED = frozenset({"hibou", "hiboux"})
VOWELS = frozenset("aàâeéèêiîïoôuùûhœ")


def elides(word: str) -> bool:
    """Say whether a French word that stands before this one is elided."""
    return word[0] in VOWELS and word not in ASPIRATED


class Noun(NamedTuple):
    """A noun in both languages; `human` chooses between "who" and "which"."""

    en: str
    en_plural: str
    fr: str
    fr_plural: str
    feminine: bool
    human: bool


class Adjective(NamedTuple):
    """An adjective and its French forms; `before_vowel` is the masculine singular of un
    vieil homme."""

    en: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_vowel: str

    def agree(self, feminine: bool, plural: bool, next_word: str = "x") -> str:
        """Return the French form for this gender and number, before `next_word`."""
        if plural:
            return self.feminine_plural if feminine else self.masculine_plural
        if feminine:
            return self.feminine
        return self.before_vowel if elides(next_word) else self.masculine


class Verb(NamedTuple):
    """A verb in the third person: singular, plural (which is also the English base
    form), and English particle."""

    en: str
    en_plural: str
    fr: str
    fr_plural: str
    particle: str = ""


class Name(NamedTuple):
    """An official name. `sources[t]` holds the positions of the English words that
    French word t translates."""

    en: tuple[str, ...]
    fr: tuple[str, ...]
    sources: tuple[tuple[int, ...], ...]
    feminine: bool
    plural: bool


def _noun(line: str) -> Noun:
    en, en_plural, fr, fr_plural, gender, kind = line.split()
    return Noun(en, en_plural, fr, fr_plural, gender == "f", kind == "who")


def _adjective(line: str) -> Adjective:
    en, *forms = line.split()
    masculine, feminine, masculine_plural, feminine_plural = forms[:4]
    before_vowel = forms[4] if len(forms) == 5 else masculine
    return Adjective(
        en, masculine, feminine, masculine_plural, feminine_plural, before_vowel
    )


def _name(line: str) -> Name:
    en, fr, sources, agreement = (part.split() for part in line.split(" | "))
    links = tuple(tuple(map(int, cell.split("+"))) for cell in sources)
    return Name(tuple(en), tuple(fr), links, "f" in agreement[0], "p" in agreement[0])


_FILE: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("translation.toml").read_text(encoding="utf-8")
)


def _verbs(kind: str) -> tuple[Verb, ...]:
    return tuple(Verb(*line.split()) for line in _FILE[kind].splitlines())


def _adjectives(kind: str) -> tuple[Adjective, ...]:
    return tuple(map(_adjective, _FILE[f"adjectives_{kind}"].splitlines()))


def _pairs(kind: str, between: str | None = None) -> tuple[tuple[str, str], ...]:
    rows = (line.split(between) for line in _FILE[kind].splitlines())
    return tuple((english, french) for english, french in rows)


NOUNS = tuple(map(_noun, _FILE["nouns"].splitlines()))
PROFESSIONS: tuple[tuple[str, ...], ...] = tuple(
    tuple(line.split()) for line in _FILE["professions"].splitlines()
)
ADJECTIVES_BEFORE = _adjectives("before")
ADJECTIVES_AFTER = _adjectives("after")
ADJECTIVES_RELATIONAL = _adjectives("relational")
TRANSITIVE, WITH_PARTICLE = _verbs("transitive"), _verbs("with_particle")
INTRANSITIVE, DITRANSITIVE = _verbs("intransitive"), _verbs("ditransitive")
REPORTING = _verbs("reporting")
SPEAK = Verb("speaks", "speak", "parle", "parlent")
DETERMINERS_SINGULAR: tuple[tuple[str, ...], ...] = tuple(
    tuple(line.split()) for line in _FILE["determiners_singular"].splitlines()
)
DETERMINERS_PLURAL = _pairs("determiners_plural")
PREPOSITIONS = _pairs("prepositions", " | ")
SHORT_PREPOSITIONS = tuple(pair for pair in PREPOSITIONS if " " not in pair[0])
ADVERBS, CONJUNCTIONS = _pairs("adverbs", " | "), _pairs("conjunctions", " | ")
NAMES = tuple(map(_name, _FILE["names"].splitlines()))
