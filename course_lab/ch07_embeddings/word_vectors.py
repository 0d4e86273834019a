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
    punctuation.

    Parameters
    ----------
    rows
        With the column ``paragraphs``.

    Yields
    ------
    list of str
        The words of one sentence.

    Examples
    --------
    >>> list(words_of([{"paragraphs": ["It isn't O(n). See also: x1."]}]))
    [['it', "isn't", 'o', 'n'], ['see', 'also', 'x']]
    """
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
    """Train static vectors.

    Parameters
    ----------
    sentences
        Words.
    config
        How skip-gram learns.
    steps
        Updates, of `SkipGramConfig.batch_size` pairs each; 0 gives the vectors before
        training.
    learning_rate
        At the start; it falls to 0.

    Returns
    -------
    vectors : StaticVectors
        Of the words' vectors as centres; those as neighbours are dropped, as word2vec
        does.
    history : History
        Of the training; empty if there was none.
    """
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
    """Arrange vectors whose words are tokens by id; a token without a vector has zeros.

    Parameters
    ----------
    vectors
        Of tokens.
    pieces
        The vocabulary, in the order of its ids.

    Returns
    -------
    Tensor
        A row for each id.
    """
    matrix = torch.zeros(len(pieces), vectors.matrix.shape[1])
    for index, piece in enumerate(pieces):
        if piece in vectors:
            matrix[index] = vectors[piece]
    return matrix
