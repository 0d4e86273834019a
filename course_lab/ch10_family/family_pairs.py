"""ColBERT's late interaction beside one vector a text: find the description that
belongs to a summary (`pydocs-pair`).

Both read each text on its own, start with the same shipped checkpoint and are trained
on the same pairs, in the same order, for as many steps. Controls are the checkpoint as
it is, and BM25, which counts words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lab import stand_ins
from course_lab.ch06_pretraining.shipped import load_shipped
from course_lab.ch09_sentence_bert.bm25 import Bm25
from course_lab.study import Study, shortened
from course_lib.data import load
from course_lib.family.colbert import LateInteraction, maxsim
from course_lib.finetuning.examples import Example, collate
from course_lib.sentence_bert.losses import in_batch_logits
from course_lib.sentence_bert.model import SentenceBert, token_ids
from course_lib.training.batches import set_seed
from course_lib.training.loop import TrainingConfig, train
from course_lib.wordpiece.fast import FastWordPiece

KINDS = ("single vector", "late interaction")
LENGTH = 96  # tokens of a text
TEMPERATURE = 0.05
Ids = list[list[int]]


class Texts(NamedTuple):
    """A batch of texts: ids ``(B, T)``, and True at tokens or None."""

    input_ids: Tensor
    attention_mask: Tensor | None


class Pairs(NamedTuple):
    """Summaries and, in the same order, their descriptions, as ids."""

    queries: Ids
    documents: Ids


class PairTexts(NamedTuple):
    """Summaries and, in the same order, their descriptions."""

    queries: list[str]
    documents: list[str]


@dataclass(frozen=True)
class PairVariant:
    """One way to compare, trained or not."""

    kind: str  # one of `KINDS`, or "BM25"
    training: TrainingConfig | None = None  # None for the checkpoint as it is


_TRAINING = TrainingConfig(
    steps=60, learning_rate=5e-4, warmup_steps=6, schedule="linear", progress=False
)


def read_pairs(
    split: str, tokenizer: FastWordPiece, source: str | None = None
) -> Pairs:
    """Return the summaries of a split and their descriptions, as ids."""
    texts = read_texts(split, source)
    return Pairs(*(token_ids(tokenizer, part, LENGTH) for part in texts))


def read_texts(split: str, source: str | None = None) -> PairTexts:
    """Return the summaries of a split that have their description beside them."""
    rows = load("pydocs-pair", source)[split]
    kept = [index for index, label in enumerate(rows["label"][:]) if label == 1]
    chosen = rows.select(kept)
    return PairTexts(chosen["sentence1"][:], chosen["sentence2"][:])


def padded(texts: Sequence[Sequence[int]]) -> Texts:
    """Make a batch."""
    batch = collate([Example([(list(ids), [0] * len(ids))]) for ids in texts], 0)
    return Texts(
        batch.input_ids,
        None if batch.attention_mask is None else batch.attention_mask.bool(),
    )


def build(kind: str, checkpoint: str, seed: int) -> tuple[nn.Module, FastWordPiece]:
    """Put a shipped checkpoint under one of the two ways to compare; a matrix that is
    new starts as the identity."""
    set_seed(seed)
    model, tokenizer = load_shipped(checkpoint)
    if kind == "single vector":
        return SentenceBert(model.bert, tokenizer, normalize=True), tokenizer
    late = LateInteraction(model.bert, model.config.hidden_size)
    nn.init.eye_(late.shorten.weight)
    return late, tokenizer


def compare(model: nn.Module, queries: Texts, documents: Texts) -> Tensor:
    """Score each query with each document: a cosine, or for late interaction the mean
    of a query's best cosines."""
    if isinstance(model, SentenceBert):
        return in_batch_logits(model(*queries), model(*documents), temperature=1.0)
    scores = maxsim(
        model(*queries),
        model(*documents),
        queries.attention_mask,
        documents.attention_mask,
    )
    mask = queries.attention_mask
    tokens = (
        queries.input_ids.shape[1] if mask is None else mask.sum(dim=1, keepdim=True)
    )
    return scores / tokens


