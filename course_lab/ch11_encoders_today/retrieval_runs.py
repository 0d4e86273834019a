"""Retrieval as it is done: BM25, a bi-encoder with mined negatives and with prefixes,
both fused, a sparse encoder, and a cross-encoder that re-ranks (`pydocs-pair`: find the
description that belongs to a summary).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lab import stand_ins
from course_lab.ch09_sentence_bert.bm25 import Bm25
from course_lab.ch09_sentence_bert.sentence_encoders import read_encoder
from course_lab.ch10_family.family_pairs import (
    LENGTH,
    Pairs,
    PairTexts,
    Texts,
    batches_of,
    padded,
    read_texts,
)
from course_lab.probing import start
from course_lab.study import Study, shortened
from course_lib.bert.files import load_bert
from course_lib.bert.model import BertForPreTraining
from course_lib.files import CHECKPOINTS
from course_lib.finetuning.examples import choice_examples, text_examples
from course_lib.finetuning.finetune import FineTuningConfig, finetune
from course_lib.finetuning.heads import MultipleChoiceClassifier, SequenceClassifier
from course_lib.finetuning.predict import predict
from course_lib.metrics.ranking import ndcg, recall_at, reciprocal_rank
from course_lib.modern.contrastive import hard_negatives
from course_lib.modern.retrieval import (
    flops_loss,
    reciprocal_rank_fusion,
    sparse_vectors,
)
from course_lib.sentence_bert.losses import (
    InBatchObjective,
    MatryoshkaObjective,
    Objective,
    in_batch_logits,
)
from course_lib.sentence_bert.model import SentenceBert, token_ids
from course_lib.sentence_bert.training import sentence_examples, train_sentences
from course_lib.training.batches import set_seed
from course_lib.training.loop import TrainingConfig, train
from course_lib.wordpiece.fast import FastWordPiece

Triple = tuple[str, str, str]  # query, its document, another document
Choice = tuple[str, list[str]]  # query, and the documents that are to be scored
WAYS = ("BM25", "vectors", "fused", "sparse", "re-ranked", "chosen", "both scores")
CHOICES = 8  # documents of which a cross-encoder learns to choose one
PREFIXES = ("query: ", "passage: ")


@dataclass(frozen=True)
class Retrieval:
    """One way to rank documents, and how what it needs is trained."""

    way: str  # of `WAYS`
    config: FineTuningConfig | None = None
    #: Where the negative of each pair comes from: "" for the batch alone, "BM25", or
    #: "own" for what the model finds after a training without.
    mined: str = ""
    ceiling: float = 0.95  # of `hard_negatives`
    sizes: tuple[int, ...] = ()  # Matryoshka's
    prefixes: bool = False
    sparsity: float = 0.003  # weight of the FLOPS loss
    reranked: int = 20  # documents that the cross-encoder reads

    def __post_init__(self) -> None:
        if self.way not in WAYS or self.mined not in ("", "BM25", "own"):
            raise ValueError(f"way is {self.way!r} and mined is {self.mined!r}")


class Inputs(NamedTuple):
    """Texts to train on and to search in, and the folder of the checkpoint."""

    train: PairTexts
    test: PairTexts
    folder: str


def by_words(texts: PairTexts) -> Tensor:
    """Score each document for each query by BM25."""
    return Bm25(texts.documents).scores(texts.queries)


def with_negatives(scores: Tensor, texts: PairTexts, ceiling: float) -> list[Triple]:
    """Put a negative to each pair that has one."""
    mined = hard_negatives(scores, torch.arange(len(scores)), 1, ceiling)
    return [
        (texts.queries[q], texts.documents[q], texts.documents[d])
        for q, d in zip(
            mined.queries.tolist(), mined.documents[:, 0].tolist(), strict=True
        )
    ]


def train_vectors(variant: Retrieval, inputs: Inputs, seed: int) -> SentenceBert:
    """Train a bi-encoder, twice if its negatives are its own."""
    texts = prefixed(variant, inputs.train)
    model = start(read_encoder(Path(inputs.folder), max_length=LENGTH))
    if variant.config is None:
        return model
    rows: Sequence[Sequence[str]] = list(zip(*texts, strict=True))
    if variant.mined == "own":
        model = train_vectors(replace(variant, mined=""), inputs, seed)
        scores = in_batch_logits(*encoded(model, texts), temperature=1.0)
        rows = with_negatives(scores, texts, variant.ceiling)
    elif variant.mined == "BM25":
        scores = by_words(texts)
        rows = with_negatives(scores, texts, variant.ceiling)
    objective: Objective = InBatchObjective()
    if variant.sizes:
        objective = MatryoshkaObjective(objective, variant.sizes)
    examples = sentence_examples(rows, None, model)
    train_sentences(
        model, objective, examples, config=replace(variant.config, seed=seed)
    )
    return model


def prefixed(variant: Retrieval, texts: PairTexts) -> PairTexts:
    """Say of each text whether it asks or answers, where the variant does."""
    marks = PREFIXES if variant.prefixes else ("", "")
    return PairTexts(
        *([m + x for x in part] for m, part in zip(marks, texts, strict=True))
    )


def encoded(model: SentenceBert, texts: PairTexts) -> tuple[Tensor, Tensor]:
    """Return the vectors of queries and documents."""
    return model.encode(texts.queries), model.encode(texts.documents)


def sparse_loss_sum(sparsity: float) -> Any:
    """Return the loss of a sparse encoder: find the document, with few weights."""

    def loss_sum(model: nn.Module, batch: tuple[Texts, Texts]) -> tuple[Tensor, int]:
        queries, documents = (weigh(model, part) for part in batch)
        own = torch.arange(len(queries), device=queries.device)
        found = F.cross_entropy(queries @ documents.T, own)
        costs = flops_loss(queries) + flops_loss(documents)
        return (found + sparsity * costs) * len(own), len(own)

    return loss_sum


def weigh(model: nn.Module, texts: Texts) -> Tensor:
    """Return a text's weight for each token of the vocabulary."""
    logits = model(texts.input_ids, texts.attention_mask).prediction_logits
    return sparse_vectors(logits, texts.attention_mask)


