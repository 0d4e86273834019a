"""Few stories, for the probes of models that read them (chapters 6, 7 and 10)."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from course_lab.ch06_pretraining.pretrain_data import Corpus, documents
from course_lab.ch06_pretraining.pretraining_stories import SUBJECTS, Recipe
from course_lab.study import shortened
from course_lib.data import stories
from course_lib.pretraining.token_store import TokenStore
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
from course_lib.wordpiece.training import count_words

FEW_STORIES = 7  # less than a probe of pre-training reads: it begins a second epoch
NUMBER = 24  # questions of a kind, and places


@cache
def story_corpus(data: str = "stories", train: int = 600) -> Corpus:
    """Return few stories as a tokenised corpus, each word a token."""
    worlds = stories.WORLDS[data]
    numbers = {"train": train, "validation": 40, "test": 60}
    texts = {
        split: list(documents(stories.generate(split, number, 3, worlds)))
        for split, number in numbers.items()
    }
    told = [document for part in texts.values() for document in part]
    told += documents(stories.generate("train", 3000, 4))  # for rare words
    words = count_words(sentence for document in told for sentence in document)
    tokenizer = FastWordPiece([*SPECIAL_TOKENS, *sorted({*words, *SUBJECTS})])
    stores = {split: _store(part, tokenizer) for split, part in texts.items()}
    return Corpus(data, tokenizer, stores, {})


def _store(texts: Sequence[Sequence[str]], tokenizer: FastWordPiece) -> TokenStore:
    flat: list[str | tuple[str, str]] = [x for document in texts for x in document]
    encoded = tokenizer.encode_in_rust(flat, add_special_tokens=False)
    return TokenStore(
        Path("in memory"),
        np.array([index for sentence in encoded for index in sentence.ids]),
        np.cumsum([0, *(len(sentence.ids) for sentence in encoded)]),
        np.cumsum([0, *map(len, texts)]),
        len(tokenizer),
        {},
    )


def little(recipe: Recipe) -> Recipe:
    """Return a recipe that takes a second, and draws nothing by chance."""
    return shortened(
        recipe,
        steps=3,
        warmup=1,
        evaluate_every=None,
        precision="float32",
        progress=False,
        batch_size=8,
        dropout=0.0,
    )
