"""The data sets of chapter 8 as tasks: what a model of their form reads, is trained on,
guesses and is scored by.

Five forms, one column each in `SPECS`: which columns hold the input, and which splits
are for training and for testing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from datasets import ClassLabel, Dataset

from course_lib.data import load
from course_lib.data.data_set import split_by
from course_lib.finetuning.examples import Example
from course_lib.finetuning.finetune import (
    MultipleChoiceClassifier,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
    choice_examples,
    predict,
    question_examples,
    tagging_examples,
    text_examples,
)
from course_lib.finetuning.task_model import TaskModel
from course_lib.metrics.entities import entity_scores
from course_lib.metrics.errors import GLUE, glue_scores
from course_lib.metrics.squad import squad_scores
from course_lib.wordpiece.fast import FastWordPiece

Form: TypeAlias = Literal["classes", "number", "tags", "spans", "choices"]
MODELS: Mapping[Form, type[TaskModel]] = {
    "classes": SequenceClassifier,
    "number": SequenceClassifier,
    "tags": TokenClassifier,
    "spans": SpanClassifier,
    "choices": MultipleChoiceClassifier,
}


class Spec(NamedTuple):
    """How a data set becomes a task."""

    form: Form  # of the task
    #: The columns that hold the input; several before the endings are joined with a
    #: space.
    inputs: tuple[str, ...]
    #: The split that is tested on. "title" stands for a tenth of the articles of the
    #: one split that there is, another tenth being left out for looking at.
    test: str = "test"


SPECS: Mapping[str, Spec] = {
    "sst2": Spec(
        "classes", ("sentence",), "validation"
    ),  # GLUE keeps the labels of its test splits
    "cola": Spec("classes", ("sentence",), "validation"),
    "mrpc": Spec("classes", ("sentence1", "sentence2")),
    "rte": Spec("classes", ("sentence1", "sentence2"), "validation"),
    "stsb": Spec("number", ("sentence1", "sentence2")),
    "wnut17": Spec("tags", ("tokens",)),
    "squad": Spec("spans", ("question", "context"), "title"),
    "mctest": Spec("choices", ("context", "question")),
    "pydocs-topic": Spec("classes", ("text",)),
    "pydocs-pair": Spec("classes", ("sentence1", "sentence2")),
    "pydocs-tag": Spec("tags", ("tokens",)),
    "pydocs-span": Spec("spans", ("question", "context")),
    "pydocs-choice": Spec("choices", ("context",)),
}


class Rows(NamedTuple):
    """A part of a task."""

    inputs: list[Any]  # as `course_lib.finetuning.finetune.predict` takes them
    #: A class, a number, a tag for each word, the accepted answers, or the right
    #: choice.
    golds: list[Any]
    #: For spans: where the first accepted answer stands, in characters, or None if
    #: there is none; else empty.
    places: list[tuple[int, int] | None]

    def select(self, indices: Sequence[int]) -> "Rows":
        """Return some of the rows, in the order asked for."""
        inputs, golds = (
            [column[index] for index in indices] for column in (self.inputs, self.golds)
        )
        return Rows(
            inputs,
            golds,
            [self.places[index] for index in indices] if self.places else [],
        )

    def sample(self, number: int | None, seed: int) -> "Rows":
        """Draw so many rows; all of them, in their order, if not given or there are no
        more."""
        if number is None or number >= len(self.inputs):
            return self
        return self.select(
            np.random.default_rng(seed).permutation(len(self.inputs))[:number].tolist()
        )


@dataclass(frozen=True)
class Task:
    """A task, ready to be trained and tested on."""

    name: str  # of the data set
    form: Form  # of the task
    #: The names of classes or tags; None for the other forms.
    labels: tuple[str, ...] | None
    #: train, test: its rows.
    train: Rows
    test: Rows

    @property
    def model_options(self) -> dict[str, Any]:
        """What a new model of this form is told beside its sizes."""
        return {"number": {"labels": 1}, "spans": {}, "choices": {}}.get(
            self.form, {"labels": self.labels}
        )

    @property
    def always_answered(self) -> bool:
        """Whether each question has an answer: then one is always given, and scored as
        version 1 of SQuAD's script."""
        return all(
            place is not None for place in (*self.train.places, *self.test.places)
        )

    def examples(
        self, rows: Rows, tokenizer: FastWordPiece, max_length: int
    ) -> list[Example]:
        """Make examples of rows."""
        if self.form == "tags":
            return tagging_examples(rows.inputs, rows.golds, tokenizer, max_length)
        if self.form == "spans":
            questions, contexts = zip(*rows.inputs, strict=True)
            return question_examples(
                questions, contexts, rows.places, tokenizer, max_length, max_length // 3
            )
        if self.form == "choices":
            contexts, endings = zip(*rows.inputs, strict=True)
            return choice_examples(contexts, endings, rows.golds, tokenizer, max_length)
        return text_examples(rows.inputs, rows.golds, tokenizer, max_length)

    def score(
        self, model: TaskModel, tokenizer: FastWordPiece, rows: Rows, max_length: int
    ) -> dict[str, float]:
        """Score a model's guesses on raw rows by the metrics of the task, from
        0 to 1."""
        options: dict[str, Any] = {}
        if self.form == "spans":
            options = {
                "stride": max_length // 3,
                "null_threshold": None if self.always_answered else 0.0,
            }
        guesses = predict(
            model, tokenizer, rows.inputs, max_length=max_length, **options
        )
        if self.form == "tags":
            assert self.labels is not None
            golds = [[self.labels[tag] for tag in tags] for tags in rows.golds]
            found = entity_scores(
                golds, [[word.label for word in words] for words in guesses]
            )
            return {
                "f1": found.f1,
                "precision": found.precision,
                "recall": found.recall,
            }
        if self.form == "spans":
            version = 1 if self.always_answered else 2
            squad = squad_scores([guess.text for guess in guesses], rows.golds, version)
            return {"exact": squad.exact / 100, "f1": squad.f1 / 100}
        if self.form == "number":
            return self.score_numbers(guesses, rows)
        return self.score_numbers(
            [self.labels.index(x.label) if self.labels else x.label for x in guesses],
            rows,
        )

    def score_numbers(
        self, guesses: Sequence[int] | Sequence[float], rows: Rows
    ) -> dict[str, float]:
        """Score classes, choices or numbers: as GLUE scores the task if it is one of
        GLUE's, else by accuracy."""
        return glue_scores(
            self.name if self.name in GLUE else "sst2", guesses, rows.golds
        )


