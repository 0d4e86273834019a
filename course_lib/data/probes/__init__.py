"""Small sets written by hand for the course: senses in context, film reviews, named
entities, questions.

They are short enough to be read whole, and written against shortcuts: a review's words
occur in its opposite, a name is a person in one sentence and a city in the next, a
question may have no answer. The files beside this one hold them in a form that is easy
to write; the functions here turn them into rows.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Value

from course_lib.data.data_set import as_squad, labelled, tagged_tokens, texts

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
TEST = 3  # one in so many reviews, sentences and paragraphs is for testing
ENTITY_TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG")
SENSES = texts("word", "sense", "text", start=Value("int64"), end=Value("int64"))
REVIEWS = labelled(("negative", "positive"), "text")
ENTITIES = tagged_tokens(ENTITY_TAGS)
QUESTIONS = as_squad()
_PIECE = re.compile(r"\[([A-Z]{3}) ([^\]]+)\]|([^\[]+)")


def senses() -> Rows:
    """Return sentences with an ambiguous word, and the sense in which it stands."""
    rows = []
    for word, by_sense in _read("senses").items():
        for sense, sentences in by_sense.items():
            for text in sentences:
                (found,) = re.finditer(rf"\b{word}\b", text, re.IGNORECASE)
                rows.append(
                    {
                        "word": word,
                        "sense": sense,
                        "text": text,
                        "start": found.start(),
                        "end": found.end(),
                    }
                )
    return {"test": rows}


def reviews() -> Rows:
    """Return short film reviews, each with one that says the opposite in nearly the
    same words."""
    pairs = [
        [{"text": positive, "label": 1}, {"text": negative, "label": 0}]
        for positive, negative in _read("reviews")
    ]
    return {
        split: [row for pair in part for row in pair]
        for split, part in _parts(pairs).items()
    }


def entities() -> Rows:
    """Return sentences with people, places and organisations tagged."""
    return _parts([tagged(sentence) for sentence in _read("entities")])


def tagged(sentence: str) -> dict[str, list[Any]]:
    """Turn a sentence with marked entities into tokens and tags."""
    tokens: list[str] = []
    tags: list[int] = []
    for kind, name, text in _PIECE.findall(sentence):
        words = re.findall(r"'s\b|\w+(?:[-'’]\w+)*|\S", name or text)
        first = ENTITY_TAGS.index(f"B-{kind}") if kind else 0
        tokens += words
        tags += [first + (kind != "" and at > 0) for at in range(len(words))]
    return {"tokens": tokens, "ner_tags": tags}


def questions() -> Rows:
    """Return questions on paragraphs written for them; some have no answer there."""
    paragraphs = []
    for place, paragraph in enumerate(_read("questions")):
        context, rows = paragraph["context"], []
        for number, (question, answer) in enumerate(paragraph["questions"]):
            found = (
                {"text": [answer], "answer_start": [context.index(answer)]}
                if answer is not None
                else {}
            )
            rows.append(
                {
                    "id": f"{place}-{number}",
                    "title": paragraph["title"],
                    "context": context,
                    "question": question,
                    "answers": found or {"text": [], "answer_start": []},
                }
            )
        paragraphs.append(rows)
    return {
        split: [row for rows in part for row in rows]
        for split, part in _parts(paragraphs).items()
    }


def _parts(items: Sequence[Any]) -> dict[str, list[Any]]:
    """Every third for testing, the others for training, in their order."""
    test = [item for place, item in enumerate(items) if place % TEST == TEST - 1]
    return {
        "train": [item for place, item in enumerate(items) if place % TEST != TEST - 1],
        "test": test,
    }


def _read(name: str) -> Any:
    return json.loads(
        (Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8")
    )
