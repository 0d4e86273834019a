"""Two languages in one space: an encoder that finds a sentence's translation, in both
directions, on the course's English-French pairs and on those of Multi30k.

The vocabulary is of both. Controls: the same encoder trained on English alone, where a
sentence's pair is itself under other dropout, the one that is not trained, and BM25,
which finds the words that are the same in both languages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lab.ch09_sentence_bert.bm25 import Bm25
from course_lab.probing import start
from course_lab.study import Study, shortened
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertModel
from course_lib.data import load, translation
from course_lib.finetuning.finetune import FineTuningConfig
from course_lib.metrics.ranking import recall_at, reciprocal_rank
from course_lib.modern.contrastive import simcse_pairs
from course_lib.sentence_bert.losses import InBatchObjective, in_batch_logits
from course_lib.sentence_bert.model import SentenceBert
from course_lib.sentence_bert.training import sentence_examples, train_sentences
from course_lib.training.batches import set_seed
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.training import count_words, train_wordpiece

LENGTH, VOCABULARY = 64, 3000
WORDS = 16  # of an English sentence at most: longer ones take long
WAYS = ("both languages", "English alone", "untrained", "BM25")


@dataclass(frozen=True)
class Bilingual:
    """What an encoder is trained on, or what ranks without one."""

    way: str  # of `WAYS`
    config: FineTuningConfig = field(default_factory=FineTuningConfig)
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise ValueError(f"way is {self.way!r}; choose one of {', '.join(WAYS)}")


class Sentences(NamedTuple):
    """Pairs to train on and to search in, and the vocabulary of both languages."""

    train: list[tuple[str, str]]
    test: list[tuple[str, str]]
    tokenizer: FastWordPiece


def prepared(train: Sequence[Any], test: Sequence[Any]) -> Sentences:
    """Learn a vocabulary from both sides of the training pairs; of pairs with the same
    French sentence, one is kept."""
    learnt, asked = (
        list(
            {
                row["fr"]: (row["en"], row["fr"])
                for row in part
                if len(row["en"].split()) <= WORDS
            }.values()
        )
        for part in (train, test)
    )
    counts = count_words(chain.from_iterable(learnt))
    vocabulary = train_wordpiece(counts, VOCABULARY).vocab
    return Sentences(learnt, asked, FastWordPiece(vocabulary))


def read(study: Study, source: str | None, _: str | None) -> Sentences:
    """Read the pairs of a source."""
    splits = load(study.shared["task"], source)
    return prepared(*(list(splits[split]) for split in ("train", "test")))


def cosines(variant: Bilingual, seed: int, read: Sentences) -> Tensor:
    """Train an encoder; return how near each test sentence is to each of the other
    language, ``(English, French)``."""
    config = BertConfig.tiny(
        vocab_size=len(read.tokenizer),
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=variant.dropout,
        attention_probs_dropout_prob=0.0,
    )
    model = SentenceBert(start(BertModel(config)), read.tokenizer)
    if variant.way != "untrained":
        rows = read.train
        if variant.way == "English alone":
            rows = simcse_pairs([english for english, _ in rows])
        examples = sentence_examples(rows, None, model)
        objective = InBatchObjective(both_ways=True)
        settings = replace(variant.config, seed=seed)
        train_sentences(model, objective, examples, config=settings)
    english, french = (model.encode(side) for side in zip(*read.test, strict=True))
    return in_batch_logits(english, french, temperature=1.0)


def run(study: Study, name: str, seed: int, read: Sentences) -> dict[str, Any]:
    """Let each test sentence find its translation."""
    variant = study.variants[name]
    set_seed(seed)
    if variant.way == "BM25":
        english, french = zip(*read.test, strict=True)
        there, back = Bm25(french).scores(english), Bm25(english).scores(french)
    else:
        there = cosines(variant, seed, read)
        back = there.T
    own = torch.eye(len(there), dtype=torch.bool)
    return {
        "scores": {
            direction: {
                "recall_1": float(recall_at(scores, own, 1).mean()),
                "mrr": float(reciprocal_rank(scores, own).mean()),
            }
            for direction, scores in (("to French", there), ("to English", back))
        },
        "sentences": len(own),
    }


def probe(study: Study, name: str) -> tuple[Study, Sentences]:
    """Shorten a study, with few generated pairs for it."""
    made = translation.generate(160, seed=2, max_length=12)
    short = shortened(study.variants, steps=3, batch_size=8, dropout=0.0)
    return replace(study, variants=short), prepared(made[:120], made[120:])


#: By data set: generated sentences are found after as few as the chapter trains for.
STEPS = {"translation": 60, "multi30k": 400}
_CONFIG = FineTuningConfig(learning_rate=1e-3, batch_size=64, progress=False)
STUDIES = {
    task: Study(
        f"encoders-{task}",
        {way: Bilingual(way, replace(_CONFIG, steps=steps)) for way in WAYS},
        read,
        run,
        probe,
        {"task": task},
        (task,),
    )
    for task, steps in STEPS.items()
}