def read_task(name: str, source: str | None = None) -> Task:
    """Load a data set as a task."""
    if name not in SPECS:
        raise ValueError(f"there is no task {name!r}; there is: {', '.join(SPECS)}")
    spec, splits = SPECS[name], load(name, source)
    if spec.test == "title":
        splits = split_by(splits["validation"], "title")
    train, test = splits["train"], splits["test" if spec.test == "title" else spec.test]
    return Task(
        name,
        spec.form,
        _labels(spec.form, train),
        _rows(spec, train),
        _rows(spec, test),
    )


def _labels(form: Form, rows: Dataset) -> tuple[str, ...] | None:
    if form not in ("classes", "tags"):
        return None
    feature = (
        rows.features["label"]
        if form == "classes"
        else rows.features["ner_tags"].feature
    )
    assert isinstance(feature, ClassLabel)
    return tuple(feature.names)


def _rows(spec: Spec, rows: Dataset) -> Rows:
    columns = [rows[name][:] for name in spec.inputs]
    of_form: Mapping[Form, Callable[[], Rows]] = {
        "classes": lambda: Rows(_texts(columns), rows["label"][:], []),
        "number": lambda: Rows(_texts(columns), rows["label"][:], []),
        "tags": lambda: _without_empty(columns[0], rows["ner_tags"][:]),
        "spans": lambda: Rows(
            _texts(columns),
            [x["text"] for x in rows["answers"][:]],
            _places(rows["answers"][:]),
        ),
        "choices": lambda: Rows(_with_endings(columns, rows), rows["label"][:], []),
    }
    return of_form[spec.form]()


def _texts(columns: Sequence[list[str]]) -> list[Any]:
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _without_empty(sentences: list[list[str]], tags: list[list[int]]) -> Rows:
    kept = [index for index, words in enumerate(sentences) if words]
    return Rows(
        [sentences[index] for index in kept], [tags[index] for index in kept], []
    )


def _places(answers: Sequence[Mapping[str, list]]) -> list[tuple[int, int] | None]:
    return [
        (
            (x["answer_start"][0], x["answer_start"][0] + len(x["text"][0]))
            if x["answer_start"]
            else None
        )
        for x in answers
    ]


def _with_endings(columns: Sequence[list[str]], rows: Dataset) -> list[Any]:
    names = sorted(name for name in rows.column_names if name.startswith("ending"))
    endings = zip(*(rows[name][:] for name in names), strict=True)
    contexts = [" ".join(parts) for parts in zip(*columns, strict=True)]
    return [
        (context, list(of_one))
        for context, of_one in zip(contexts, endings, strict=True)
    ]
