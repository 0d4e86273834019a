"""Chapter 9's live experiments: a siamese BERT for documentation, and search for a
description by its summary.

Q  queries     N  documents
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from sklearn.metrics import adjusted_rand_score
from torch import Tensor

from course_lab.ch06_pretraining.shipped import CHECKPOINTS
from course_lab.ch09_sentence_bert.sentence_encoders import Encode, read_encoder
from course_lib.data import load
from course_lib.finetuning.finetune import (
    FineTuningConfig,
    SequenceClassifier,
    finetune,
    predict,
    text_examples,
)
from course_lib.sentence_bert.losses import InBatchObjective
from course_lib.sentence_bert.model import SentenceBert
from course_lib.sentence_bert.search import cluster
from course_lib.sentence_bert.training import sentence_examples, train_sentences
from course_lib.wordpiece.fast import FastWordPiece

MAX_LENGTH = 96  # tokens: descriptions have 30 to 80 words
# The steps are few so that the page is quick. The rate was chosen by the reciprocal
# rank on the validation split's queries after 100 steps: 2e-4 and 5e-4 gave 35.0, the
# mean of three seeds; 1e-3 gave 33.8, of two.
SIAMESE = FineTuningConfig(steps=50, learning_rate=5e-4, batch_size=32, progress=False)
CROSS = FineTuningConfig(steps=50, learning_rate=5e-4, batch_size=32, progress=False)


class Search(NamedTuple):
    """Questions to a collection, each with one right answer."""

    queries: list[str]  # Q of them
    documents: list[str]  # N of them
    right: list[int]  # for each query the number of its document


def true_pairs(rows: Dataset) -> list[tuple[str, str]]:
    """Return the summaries and descriptions of `pydocs-pair` that belong together."""
    columns = zip(rows["sentence1"], rows["sentence2"], rows["label"], strict=True)
    return [(summary, description) for summary, description, label in columns if label]


def find_descriptions(more: Sequence[str] = ("validation",)) -> Search:
    """Make a search of `pydocs-pair`: find the description that belongs to a
    summary."""
    data = load("pydocs-pair", source="embedded")
    documents = list(
        dict.fromkeys(
            text for split in ("test", *more) for text in data[split]["sentence2"]
        )
    )
    place = {text: index for index, text in enumerate(documents)}
    pairs = true_pairs(data["test"])
    return Search(
        [summary for summary, _ in pairs], documents, [place[text] for _, text in pairs]
    )


def train_siamese(
    folder: Path = CHECKPOINTS / "tiny",
    seed: int = 0,
    config: FineTuningConfig = SIAMESE,
    most: int | None = None,
) -> SentenceBert:
    """Train a checkpoint on the true pairs of `pydocs-pair`, with the other
    descriptions of a batch as wrong answers."""
    model = read_encoder(folder, "mean", MAX_LENGTH)
    pairs = true_pairs(load("pydocs-pair", source="embedded")["train"])[:most]
    train_sentences(
        model,
        InBatchObjective(),
        sentence_examples(pairs, None, model),
        config=replace(config, seed=seed),
    )
    return model


def search_scores(encode: Encode, search: Search) -> Tensor:
    """Score each document for each query by the cosine of their vectors, ``(Q, N)``."""
    queries, documents = (
        F.normalize(encode(texts), dim=1)
        for texts in (search.queries, search.documents)
    )
    return queries @ documents.T  # (Q, D) @ (D, N) -> (Q, N)


def ranks(scores: Tensor, right: Sequence[int]) -> Tensor:
    """Return at which place the right document stands for each query, from 1; equal
    scores share their places."""
    own = scores.gather(1, torch.tensor(right, device=scores.device)[:, None])  # (Q, 1)
    above, equal = (scores > own).sum(dim=1), (scores == own).sum(dim=1)
    return 1 + above + (equal - 1) / 2


class Found(NamedTuple):
    """How well a search went."""

    mrr: float  # the mean of 1 / rank of the right document
    #: first, ten: The share of queries with it at the first place, and among the first
    #: ten.
    first: float
    ten: float


def measure(places: Tensor) -> Found:
    """Summarise ranks."""
    values = (
        (1 / places).mean(),
        (places <= 1).float().mean(),
        (places <= 10).float().mean(),
    )
    return Found(*(round(float(value), 4) for value in values))


# -- retrieve, then re-rank
# --------------------------------------------------------------------------------------


def train_cross_encoder(
    folder: Path = CHECKPOINTS / "tiny", seed: int = 0, config: FineTuningConfig = CROSS
) -> SequenceClassifier:
    """Fine-tune a checkpoint to say of a summary and a description, read together,
    whether they belong together."""
    rows = load("pydocs-pair", source="embedded")["train"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(left aside|new, to be trained)")
        model = SequenceClassifier.from_pretrained(
            folder, labels=tuple(rows.features["label"].names), seed=seed
        )
    pairs = list(zip(rows["sentence1"], rows["sentence2"], strict=True))
    examples = text_examples(
        pairs, rows["label"], FastWordPiece.load(folder), MAX_LENGTH
    )
    finetune(model, examples, config=replace(config, seed=seed))
    return model


def rerank(
    scores: Tensor,
    cross: SequenceClassifier,
    tokenizer: FastWordPiece,
    search: Search,
    most: int,
) -> Tensor:
    """Let a cross-encoder read each query with its best documents, and put these into
    its own order."""
    best = scores.topk(most, dim=1).indices  # (Q, most)
    pairs = [
        (q, search.documents[n])
        for q, row in zip(search.queries, best.tolist(), strict=True)
        for n in row
    ]
    said = [
        guess.probabilities[1]
        for guess in predict(cross, tokenizer, pairs, max_length=MAX_LENGTH)
    ]
    above = scores.amax(dim=1, keepdim=True) + 1
    return scores.scatter(1, best, above + torch.tensor(said).view(best.shape))


# -- 10,000 paragraphs
# --------------------------------------------------------------------------------------


class Paragraphs(NamedTuple):
    """Paragraphs of documentation."""

    texts: list[str]  # all different
    packages: list[str]  # the library that each documents


def draw_paragraphs(number: int = 10_000, seed: int = 0) -> Paragraphs:
    """Draw paragraphs of `pydocs` from all its splits."""
    found: dict[str, str] = {}
    for rows in load("pydocs", source="embedded").values():
        for package, paragraphs in zip(
            rows["package"], rows["paragraphs"], strict=True
        ):
            found |= dict.fromkeys(paragraphs, package)
    order = np.random.default_rng(seed).permutation(len(found))[:number]
    texts = list(found)
    return Paragraphs(
        [texts[index] for index in order], [found[texts[index]] for index in order]
    )


def holding(texts: Sequence[str], phrases: Iterable[str]) -> set[int]:
    """Return the numbers of the texts that hold one of some phrases."""
    said = "\n".join(texts)
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)])
    found = set()
    for phrase in phrases:
        place = said.find(phrase)
        while place >= 0:
            number = int(np.searchsorted(starts, place, side="right")) - 1
            found.add(number)
            place = said.find(phrase, int(starts[number + 1]))
    return found


def among_paragraphs(search: Search, paragraphs: Paragraphs) -> Search:
    """Hide the right descriptions of a search among paragraphs."""
    answers = list(dict.fromkeys(search.documents[index] for index in search.right))
    place = {text: index for index, text in enumerate(answers)}
    told = (*answers, *search.queries)
    known = holding(paragraphs.texts, told)
    others = [text for index, text in enumerate(paragraphs.texts) if index not in known]
    documents = [*answers, *others[: len(paragraphs.texts) - len(answers)]]
    return Search(
        search.queries,
        documents,
        [place[search.documents[index]] for index in search.right],
    )


def cluster_agreement(
    vectors: Tensor, packages: Sequence[str], clusters: int, seed: int = 0
) -> tuple[float, float]:
    """Cluster paragraphs by their vectors, and hold the clusters against the libraries
    that they document."""
    labels = cluster(vectors, clusters, seed).labels.numpy()
    shuffled = np.random.default_rng(seed).permutation(np.array(packages))
    return float(adjusted_rand_score(packages, labels)), float(
        adjusted_rand_score(shuffled, labels)
    )
