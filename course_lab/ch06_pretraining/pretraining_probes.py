"""Probing by layer: what can a linear classifier read off the frozen states of a model
that learnt the `stories`?

- **word class**: *baker* is an occupation, *slowly* a manner; at the word itself,
  tested on words the probe never saw.
- **hidden person**: woman or man, at a [MASK] in a name's place; only the rest of the
  text, where all are of one gender, can tell.
- **part of story**: beginning, middle or end, at the full stop of a sentence in a
  stretch that begins anywhere.

The probe is scikit-learn's logistic regression on standardised features. Its controls
are the most frequent answer, and the same model untrained: what a probe finds there is
in the input, or learnt by the probe.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretraining_questions import GENDER, Question, as_batch
from course_lib.bert.model import BertForPreTraining
from course_lib.data import stories_lexicon as lex
from course_lib.data.sentences import split_sentences
from course_lib.data.stories import WORLDS, generate

TASKS = ("word class", "hidden person", "part of story")
PARTS = ("beginning", "middle", "end")
_LISTS: Mapping[str, Sequence[str]] = {
    "person": (*lex.WOMEN, *lex.MEN),
    "occupation": lex.OCCUPATIONS,
    "thing": (*lex.THINGS, *lex.PAIRS),
    "place": lex.PLACES,
    "quality": (*lex.SIZES_AND_AGES, *lex.LOOKS),
    "food": lex.FOODS,
    "animal": lex.ANIMALS,
    "manner": lex.MANNERS,
    "mood": lex.MOODS,
}


def _classes() -> dict[str, str]:
    """The words that are of one class only."""
    found: dict[str, set[str]] = {}
    for name, words in _LISTS.items():
        for word in words:
            found.setdefault(word.lower(), set()).add(name)
    return {
        word: next(iter(names))
        for word, names in sorted(found.items())
        if len(names) == 1 and " " not in word
    }


OF_GENDER = GENDER | {"her": "f", "him": "m", "his": "m"}
CLASSES = _classes()
# words that the probe for their class is tested on
HELD_OUT = frozenset(list(CLASSES)[1::2])


class Places(NamedTuple):
    """Where states are read, and what they are to tell."""

    #: Texts with one place each; see
    #: `course_lab.ch06_pretraining.pretraining_questions`.
    questions: list[Question]
    labels: list[str]  # the right answers
    hidden: bool  # whether [MASK] stands at the place


@dataclass(frozen=True)
class Probed:
    """What the probes found in one model."""

    #: Task -> accuracy at each layer, the embeddings first.
    accuracy: dict[str, list[float]]
    #: Task -> the share of the most frequent answer in the test.
    majority: dict[str, float]


def read_places(
    corpus: Corpus, max_length: int, number: int, seed: int = 0
) -> dict[str, tuple[Places, Places]]:
    """Find places to train the probes on and to test them on."""
    found: dict[str, list[Places]] = {task: [] for task in TASKS}
    for split in ("train", "test"):
        places: dict[str, list[tuple[Question, str]]] = {task: [] for task in TASKS}
        for sentences, parts in _stretches(
            corpus, split, max_length - 3, 5 * number, seed + 1
        ):
            for task, question, label in _places(sentences, parts, split == "test"):
                places[task].append((question, label))
        random = np.random.default_rng(seed)
        for task, of_task in places.items():
            if len(of_task) < number:
                raise ValueError(
                    f"only {len(of_task)} places for {task!r} were found; {number} were"
                    " asked for"
                )
            drawn = [
                of_task[index] for index in random.permutation(len(of_task))[:number]
            ]
            questions, labels = ([row[column] for row in drawn] for column in (0, 1))
            found[task].append(
                Places(questions, labels, hidden=task == "hidden person")
            )
    return {task: (train, test) for task, (train, test) in found.items()}


def _stretches(
    corpus: Corpus, split: str, room: int, stories: int, seed: int
) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Stretches of stories that fit, from a sentence drawn at random, and the part of
    the story of each sentence."""
    random = np.random.default_rng(seed)
    for story in generate(split, stories, seed, WORLDS[corpus.name]):
        told = [
            (text, part)
            for part, paragraph in zip(PARTS, story["paragraphs"], strict=True)
            for text in split_sentences(paragraph)
        ]
        told = told[int(random.integers(len(told) - 1)) :]
        sentences: list[list[str]] = []
        for encoded in corpus.tokenizer.encode_in_rust(
            [text for text, _ in told], add_special_tokens=False
        ):
            if sum(map(len, sentences)) + len(encoded.tokens) > room:
                break
            sentences.append(encoded.tokens)
        if len(sentences) > 1:
            yield sentences, [part for _, part in told[: len(sentences)]]


def _places(
    sentences: list[list[str]], parts: list[str], testing: bool
) -> Iterator[tuple[str, Question, str]]:
    told = [word for sentence in sentences for word in sentence if word in OF_GENDER]
    for number, sentence in enumerate(sentences):
        for place, word in enumerate(sentence):
            question = Question(sentences, number, place)
            if word in CLASSES and (word in HELD_OUT) == testing:
                yield "word class", question, CLASSES[word]
            agreed = len({OF_GENDER[other] for other in told}) == 1
            if (
                CLASSES.get(word) == "person"
                and told.count(word) == 1
                and len(told) > 1
                and agreed
            ):
                yield "hidden person", question, OF_GENDER[word]
        if sentence[-1] == ".":
            yield (
                "part of story",
                Question(sentences, number, len(sentence) - 1),
                parts[number],
            )


def probe(
    model: BertForPreTraining,
    vocab: Mapping[str, int],
    places: Mapping[str, tuple[Places, Places]],
) -> Probed:
    """Train and test a probe for each task at each layer; the model stays as it is."""
    accuracy, majority = {}, {}
    for task, (train, test) in places.items():
        pairs = zip(
            _states(model, vocab, train), _states(model, vocab, test), strict=True
        )
        accuracy[task] = [_score(*pair, train.labels, test.labels) for pair in pairs]
        _, counts = np.unique(test.labels, return_counts=True)
        majority[task] = float(counts.max() / counts.sum())
    return Probed(accuracy, majority)


def _states(
    model: BertForPreTraining, vocab: Mapping[str, int], places: Places
) -> list[np.ndarray]:
    """The state of each place at each layer, ``(places, features)``."""
    batch = as_batch(places.questions, vocab)
    input_ids = batch.input_ids.flatten()
    if not places.hidden:
        input_ids[batch.masked_positions] = batch.masked_labels
    with torch.no_grad():
        output = model.bert(
            input_ids.view_as(batch.input_ids),
            batch.attention_mask,
            batch.token_type_ids,
            return_hidden_states=True,
        )
    assert output.hidden_states is not None
    return [
        states.flatten(0, 1)[batch.masked_positions].numpy()
        for states in output.hidden_states
    ]


def _score(
    train: np.ndarray, test: np.ndarray, train_labels: list[str], test_labels: list[str]
) -> float:
    # Regularised: with as many features as a state has, a probe could otherwise learn
    # places by heart.
    classifier = make_pipeline(
        StandardScaler(), LogisticRegression(C=0.1, max_iter=300)
    )
    return float(classifier.fit(train, train_labels).score(test, test_labels))
