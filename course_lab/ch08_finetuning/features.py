"""Features from a frozen BERT: from text to a logistic regression, step by step.

Sentences become ids, ids become a padded matrix and a mask, BERT makes a state of each
position, and the state at position 0, where [CLS] stands, becomes the row of a
sentence. From there on it is scikit-learn: a split, a logistic regression,
cross-validation for its one setting. BERT itself learns nothing.

    N  sentences     T  tokens of the longest     D  features of a hidden state
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from course_lib.bert.model import BertModel
from course_lib.embeddings.contextual import Selection, select_layers
from course_lib.finetuning.task_model import looking
from course_lib.metrics.scores import Interval, mean_interval
from course_lib.sentence_bert.files import Pooling
from course_lib.sentence_bert.model import pool
from course_lib.training.loop import set_seed
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece

# C: the inverse of how much large weights cost
STRENGTHS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


class Way(NamedTuple):
    """How a sentence's states become its features."""

    layers: Selection = "last"  # as in `course_lib.embeddings.contextual.select_layers`
    #: "first" for the state at position 0, "mean" for the mean over tokens; padding is
    #: no token.
    pool: str = "first"


# as recorded runs name them -> of `pool`
POOLINGS: Mapping[str, Pooling] = {"first": "cls", "mean": "mean"}
# The lecture's; the same over all tokens; and, over all tokens, what Devlin et al.
# 2019, table 7, found best.
WAYS = (Way("last", "first"), Way("last", "mean"), Way("concat_last_4", "mean"))


class Padded(NamedTuple):
    """Sentences as one matrix."""

    input_ids: Tensor  # ``(N, T)``, filled up with the id of [PAD]
    attention_mask: Tensor  # ``(N, T)``: True at tokens, False at padding


@dataclass(frozen=True)
class Classified:
    """What a classifier on fixed features found."""

    strength: float  # the C that cross-validation on the training part chose
    #: The accuracy with it on each fold of the training part, which was left out of
    #: fitting.
    folds: list[float]
    accuracy: float  # on the test part, which nothing was chosen by
    guesses: list[int]  # of the test part

    @property
    def cross_validated(self) -> Interval:
        """Mean over the folds and half of its 95% interval."""
        return mean_interval(self.folds)


def pad_ids(rows: Sequence[Sequence[int]], pad_id: int = 0) -> Padded:
    """Put sentences of different lengths into one matrix, and say where it is only
    filled up."""
    if not rows:
        raise ValueError("there is no sentence to pad; give at least one")
    width = max(map(len, rows))
    matrix = torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows])
    # From the lengths, not from `matrix != pad_id`: the same id may stand for a token
    # of the text.
    return Padded(
        matrix, torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]
    )


def read_features(
    model: BertModel,
    tokenizer: WordPiece | FastWordPiece,
    sentences: Sequence[str],
    way: Way = WAYS[0],
    batch_size: int = 64,
    max_length: int | None = None,
) -> np.ndarray:
    """Turn sentences into rows of numbers with a model that stays as it is."""
    if way.pool not in POOLINGS:
        raise ValueError(f"pool is {way.pool!r}; choose one of {', '.join(POOLINGS)}")
    longest = max_length or model.config.max_position_embeddings
    rows = [
        x.ids
        for x in tokenizer.encode_batch(sentences, padding=None, max_length=longest)
    ]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    features: dict[int, np.ndarray] = {}
    with looking(model) as where:
        for start in range(0, len(order), batch_size):
            indices = order[start : start + batch_size]
            padded = pad_ids(
                [rows[index] for index in indices], model.config.pad_token_id or 0
            )
            input_ids = padded.input_ids.to(where)
            mask = padded.attention_mask.to(where)
            layers = model(input_ids, mask, return_hidden_states=True).hidden_states
            pooled = pool(select_layers(layers, way.layers), mask, POOLINGS[way.pool])
            features |= zip(indices, pooled.float().cpu().numpy(), strict=True)
    return np.stack([features[index] for index in range(len(rows))])


def classify(
    train: np.ndarray | Sequence[str],
    train_labels: Sequence[int],
    test: np.ndarray | Sequence[str],
    test_labels: Sequence[int],
    strengths: Sequence[float] = STRENGTHS,
    folds: int = 5,
    seed: int = 0,
) -> Classified:
    """Fit a logistic regression on features, choose its C by cross-validation, and test
    it once."""
    counted = not isinstance(train, np.ndarray)
    first: BaseEstimator = CountVectorizer() if counted else StandardScaler()
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
    search = GridSearchCV(
        make_pipeline(first, LogisticRegression(max_iter=1000)),
        {"logisticregression__C": sorted(strengths)},
        cv=parts,
        refit=_smallest_within_one_error,
    )
    search.fit(train, train_labels)
    best = search.best_index_
    return Classified(
        strength=float(search.best_params_["logisticregression__C"]),
        folds=[
            float(search.cv_results_[f"split{fold}_test_score"][best])
            for fold in range(folds)
        ],
        accuracy=float(search.score(test, test_labels)),
        guesses=[int(guess) for guess in search.predict(test)],
    )


def _smallest_within_one_error(results: Mapping[str, np.ndarray]) -> int:
    """Which C of an ascending list to take, by scikit-learn's table of the folds."""
    means = results["mean_test_score"]
    folds = sum(name.startswith("split") for name in results)
    best = int(means.argmax())
    # its deviation divides by the folds, not by one less
    error = results["std_test_score"][best] / np.sqrt(folds - 1)
    return int(np.flatnonzero(means >= means[best] - error)[0])


def majority(train_labels: Sequence[int], test_labels: Sequence[int]) -> float:
    """Return the accuracy of always guessing the most frequent class of the training
    part."""
    nothing = np.zeros((len(train_labels), 1)), np.zeros((len(test_labels), 1))
    return float(
        DummyClassifier().fit(nothing[0], train_labels).score(nothing[1], test_labels)
    )


def compare_features(
    model: BertModel,
    tokenizer: WordPiece | FastWordPiece,
    train: tuple[Sequence[str], Sequence[int]],
    test: tuple[Sequence[str], Sequence[int]],
    ways: Sequence[Way] = WAYS,
    seed: int = 0,
) -> dict[str, Classified]:
    """Classify sentences by features of a model, and by those of its controls."""
    set_seed(seed)
    untrained = BertModel(model.config).to(next(model.parameters()).device)
    found = {}
    for name, encoder in (("", model), ("untrained, ", untrained)):
        for way in ways:
            rows = [
                read_features(encoder, tokenizer, sentences, way)
                for sentences, _ in (train, test)
            ]
            found[f"{name}{way.layers}, {way.pool}"] = classify(
                rows[0], train[1], rows[1], test[1], seed=seed
            )
    found["words"] = classify(
        *train, *test, strengths=[10 * c for c in STRENGTHS], seed=seed
    )
    return found


def whole_sentences(texts: Sequence[str], fewest: int = 5) -> list[int]:
    """Find the texts that are whole sentences, not phrases cut out of one: SST-2 has
    both to train on."""
    return [
        i
        for i, text in enumerate(texts)
        if text.rstrip().endswith((".", "!", "?")) and len(text.split()) >= fewest
    ]
