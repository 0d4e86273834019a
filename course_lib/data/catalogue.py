"""The data sets of the course: one row each, which the loader, the data cards and
`course data` all read.

To add a data set, add a row to `DATASETS` (and, when it is generated here, the function
that makes its splits), and its words to `cards.toml`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from datasets import Dataset, DatasetDict, Features, List, Value

from course_lib.data import (
    corpus,
    probes,
    pronouns,
    pydocs,
    pydocs_choice,
    pydocs_entries,
    pydocs_pair,
    pydocs_span,
    pydocs_tag,
    pydocs_tasks,
    pydocs_topic,
    readings,
    stories,
    translation,
)
from course_lib.data.benchmarks import BENCHMARKS, SENTENCE_BENCHMARKS
from course_lib.data.data_set import SPLITS, DataSet, described, hub, texts

log = logging.getLogger("course_lib.data")
TASKS: Mapping[str, ModuleType] = {
    "pydocs-topic": pydocs_topic,
    "pydocs-pair": pydocs_pair,
    "pydocs-span": pydocs_span,
    "pydocs-tag": pydocs_tag,
    "pydocs-choice": pydocs_choice,
}
_ALIGNED = texts("en", "fr", alignment=List(List(Value("int64"))))
_PLACES = ("pronoun", "antecedent", "other_noun")
_CAPTIONS = texts("en", "fr")


def _translation_splits() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    train = translation.generate(20_000, seed=1)
    seen = {pair["en"] for pair in train}
    validation = translation.generate(1_000, seed=2, exclude=seen)
    seen |= {pair["en"] for pair in validation}
    test = translation.generate(1_000, seed=3, exclude=seen)
    return {"train": train, "validation": validation, "test": test}


def _pydocs_splits() -> Mapping[str, Dataset]:
    splits = pydocs.load()
    if other := readings.differences(pydocs.fingerprint()):
        log.warning("pydocs: not the corpus that the course was made with: %s", other)
    return splits


def _pydocs_card(data: DatasetDict) -> str:
    return readings.corpus_card(data, pydocs.fingerprint())


def _card_of_task(name: str, data: DatasetDict) -> str:
    """Return what the card of a labelled set says besides: what guesses reach, and what
    a reader found."""
    # Here and not above: scikit-learn takes a second to import, and only cards need it.
    from course_lib.data.task_controls import controls_card

    reading = [readings.task_card(name, data)] if name in TASKS else []
    return "\n\n".join([controls_card(name, data), *reading])


def _task(name: str, module: ModuleType) -> DataSet:
    return described(
        name,
        module.FEATURES,
        embedded=lambda: pydocs_tasks.load(
            name, module.FEATURES, module.make, module, pydocs_entries
        ),
        more=lambda data: _card_of_task(name, data),
        made="derived from pydocs on this machine",
    )


def _probe(
    name: str, features: Features, embedded: Callable[[], probes.Rows]
) -> DataSet:
    no_guesses = name == "senses"
    return described(
        name,
        features,
        ("test",) if no_guesses else ("train", "test"),
        embedded=embedded,
        more=None if no_guesses else lambda data: _card_of_task(name, data),
        made="written by hand",
    )


DATASETS: dict[str, DataSet] = {
    row.name: row
    for row in (
        described("translation", _ALIGNED, embedded=_translation_splits),
        described(
            "pronouns",
            Features({**_ALIGNED, **dict.fromkeys(_PLACES, Value("int64"))}),
            embedded=lambda: {split: pronouns.generate(split) for split in SPLITS},
        ),
        described(
            "pydocs",
            corpus.FEATURES,
            embedded=_pydocs_splits,
            more=_pydocs_card,
            made="read from the packages on this machine",
        ),
        described(
            "stories",
            corpus.FEATURES,
            embedded=lambda: {split: stories.generate(split) for split in SPLITS},
        ),
        described(
            "two_worlds",
            corpus.FEATURES,
            embedded=lambda: {
                split: stories.generate(split, worlds=stories.WORLDS["two_worlds"])
                for split in SPLITS
            },
        ),
        described(
            "wikitext2_raw",
            corpus.FEATURES,
            hub=hub(
                "Salesforce/wikitext",
                corpus.FEATURES,
                "wikitext-2-raw-v1",
                columns={"paragraphs": "text"},
            ),
            from_lines=corpus.articles,
            optional_splits=("train",),
        ),
        described(
            "multi30k",
            _CAPTIONS,
            optional_features=texts("de"),
            hub=hub("romrawinjp/multi30k", texts("en", "fr", "de")),
        ),
        *(_task(name, module) for name, module in TASKS.items()),
        _probe("senses", probes.SENSES, probes.senses),
        _probe("reviews", probes.REVIEWS, probes.reviews),
        _probe("entities", probes.ENTITIES, probes.entities),
        _probe("questions", probes.QUESTIONS, probes.questions),
        *BENCHMARKS,
        *SENTENCE_BENCHMARKS,
    )
}


def make_embedded(entry: DataSet) -> DatasetDict:
    """Generate every split of a data set that needs no network; the second time, return
    what the first made."""
    if entry.embedded is None:
        raise ValueError(
            f"{entry.name} is not embedded; it comes from {' or '.join(entry.sources)}"
        )
    if entry.name not in _made:
        _made[entry.name] = DatasetDict(
            {
                split: (
                    rows
                    if isinstance(rows, Dataset)
                    else Dataset.from_dict(
                        {name: [row[name] for row in rows] for name in entry.features},
                        entry.features,
                    )
                )
                for split, rows in entry.embedded().items()
            }
        )
    # a copy of the dict; the tables in it cannot be changed
    return DatasetDict(_made[entry.name])


_made: dict[str, DatasetDict] = {}
