"""How right the labels of the derived tasks are: a reader's verdict on each row of a
random sample.

The sample of a task is the 50 rows, of all splits, whose hash together with a seed is
smallest: as good as drawn by lot. A verdict belongs to a row by the hash of its
content, so a row that nobody has read has none, and a changed task asks for a new
reading. The rules of the tasks were written while samples with other seeds were read;
the sample below was read once, after the rules were fixed.

What counts as right:

- topic: the text is about what the library is for, or nothing in it speaks for another
  area;
- pair: "same" texts speak of one thing; "different" ones cannot be taken for one;
- span: the answer is a right and whole answer to the question, and no other span is a
  better one;
- tag: every mention is tagged as what it is, from its first to its last token, and
  nothing else is;
- choice: the ending that is called real goes on from the context, and none of the
  others does so as well.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from datasets import DatasetDict

SEED, SIZE, ENOUGH = 7, 50, 48
RIGHT, WRONG, UNREAD = "right", "wrong", "not read"


class Reading(NamedTuple):
    """A sampled row, and what the reader found."""

    row: Mapping[str, Any]
    verdict: str


def sample(
    name: str, data: DatasetDict, size: int = SIZE, seed: int = SEED
) -> list[Reading]:
    """Return the sampled rows of a task with their verdicts."""
    verdicts = _verdicts().get(name, {})
    drawn = sorted(
        (
            (hashlib.sha256(f"{seed} {content(row)}".encode()).digest(), row)
            for rows in data.values()
            for row in rows
        ),
        key=lambda pair: pair[0],
    )[:size]
    return [Reading(row, verdicts.get(digest(row), UNREAD)) for _, row in drawn]


def content(row: Mapping[str, Any]) -> str:
    """Return all that a row holds, as one text."""
    return json.dumps(dict(row), sort_keys=True)


def digest(row: Mapping[str, Any]) -> str:
    """Return what tells a row from others."""
    return hashlib.sha256(content(row).encode()).hexdigest()[:16]


def reading_card(name: str, data: DatasetDict) -> str:
    """Return the part of a data card that says what a reader found."""
    readings = sample(name, data)
    counts = {
        found: sum(reading.verdict == found for reading in readings)
        for found in (RIGHT, WRONG, UNREAD)
    }
    found = ", ".join(f"{count} {word}" for word, count in counts.items())
    rows = "1 row" if len(readings) == 1 else f"{len(readings)} rows"
    return (
        f"### What a reader finds\n\nA random sample of {rows}, each read for whether"
        f" its label is right: {found}. A row that changed since counts as not read."
    )


def _verdicts() -> dict[str, dict[str, str]]:
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