def sparse_scores(
    variant: Retrieval, inputs: Inputs, seed: int
) -> tuple[Tensor, dict[str, float]]:
    """Train a sparse encoder; return its scores and how many weights a text has."""
    tokenizer = FastWordPiece.load(inputs.folder)
    model = start(load_bert(inputs.folder, BertForPreTraining))
    train_ids, test_ids = (
        Pairs(*(token_ids(tokenizer, part, LENGTH) for part in texts))
        for texts in (inputs.train, inputs.test)
    )
    assert variant.config is not None
    config = TrainingConfig(
        steps=variant.config.steps or 1,
        learning_rate=variant.config.learning_rate,
        seed=seed,
        progress=False,
    )
    batches = batches_of(train_ids, variant.config.batch_size, seed)
    train(model, batches, sparse_loss_sum(variant.sparsity), config)
    model.to("cpu").eval()
    with torch.no_grad():
        queries, documents = (
            torch.cat(
                [weigh(model, padded(x[i : i + 32])) for i in range(0, len(x), 32)]
            )
            for x in test_ids
        )
    weights = {
        name: float((vectors > 0).sum(dim=1).float().mean())
        for name, vectors in (("of a query", queries), ("of a document", documents))
    }
    return queries @ documents.T, weights


def reranked_scores(variant: Retrieval, inputs: Inputs, seed: int) -> Tensor:
    """Let a cross-encoder, trained on mined negatives, order BM25's first documents
    anew: one that tells right pairs from wrong ones, or one that has learnt to choose.
    With "both scores" the order is that of its score and BM25's together."""
    words = by_words(inputs.test)
    first = words.topk(min(variant.reranked, words.shape[1]), dim=1)
    found = (judged if variant.way == "re-ranked" else chosen)(
        variant,
        inputs,
        [
            (inputs.test.queries[q], [inputs.test.documents[d] for d in row])
            for q, row in enumerate(first.indices.tolist())
        ],
        seed,
    )
    if variant.way == "both scores":
        found = standardized(found) + standardized(first.values)
    # above all documents that are not read
    above = float(words.max()) + 1 - float(found.min())
    return words.scatter(1, first.indices, found + above)


def standardized(scores: Tensor) -> Tensor:
    """Give each query's scores the mean 0 and the deviation 1, as units differ."""
    centred = scores - scores.mean(dim=1, keepdim=True)
    return centred / centred.std(dim=1, keepdim=True).clamp_min(1e-6)


def judged(
    variant: Retrieval, inputs: Inputs, asked: Sequence[Choice], seed: int
) -> Tensor:
    """Train on pairs, half of them wrong; return the probability that each is right."""
    tokenizer, texts = FastWordPiece.load(inputs.folder), inputs.train
    scores = by_words(texts)
    mined = with_negatives(scores, texts, variant.ceiling)
    pairs = [pair for q, right, wrong in mined for pair in ((q, right), (q, wrong))]
    assert variant.config is not None
    model = start(
        SequenceClassifier.from_pretrained(inputs.folder, labels=2, seed=seed)
    )
    examples = text_examples(pairs, [1, 0] * len(mined), tokenizer, 2 * LENGTH)
    finetune(model, examples, config=replace(variant.config, seed=seed))
    flat = [(query, document) for query, found in asked for document in found]
    guesses = predict(model, tokenizer, flat, max_length=2 * LENGTH)
    right = torch.tensor([float(guess.probabilities[1]) for guess in guesses])
    return right.view(len(asked), -1)


