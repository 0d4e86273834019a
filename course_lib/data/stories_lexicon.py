"""The words and plots of the `stories` data set, as `stories.toml` lists them.

Each story is at home in one of the `WORLDS`, by the sea or on a farm, with its people,
places and things.
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

Wording = list[str]
Step = list[Wording]
Plot = list[list[Step]]


class World(NamedTuple):
    """Where a story is at home: who lives there, and what is there."""

    women: tuple[str, ...]
    men: tuple[str, ...]
    occupations: tuple[str, ...]
    places: tuple[str, ...]
    things: tuple[str, ...]
    pairs: tuple[str, ...]
    foods: tuple[str, ...]
    animals: tuple[str, ...]
    hiding: tuple[str, ...]


def _listed(text: str) -> tuple[str, ...]:
    """Split a list into its words, or its phrases where commas part them."""
    if "," not in text:
        return tuple(text.split())
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


def _all(kind: str) -> tuple[str, ...]:
    """Return the words of a kind in all worlds, each once."""
    return tuple(
        dict.fromkeys(word for world in WORLDS for word in getattr(world, kind))
    )


_FILE: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("stories.toml").read_text(encoding="utf-8")
)
SEA, FARM, FOREST, MOUNTAIN, MARKET, SCHOOL, WORKS, STAGE = WORLDS = tuple(
    World(**{kind: _listed(text) for kind, text in lists.items()})
    for lists in _FILE["worlds"].values()
)
WOMEN, MEN, OCCUPATIONS = _all("women"), _all("men"), _all("occupations")
PLACES, THINGS, PAIRS = _all("places"), _all("things"), _all("pairs")
FOODS, ANIMALS = _all("foods"), _all("animals")
RELATIVES = {gender: _listed(text) for gender, text in _FILE["relatives"].items()}
TIMES = tuple(map(_listed, _FILE["times"]))
_WORDS = {name: _listed(text) for name, text in _FILE["words"].items()}
SIZES_AND_AGES, LOOKS = _WORDS["sizes_and_ages"], _WORDS["looks"]
MOODS, WEATHER, MOVED = _WORDS["moods"], _WORDS["weather"], _WORDS["moved"]
MANNERS, SAID, NUMBERS = _WORDS["manners"], _WORDS["said"], _WORDS["numbers"]
DAYS, MONTHS = _WORDS["days"], _WORDS["months"]
PLOTS: dict[str, Plot] = {
    name: [
        [_FILE["steps"][step] if isinstance(step, str) else step for step in part]
        for part in plot
    ]
    for name, plot in _FILE["plots"].items()
}
