"""`stories`: short narratives from a phrase grammar, small enough that a model
pre-trained for minutes learns them.

A story follows a plot: a list of steps in a fixed order, each with several wordings.
What makes consecutive sentences depend on one another, so that "is this the next
sentence?" can be learnt: people, the thing and the places persist; pronouns agree with
whom they stand for and are used only where one person of that gender can be meant; the
thing is one or a pair, and its verbs and pronouns agree; the times of day go forward
only; a thing is lost before it is found. And each story is at home in one world, by the
sea or on a farm, which has its own people, places and things.
"""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

from course_lib.data import stories_lexicon as lex
from course_lib.data.corpus import Row

SIZES = {"train": 8_000, "validation": 500, "test": 500}
# The worlds that the stories of a data set are told of.
WORLDS: Mapping[str, Sequence[lex.World]] = {
    "stories": lex.WORLDS,
    "two_worlds": (lex.SEA, lex.FARM),
}
# percent of the combinations of hero, thing and place in validation, and as many in
# test
HELD_OUT = 10
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)(?:\.(\w+))?(?::([^{}|]*)\|([^{}]*))?\}")


@dataclass(frozen=True)
class Entity:
    """A person, thing or place: what it is called, and which pronouns stand for it."""

    name: str
    gender: str  # "f", "m", "thing", "pair", "place" or "noun"
    kind: str = ""  # the noun alone, e.g. "lamp" of "red lamp"


PRONOUNS = {  # subject, object, possessive
    "f": ("she", "her", "her"),
    "m": ("he", "him", "his"),
    "thing": ("it", "it", "its"),
    "pair": ("they", "them", "their"),
}
PEOPLE = ("f", "m")


@dataclass
class Teller:
    """Tells sentences one after the other and remembers who was mentioned, to choose
    between names and pronouns."""

    rng: random.Random
    cast: Mapping[str, Entity]
    world: lex.World
    # slots mentioned in the sentence before
    before: set[str] = field(default_factory=set)
    now: set[str] = field(default_factory=set)  # slots mentioned so far in this one
    latest: str = ""  # the person mentioned last in this sentence
    hour: int = -1

    def tell(self, template: str) -> str:
        """Return one sentence of a plot with its choices made and its slots filled."""
        self.now, self.latest = set(), ""
        while (choice := _CHOICE.search(template)) is not None:
            chosen = self.rng.choice(choice[1].split("|"))
            template = template[: choice.start()] + chosen + template[choice.end() :]
        sentence = _SLOT.sub(self._fill, template)
        self.before = self.now
        return sentence[0].upper() + sentence[1:]

    def _fill(self, slot: re.Match[str]) -> str:
        name, form, one, many = slot.groups()
        if one is not None:
            return one if self.cast[name].gender == "thing" else many
        if name in _UNIFORM:
            return self.rng.choice(_UNIFORM[name])
        if name in _RANKED:
            return _draw(self.rng, _RANKED[name])
        if name in ("food", "hiding"):
            return _draw(
                self.rng, self.world.foods if name == "food" else self.world.hiding
            )
        if name in ("time", "night"):
            last = len(lex.TIMES) - 1
            self.hour = (
                last
                if name == "night"
                else min(self.hour + 1 + (self.rng.random() < 0.3), last)
            )
            return self.rng.choice(lex.TIMES[self.hour])
        return self._mention(name, form or "subject")

    def _mention(self, name: str, form: str) -> str:
        entity = self.cast[name]
        # "Ruth hurt her leg": a possessive stands for the person just named, whoever
        # else was mentioned before.
        clear = self._is_clear(name, entity.gender) or (
            form == "possessive" and name == self.latest
        )
        self.now.add(name)
        self.latest = name if entity.gender in PEOPLE else self.latest
        if form == "name" or entity.gender == "place":
            return entity.name if entity.gender in PEOPLE else f"the {entity.name}"
        if form == "new":
            return (
                f"a pair of {entity.name}"
                if entity.gender == "pair"
                else _article(entity.name)
            )
        if form == "bare":
            return entity.name
        if clear:
            subject, object_, possessive = PRONOUNS[entity.gender]
            return {"subject": subject, "object": object_, "possessive": possessive}[
                form
            ]
        known = (
            entity.name
            if entity.gender in PEOPLE
            else f"the {self.rng.choice((entity.name, entity.kind))}"
        )
        return f"{known}'s" if form == "possessive" else known

    def _is_clear(self, name: str, gender: str) -> bool:
        """Whether a pronoun can mean nobody else: all of its kind that were mentioned
        lately are this one."""
        lately = self.before | self.now
        # "it" and "they" might mean a place too; a person is told from things and
        # places, and by gender from others.
        alike = (gender,) if gender in PEOPLE else ("thing", "pair", "place")
        return name in lately and not any(
            self.cast[other].gender in alike for other in lately - {name}
        )