def chosen(
    variant: Retrieval, inputs: Inputs, asked: Sequence[Choice], seed: int
) -> Tensor:
    """Train to choose a query's document among mined ones, as the ending of a text is
    chosen in chapter 8; return the logarithms of the probabilities."""
    tokenizer, texts = FastWordPiece.load(inputs.folder), inputs.train
    scores = by_words(texts)
    own = torch.arange(len(scores))
    mined = hard_negatives(scores, own, CHOICES - 1, variant.ceiling)
    rows = torch.cat([mined.queries[:, None], mined.documents], dim=1).tolist()
    examples = choice_examples(
        [texts.queries[row[0]] for row in rows],
        [[texts.documents[d] for d in row] for row in rows],
        [0] * len(rows),
        tokenizer,
        2 * LENGTH,
    )
    assert variant.config is not None
    model = start(MultipleChoiceClassifier.from_pretrained(inputs.folder, seed=seed))
    finetune(model, examples, config=replace(variant.config, seed=seed))
    guesses = predict(model, tokenizer, asked, max_length=2 * LENGTH)
    likely = torch.tensor([guess.probabilities for guess in guesses])
    return likely.clamp_min(torch.finfo(likely.dtype).tiny).log()


def measured(scores: Tensor) -> dict[str, float]:
    """Score a ranking in which document i is the right one for query i."""
    own = torch.eye(len(scores), dtype=torch.bool)
    return {
        "recall_1": float(recall_at(scores, own, 1).mean()),
        "recall_10": float(recall_at(scores, own, 10).mean()),
        "mrr": float(reciprocal_rank(scores, own).mean()),
        "ndcg_10": float(ndcg(scores, own.float()).mean()),
    }


def run(study: Study, name: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Train what a variant needs, and measure its ranking."""
    variant = study.variants[name]
    set_seed(seed)
    if variant.way == "BM25":
        words = by_words(inputs.test)
        return {"scores": measured(words)}
    if variant.way == "sparse":
        scores, weights = sparse_scores(variant, inputs, seed)
        return {"scores": measured(scores), "weights": weights}
    if variant.way in ("re-ranked", "chosen", "both scores"):
        return {"scores": measured(reranked_scores(variant, inputs, seed))}
    model = train_vectors(variant, inputs, seed)
    queries, documents = encoded(model, prefixed(variant, inputs.test))
    by_size = {
        size: in_batch_logits(queries[:, :size], documents[:, :size], temperature=1.0)
        for size in (*study.shared["sizes"], queries.shape[1])
    }
    scores = by_size[queries.shape[1]]
    if variant.way == "fused":
        words = by_words(inputs.test)
        scores = reciprocal_rank_fusion([words, scores])
    shorter = {str(size): measured(found)["ndcg_10"] for size, found in by_size.items()}
    return {"scores": measured(scores), "ndcg_10 by size": shorter}


def read(study: Study, source: str | None, _: str | None) -> Inputs:
    """Read the pairs, and find the shipped checkpoint."""
    folder = str(CHECKPOINTS / study.shared["checkpoint"])
    return Inputs(read_texts("train", source), read_texts("test", source), folder)


def probe(study: Study, name: str) -> tuple[Study, Inputs]:
    """Shorten a study, with few pairs and a stand-in of the checkpoint."""
    short = {
        name: replace(
            shortened(x, steps=3, batch_size=8),
            sizes=(8, 32) if x.sizes else (),
            ceiling=1 - (1 - x.ceiling) / 50,  # vectors of the stand-in are alike
        )
        for name, x in study.variants.items()
    }
    shared = {**study.shared, "sizes": (8,)}
    tables, folder = stand_ins.folder_of_tables(), str(stand_ins.checkpoint())
    texts = read_texts("train", tables), read_texts("test", tables)
    read = Inputs(texts[0], texts[1], folder)
    return replace(study, variants=short, shared=shared), read


_CONFIG = FineTuningConfig(steps=150, learning_rate=5e-4, batch_size=32, progress=False)
_CHOOSING = replace(_CONFIG, batch_size=8)  # of 8 documents each
SIZES = (8, 16, 32, 64)
STUDY = Study(
    "encoders-pydocs-pair",
    {
        "BM25": Retrieval("BM25"),
        "vectors, as they are": Retrieval("vectors"),
        "vectors": Retrieval("vectors", _CONFIG),
        "vectors, twice as long": Retrieval("vectors", replace(_CONFIG, steps=300)),
        "vectors, prefixes": Retrieval("vectors", _CONFIG, prefixes=True),
        "vectors, BM25's negatives": Retrieval("vectors", _CONFIG, "BM25"),
        "vectors, own negatives": Retrieval("vectors", _CONFIG, "own"),
        "vectors, false negatives too": Retrieval("vectors", _CONFIG, "own", 1.0),
        "vectors, Matryoshka": Retrieval("vectors", _CONFIG, sizes=(*SIZES, 128)),
        "fused": Retrieval("fused", _CONFIG),
        "sparse": Retrieval("sparse", _CONFIG),
        "sparse, no FLOPS loss": Retrieval("sparse", _CONFIG, sparsity=0.0),
        "re-ranked": Retrieval("re-ranked", _CONFIG),
        "re-ranked by choice": Retrieval("chosen", _CHOOSING),
        "re-ranked by both": Retrieval("both scores", _CHOOSING),
    },
    read,
    run,
    probe,
    {"task": "pydocs-pair", "checkpoint": "tiny", "sizes": SIZES},
    ("pydocs-pair",),
)
