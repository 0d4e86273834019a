"""How well `pydocs` is cleaned and how right the labels of its tasks are: a reader's
verdict on each item of a random sample, tied to what was read.

A sample is the 50 paragraphs or rows, of all splits, whose hash together with a seed is
smallest: as good as drawn by lot, the same on every machine, and in a corpus that
differs little nearly the same. A verdict belongs to an item by the hash of its content,
so what nobody has read has none, and a changed corpus asks for a new reading.

What counts as prose: every sentence has a main verb and says something by itself. The
style of documentation is let pass: a subject that is left out ("Returns the mean."), a
colon before what the cleaning dropped, and a slip of grammar. Samples with the seeds 0,
1 and 2 were read with earlier rules (48, 45 and 49 of 50 were prose, most others noun
phrases without a verb). Noun phrases with a relative clause or an abbreviation were
still let in, so the rule for labels was written anew, with an eye on some hundred
paragraphs that it lost and won, and on the samples of the seeds 900 and 901. The sample
of seed 3 was read after that, once, and no rule has changed since.

What counts as right, in samples that were read once, after the rules of the tasks were
fixed on samples with other seeds:

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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from datasets import DatasetDict

from course_lib.data.corpus import markdown_table, plain_text

SIZE, ENOUGH = 50, 48
PARAGRAPHS_SEED, ROWS_SEED = 3, 7
PROSE, NOT_PROSE, RIGHT, WRONG = "prose", "not prose", "right", "wrong"
UNREAD = "not read"
_FILE: dict[str, Any] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
# What the corpus was made from that was read.
READ_FROM: dict[str, str] = _FILE["made from"]
# The beginning of the SHA-256 of an item -> what the reader found, for each data set.
VERDICTS: dict[str, dict[str, str]] = _FILE["verdicts"]


class Reading(NamedTuple):
    """A sampled paragraph or row, where it stands, and what the reader found."""

    place: str
    content: str
    verdict: str


def sample(name: str, data: DatasetDict) -> list[Reading]:
    """Return the sampled paragraphs of `pydocs`, or rows of a task, with their
    verdicts."""
    seed = PARAGRAPHS_SEED if name == "pydocs" else ROWS_SEED
    drawn = sorted((_digest(f"{seed} {item[1]}"), *item) for item in _items(name, data))
    verdicts = VERDICTS.get(name, {})
    return [
        Reading(place, content, verdicts.get(_digest(content)[:16], UNREAD))
        for _, place, content in drawn[:SIZE]
    ]


def _items(name: str, data: DatasetDict) -> Iterator[tuple[str, str]]:
    """Yield all paragraphs, or all rows as text, each with the place where it is."""
    for split, rows in data.items():
        if name == "pydocs":
            for place, texts in zip(rows["document"], rows["paragraphs"], strict=True):
                yield from ((place, text) for text in texts)
        else:
            yield from ((split, json.dumps(dict(row), sort_keys=True)) for row in rows)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _counted(readings: list[Reading], *verdicts: str) -> str:
    verdict = [reading.verdict for reading in readings]
    return ", ".join(f"{verdict.count(each)} {each}" for each in (*verdicts, UNREAD))


def differences(made_from: Mapping[str, str]) -> str:
    """Say how a corpus differs, in what it is made from, from the one that was read."""
    return ", ".join(
        f"{name} {made_from.get(name, 'missing')} instead of {version}"
        for name, version in READ_FROM.items()
        if made_from.get(name) != version
    )


def task_card(name: str, data: DatasetDict) -> str:
    """Return the part of a task's data card that says what a reader found."""
    readings = sample(name, data)
    rows = "1 row" if len(readings) == 1 else f"{len(readings)} rows"
    return (
        f"### What a reader finds\n\nA random sample of {rows}, each read for whether"
        f" its label is right: {_counted(readings, RIGHT, WRONG)}. A row that changed"
        " since counts as not read."
    )


def corpus_card(data: DatasetDict, made_from: Mapping[str, str]) -> str:
    """Return the part of the data card of `pydocs` that says what the corpus is made
    from and what a reader found in it."""
    readings = sample("pydocs", data)
    other = differences(made_from)
    versions = [(f"`{name}`", version) for name, version in made_from.items()]
    rows = [(f"`{place}`", plain_text(text), found) for place, text, found in readings]
    return "\n\n".join(
        (
            "### Made from",
            markdown_table(("package", "version"), versions),
            (
                f"The corpus that was read differs: {other}."
                if other
                else "This is the corpus that was read."
            ),
            "### What a reader finds",
            (
                f"A random sample of {len(readings)} paragraphs, each read for whether"
                " it is prose, whole sentences in English that say something:"
                f" {_counted(readings, PROSE, NOT_PROSE)}."
                ' A subject that is left out ("Returns the mean.") and a colon before'
                " what the cleaning dropped are let pass. A paragraph that changed"
                " since counts as not read."
            ),
            markdown_table(("document", "paragraph", "verdict"), rows),
        )
    )