_UNIFORM = {"day": lex.DAYS, "month": lex.MONTHS}
_RANKED = {
    "mood": lex.MOODS,
    "weather": lex.WEATHER,
    "moved": lex.MOVED,
    "manner": lex.MANNERS,
    "said": lex.SAID,
    "number": lex.NUMBERS,
}


def _draw(rng: random.Random, words: Sequence[str]) -> str:
    """Draw a word by Zipf's law: the chance of the word of rank r is in proportion to
    1/r."""
    return rng.choices(words, cum_weights=_zipf(len(words)))[0]


@cache
def _zipf(ranks: int) -> tuple[float, ...]:
    """The weights 1, 1/2, 1/3 and so on of so many ranks, added up."""
    return tuple(accumulate(1 / rank for rank in range(1, ranks + 1)))


def _article(noun: str) -> str:
    consonant_sound = noun.startswith(("uni", "use", "one"))
    return f"{'an' if noun[0] in 'aeiou' and not consonant_sound else 'a'} {noun}"


def _cast(rng: random.Random, world: lex.World) -> dict[str, Entity]:
    hero_gender, friend_gender = rng.choice(PEOPLE), rng.choice(PEOPLE)
    names = {"f": world.women, "m": world.men}
    hero = rng.choice(names[hero_gender])
    friend = rng.choice([name for name in names[friend_gender] if name != hero])
    pair = rng.random() < 0.2
    kind = _draw(rng, world.pairs if pair else world.things)
    adjectives = rng.choice(
        (
            (_draw(rng, lex.LOOKS),),
            (_draw(rng, lex.SIZES_AND_AGES), _draw(rng, lex.LOOKS)),
        )
    )
    places: dict[str, None] = {}
    while len(places) < 3:
        places[_draw(rng, world.places)] = None
    home, goal, other = places
    return {
        "A": Entity(hero, hero_gender),
        "B": Entity(friend, friend_gender),
        "T": Entity(" ".join((*adjectives, kind)), "pair" if pair else "thing", kind),
        "H": Entity(home, "place"),
        "P": Entity(goal, "place"),
        "Q": Entity(other, "place"),
        "X": Entity(_draw(rng, world.animals), "noun"),
        "job": Entity(_draw(rng, world.occupations), "noun"),
        "job2": Entity(_draw(rng, world.occupations), "noun"),
        "kin": Entity(rng.choice(lex.RELATIVES[friend_gender]), "noun"),
    }


def split_of(cast: Mapping[str, Entity]) -> str:
    """Return the split of all stories about this hero, this kind of thing and this
    goal."""
    content = f"{cast['A'].name}/{cast['T'].kind}/{cast['P'].name}"
    percent = int(hashlib.sha256(content.encode()).hexdigest(), 16) % 100
    return (
        "test"
        if percent < HELD_OUT
        else "validation"
        if percent < 2 * HELD_OUT
        else "train"
    )


def generate(
    split: str,
    n: int | None = None,
    seed: int = 0,
    worlds: Sequence[lex.World] = lex.WORLDS,
) -> list[Row]:
    """Generate the stories of a split."""
    if split not in SIZES:
        raise ValueError(
            f"there is no split {split!r}; choose one of {', '.join(SIZES)}"
        )
    n = SIZES[split] if n is None else n
    if n < 0:
        raise ValueError(f"n is {n}; ask for 0 or more stories")
    if not worlds:
        raise ValueError(
            "no world is given; a story needs one, e.g. worlds=[stories_lexicon.SEA]"
        )
    rng = random.Random(f"{split} {seed}")
    stories: list[Row] = []
    told: set[str] = set()
    while len(stories) < n:
        world = rng.choice(worlds)
        cast = _cast(rng, world)
        if split_of(cast) != split:
            continue
        plot = rng.choice(sorted(lex.PLOTS))
        teller = Teller(rng, cast, world)
        paragraphs = [
            " ".join(
                teller.tell(sentence) for step in part for sentence in rng.choice(step)
            )
            for part in lex.PLOTS[plot]
        ]
        text = "\n".join(paragraphs)
        if text in told:
            continue
        told.add(text)
        title = f"{cast['A'].name} and the {cast['T'].name}"
        name = f"stories/{split}/{len(stories):05d}"
        stories.append(
            Row(
                document=name,
                package="stories",
                module=plot,
                title=title,
                paragraphs=paragraphs,
            )
        )
    return stories
