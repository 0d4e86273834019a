"""What fine-tuning has to beat: linear models of words, or of the states of a frozen
encoder, with the same labels.

Classes, tags and choices get a logistic regression, numbers a ridge regression; how
much large weights cost is chosen by cross-validation on the labelled rows. Spans have
none: a place in a text is no class.
"""

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import hstack
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from course_lab.ch07_embeddings.layer_table import read_words
from course_lab.ch08_finetuning.finetuning_tasks import Rows, Task
from course_lib.bert.files import load_bert
from course_lib.bert.model import BertModel
from course_lib.embeddings.contextual import select_layers
from course_lib.finetuning.examples import collate, text_examples
from course_lib.finetuning.task_model import looking
from course_lib.metrics.entities import entity_scores
from course_lib.sentence_bert.evaluation import pair_features
from course_lib.sentence_bert.model import pool
from course_lib.training.loop import device
from course_lib.wordpiece.fast import FastWordPiece

STATES = (0.001, 0.01, 0.1)  # C on standardised states
WORDS = (1.0, 10.0, 100.0)  # C on shares of words


class Reader(NamedTuple):
    """A frozen encoder, and what it made of the texts that it has read."""

    encoder: BertModel
    tokenizer: FastWordPiece
    max_length: int
    known: dict[Any, torch.Tensor]

    def states(self, items: Sequence[Any]) -> np.ndarray:
        """The mean of the last states and the pooled state of each input; of two texts
        the differences and products of their own means too."""
        rows = self._read(items)
        if not isinstance(items[0], str):
            u, v = (
                self._read(x)[:, : rows.shape[1] // 2] for x in zip(*items, strict=True)
            )
            rows = torch.cat([rows, pair_features(u, v)], dim=1)
        return rows.numpy()

    def _read(self, items: Sequence[Any]) -> torch.Tensor:
        new = [x for x in dict.fromkeys(items) if x not in self.known]
        examples = text_examples(new, None, self.tokenizer, self.max_length)
        order = sorted(range(len(new)), key=lambda number: examples[number].length)
        with looking(self.encoder) as where:
            for start in range(0, len(order), 64):
                chosen = order[start : start + 64]
                batch = collate([examples[i] for i in chosen])
                given = [None if x is None else x.to(where) for x in batch[:3]]
                output = self.encoder(*given)
                mean = pool(output.last_hidden_state, given[1])
                both = torch.cat([mean, output.pooler_output], dim=1).cpu()
                self.known.update(zip((new[i] for i in chosen), both, strict=True))
        return torch.stack([self.known[x] for x in items])


@cache
def reader_of(folder: Path, max_length: int) -> Reader:
    """Load an encoder once for all runs of a command."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*left aside")
        encoder = load_bert(folder).to(device())
    return Reader(encoder, FastWordPiece.load(folder), max_length, {})


def baseline_scores(
    task: Task, train: Rows, test: Rows, reader: "Reader | None"
) -> dict[str, float]:
    """Fit a linear model to the states of an encoder, or to words if there is none, and
    score it by the metrics of the task."""
    if task.form == "tags":
        return _tag_scores(task, train, test, reader)
    items = [_items(task, rows) for rows in (train, test)]
    features = [reader.states(x) for x in items] if reader else _word_features(*items)
    each = len(items[0]) // len(train.inputs)
    labels = train.golds
    if task.form == "choices":
        labels = [int(i == gold) for gold in train.golds for i in range(each)]
    model = _fitted(task.form, features[0], labels, each, reader is None)
    if task.form != "choices":
        return task.score_numbers(model.predict(features[1]).tolist(), test)
    right = model.predict_proba(features[1])[:, 1].reshape(-1, each)
    return task.score_numbers(right.argmax(axis=1).tolist(), test)


def _items(task: Task, rows: Rows) -> list[Any]:
    """Texts or pairs; of a choice, its context with each ending."""
    if task.form != "choices":
        return rows.inputs
    return [(context, ending) for context, endings in rows.inputs for ending in endings]


def _fitted(
    form: str, features: Any, labels: Sequence[Any], groups: Any, words: bool
) -> GridSearchCV:
    """Fit a linear model; rows of one group, or so many in a row, are held out
    together."""
    if isinstance(groups, int):
        groups = np.arange(len(labels)) // groups
    strengths = WORDS if words else STATES
    linear = LogisticRegression(max_iter=100, tol=1e-3)
    grid: dict[str, Any] = {"logisticregression__C": strengths}
    if form == "number":
        linear, grid = Ridge(), {"ridge__alpha": [1 / c for c in strengths]}
    search = GridSearchCV(
        make_pipeline(*([] if words else [StandardScaler()]), linear),
        grid,
        # three endings of four are wrong, whatever an accuracy says
        scoring="roc_auc" if form == "choices" else None,
        cv=GroupKFold(3) if form == "number" else StratifiedGroupKFold(3),
    )
    with warnings.catch_warnings():  # of 32 labels, a topic may have one
        warnings.filterwarnings("ignore", message="The least populated class")
        return search.fit(features, labels, groups=groups)


def _word_features(train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
    """Words and pairs of words by TF-IDF; of two texts, which they share, which they do
    not, and how many."""
    texts = [
        text for item in train for text in ([item] if isinstance(item, str) else item)
    ]
    vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit(texts)

    def features(items: Sequence[Any]) -> Any:
        if isinstance(items[0], str):
            return vectors.transform(items)
        u, v = (vectors.transform(side) for side in zip(*items, strict=True))
        both = u.multiply(v)
        return hstack([abs(u - v), both, both.sum(axis=1)]).tocsr()

    return [features(train), features(test)]


def _tag_scores(
    task: Task, train: Rows, test: Rows, reader: "Reader | None"
) -> dict[str, float]:
    """Tag word by word: by the sum of all layers, or by the word, its ending and its
    neighbours."""
    assert task.labels is not None
    features: list[Any] = []
    lengths = []
    vectors = DictVectorizer()
    for rows in (train, test):
        if reader is None:
            told = [x for words in rows.inputs for x in _told(words)]
            features.append(
                (vectors.transform if features else vectors.fit_transform)(told)
            )
            lengths.append([len(words) for words in rows.inputs])
        else:
            read = read_words(*reader[:2], rows.inputs, reader.max_length)
            features.append(select_layers(read.layers, "sum")[0].numpy())
            lengths.append(read.lengths)
    wanted = [
        tag for tags, n in zip(train.golds, lengths[0], strict=True) for tag in tags[:n]
    ]
    groups = np.repeat(np.arange(len(train.inputs)), lengths[0])
    model = _fitted(task.form, features[0], wanted, groups, reader is None)
    guesses = iter(model.predict(features[1]).tolist())
    golds = [[task.labels[tag] for tag in tags] for tags in test.golds]
    found = [
        [task.labels[next(guesses)] for _ in range(n)] + ["O"] * (len(tags) - n)
        for tags, n in zip(golds, lengths[1], strict=True)
    ]
    scores = entity_scores(golds, found)
    return {"f1": scores.f1, "precision": scores.precision, "recall": scores.recall}


def _told(words: Sequence[str]) -> list[dict[str, Any]]:
    """What a tagger without a model is told of each word."""
    around = ["", *(word.lower() for word in words), ""]
    return [
        {
            "word": word.lower(),
            "before": around[place],
            "after": around[place + 2],
            "ending": word[-3:],
            "letters": word.isalpha(),
            "capital": word[:1].isupper(),
        }
        for place, word in enumerate(words)
    ]
