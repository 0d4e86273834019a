"""The rows of the catalogue for the tasks derived from `pydocs`."""

from collections.abc import Mapping
from types import ModuleType

from datasets import Dataset, DatasetDict

from course_lib.data import (
    pydocs_choice,
    pydocs_entries,
    pydocs_pair,
    pydocs_span,
    pydocs_tag,
    pydocs_tasks,
    pydocs_topic,
)
from course_lib.data.data_set import SPLITS, DataSet
from course_lib.data.task_reading import reading_card

TASKS: Mapping[str, ModuleType] = {
    "pydocs-topic": pydocs_topic,
    "pydocs-pair": pydocs_pair,
    "pydocs-span": pydocs_span,
    "pydocs-tag": pydocs_tag,
    "pydocs-choice": pydocs_choice,
}
_BY_MODULE = (
    "Rows are split by module, as `pydocs` is: text on which a model was pre-trained is"
    " in no test split. Of rows that say nearly the same, one is kept, first of all"
    " that in test."
)


def splits(name: str) -> Mapping[str, Dataset]:
    """Return a task from the cache, or make it."""
    module = TASKS[name]
    return pydocs_tasks.load(name, module.FEATURES, module.make, module, pydocs_entries)


def card_of_task(name: str, data: DatasetDict) -> str:
    """Return what the card of a labelled set says besides: what guesses reach, and what
    a reader found."""
    # Here and not above: scikit-learn takes a second to import, and only cards need it.
    from course_lib.data.task_controls import controls_card

    parts = [controls_card(name, data)]
    if name in TASKS:
        parts.append(reading_card(name, data))
    return "\n\n".join(parts)


def _task(
    name: str,
    title: str,
    description: str,
    column_notes: Mapping[str, str],
    *quirks: str,
) -> DataSet:
    return DataSet(
        name=name,
        title=title,
        description=description,
        features=TASKS[name].FEATURES,
        column_notes=column_notes,
        splits=SPLITS,
        licence=(
            "That of each package; the text is read on your machine and not distributed"
            " with the course"
        ),
        citation=(
            "The documentation of Python and of the packages that `pydocs` lists, by"
            " their authors."
        ),
        quirks=(*quirks, _BY_MODULE),
        get_it=(
            f'Nothing to get: `load("{name}")` derives it from the packages installed'
            " on your machine."
        ),
        embedded=lambda: splits(name),
        more=lambda data: card_of_task(name, data),
        made="derived from pydocs on this machine",
    )


_ENDINGS = {f"ending{i}": "a sentence" for i in range(pydocs_choice.CHOICES)}
TASK_ROWS = (
    _task(
        "pydocs-topic",
        "Which library does a paragraph document?",
        "Paragraphs of `pydocs`, alone or with the next ones of the same document, and"
        " the area of their library.",
        {
            "text": "one paragraph or a few",
            "label": "the area: see below which packages it stands for",
        },
        "Paragraphs that name a package are left out, and those about versions,"
        " warnings or the code itself.",
        "Some areas have few rows in validation and test: their modules are what these"
        " splits hold.",
        "A paragraph that many libraries could contain keeps the label of its own:"
        " nobody reaches 100%.",
        "numerics is numpy and scipy, learning scikit-learn, symbols sympy, graphs"
        " networkx, tables pandas, plots matplotlib, tensors torch, databases"
        " sqlalchemy.",
    ),
    _task(
        "pydocs-pair",
        "Do a summary and a description belong together?",
        "The first sentence of a docstring and what follows it, or what follows another"
        " one of the same package.",
        {
            "sentence1": "a summary, mostly one sentence",
            "sentence2": (
                "a description: a paragraph, or what is left of the summary's own"
            ),
            "label": (
                "same: both say something of one class or function; different: of two"
            ),
        },
        "Each summary is in one row, and so is each description: neither alone tells"
        " the label.",
        "A wrong description shares as many words with the summary as the right one"
        " did, as far as there is one.",
    ),
    _task(
        "pydocs-span",
        "Questions about parameters, answered by a span",
        "What a docstring lists (parameters, results, errors) laid out as one text, and"
        " questions about it: types, possible values, defaults, the name of what is"
        " described, what is returned, what is raised.",
        {
            "id": "module, owner, kind of question, name",
            "title": "the module: the unit that is split",
            "context": "entries as `name : type. Description`, at least three",
            "question": "one of a few forms for each kind",
            "answers": (
                "one text, and where it begins in characters from 0: as in SQuAD"
            ),
        },
        "Questions are made by rules, so they repeat the words of the context more than"
        " people's questions do.",
        "A context has up to three questions, each of another kind.",
        "Types are common words: the card counts the most common answers.",
    ),
    _task(
        "pydocs-tag",
        "Mentions of parameters and types",
        "Sentences of documentation, without their markup, in which names of parameters"
        " and of types are tagged.",
        {
            "tokens": "words and signs; names keep their underscores, dots stand alone",
            "ner_tags": (
                "PARAM: a parameter of what the sentence documents; TYPE: a class or a"
                " type of Python"
            ),
        },
        "Tags come from authors' markup and lists of parameters. Sentences in which a"
        " role is uncertain are left out, such as those with an unmarked word that is"
        " English and a parameter.",
        "A name with an underscore is a mention more often than not, which a word's"
        " shape tells; a word such as `axis` or `key` is one in some sentences only.",
        "Most mentions are one token; `**kwargs` and `pandas.DataFrame` are more.",
        "A class of errors is a TYPE, too. Functions, attributes and values are O.",
    ),
    _task(
        "pydocs-choice",
        "Which sentence goes on?",
        "One or two sentences of a paragraph and four that might follow: the real one,"
        " and three of other modules.",
        {
            "context": "one or two sentences",
            **_ENDINGS,
            "label": "the number of the real one",
        },
        "Every ending is somewhere the real one: the endings alone tell nothing.",
        "Wrong endings are of the same package, of similar length, and share as many"
        " words with the context.",
        "A wrong ending may fit by chance; the label says which one the author wrote.",
    ),
)