def batches_of(
    pairs: Pairs, size: int, seed: int
) -> Callable[[int], list[tuple[Texts, Texts]]]:
    """Epoch -> its batches, in an order of its own; what does not fill a batch is left
    out."""

    def epoch_of(epoch: int) -> list[tuple[Texts, Texts]]:
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(len(pairs.queries), generator=generator).tolist()
        cuts = [
            order[start : start + size]
            for start in range(0, len(order) - size + 1, size)
        ]
        return [
            (
                padded([pairs.queries[i] for i in c]),
                padded([pairs.documents[i] for i in c]),
            )
            for c in cuts
        ]

    return epoch_of


def pair_loss_sum(model: nn.Module, batch: tuple[Texts, Texts]) -> tuple[Tensor, int]:
    """Let each summary find its description among those of the batch."""
    logits = compare(model, *batch) / TEMPERATURE
    own = torch.arange(len(logits), device=logits.device)
    return F.cross_entropy(logits, own, reduction="sum"), len(logits)


@torch.no_grad()
def ranks(model: nn.Module, pairs: Pairs, block: int = 64) -> Tensor:
    """Return the place of each summary's own description among all (`places`)."""
    parts = range(0, len(pairs.queries), block)
    blocks = [padded(pairs.documents[start : start + block]) for start in parts]
    rows = []
    for start in parts:
        queries = padded(pairs.queries[start : start + block])
        rows.append(
            torch.cat(
                [compare(model, queries, documents) for documents in blocks], dim=1
            )
        )
    return places(torch.cat(rows))


def places(scores: Tensor) -> Tensor:
    """Return the place of each summary's own description, which has its index, 1 being
    the best; ties count against it."""
    return (scores >= scores.diagonal()[:, None]).sum(dim=1)


def retrieval_scores(found: Tensor) -> dict[str, float]:
    """Return the mean reciprocal rank and the shares of right answers among the first 1
    and 10."""
    return {
        "mrr": float((1 / found).mean()),
        "recall_1": float((found <= 1).float().mean()),
        "recall_10": float((found <= 10).float().mean()),
    }


def run(study: Study, name: str, seed: int, source: str | None) -> dict[str, Any]:
    """Train, if it is to be trained, and measure one variant."""
    variant = study.variants[name]
    if variant.kind == "BM25":
        return count_words(source)
    model, tokenizer = build(variant.kind, study.shared["checkpoint"], seed)
    seconds = 0.0
    if variant.training is not None:
        pairs = read_pairs("train", tokenizer, source)
        batches = batches_of(pairs, study.shared["batch_size"], seed)
        config = replace(variant.training, seed=seed)
        seconds = train(model, batches, pair_loss_sum, config).seconds[-1]
    test = read_pairs("test", tokenizer, source)
    late = variant.kind == "late interaction"
    return {
        "scores": retrieval_scores(ranks(model.to("cpu").eval(), test)),
        "documents": len(test.documents),
        "vectors": sum(map(len, test.documents)) if late else len(test.documents),
        "steps": 0 if variant.training is None else variant.training.steps,
        "seconds": seconds,
    }


def count_words(source: str | None) -> dict[str, Any]:
    """Measure BM25, which learns nothing and keeps no vector."""
    texts = read_texts("test", source)
    scores = Bm25(texts.documents).scores(texts.queries)
    return {
        "scores": retrieval_scores(places(scores)),
        "documents": len(texts.documents),
        "vectors": 0,
        "steps": 0,
        "seconds": 0.0,
    }


def probe(study: Study, name: str) -> tuple[Study, str]:
    """Shorten a study, with few pairs for it."""
    short = shortened(study.variants, steps=3, warmup=0)
    shared = {**study.shared, "batch_size": 8}
    return replace(study, variants=short, shared=shared), stand_ins.folder_of_tables()


STUDY = Study(
    "family-pydocs-pair",
    {
        "single vector, as it is": PairVariant("single vector"),
        "late interaction, as it is": PairVariant("late interaction"),
        "single vector": PairVariant("single vector", _TRAINING),
        "late interaction": PairVariant("late interaction", _TRAINING),
        "BM25": PairVariant("BM25"),
    },
    lambda _, source, __: source,
    run,
    probe,
    {"checkpoint": "tiny", "batch_size": 32, "task": "pydocs-pair"},
    ("pydocs-pair",),
)
