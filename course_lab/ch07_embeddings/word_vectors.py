"""Static vectors of a corpus: its words, and skip-gram trained on them (chapter 7)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from course_lib.data.sentences import split_sentences
from course_lib.embeddings.skip_gram import (
    SkipGram,
    SkipGramConfig,
    WordCorpus,
    skip_gram_loss_sum,
)
from course_lib.embeddings.static import StaticVectors
from course_lib.training.batches import set_seed
from course_lib.training.loop import History, TrainingConfig, adamw, train

WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")  # letters, and an apostrophe within


def words_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the words of each sentence, in small letters, without numbers and
    punctuation."""
    for row in rows:
        for paragraph in row["paragraphs"]:
            for sentence in split_sentences(paragraph):
                yield WORD.findall(sentence.lower())


def skip_gram(
    sentences: Iterable[Sequence[str]],
    config: SkipGramConfig,
    steps: int,
    learning_rate: float = 0.01,
) -> tuple[StaticVectors, History]:
    """Train static vectors."""
    corpus = WordCorpus(sentences, config)
    set_seed(config.seed)
    model = SkipGram(len(corpus), config.dim)
    history = History()
    if steps:
        training = TrainingConfig(
            steps,
            learning_rate,
            schedule="linear",
            weight_decay=0.0,
            clip_norm=None,
            seed=config.seed,
            progress=False,
        )
        history = train(
            model, corpus, skip_gram_loss_sum, training, make_optimizer=adamw
        )
    return (
        StaticVectors(corpus.words, model.centre.weight.detach().cpu().clone()),
        history,
    )


def token_vectors(vectors: StaticVectors, pieces: Sequence[str]) -> torch.Tensor:
    """Arrange vectors whose words are tokens by id; a token without a vector has
    zeros."""
    matrix = torch.zeros(len(pieces), vectors.matrix.shape[1])
    for index, piece in enumerate(pieces):
        if piece in vectors:
            matrix[index] = vectors[piece]
    return matrix
