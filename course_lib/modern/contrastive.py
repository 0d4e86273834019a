"""Contrastive learning: where pairs and negatives come from, and SetFit.

Other letters: Q, queries; M, those that are kept; N, documents; K, negatives of one.
InfoNCE, the loss, is :func:`course_lib.sentence_bert.losses.in_batch_losses`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from course_lib.finetuning.finetune import FineTuningConfig
from course_lib.sentence_bert.losses import CosineObjective
from course_lib.sentence_bert.model import SentenceBert
from course_lib.sentence_bert.training import sentence_examples, train_sentences


def simcse_pairs(sentences: Sequence[str]) -> list[tuple[str, str]]:
    """Pair each sentence with itself: dropout, drawn anew for each reading, is all that
    the two vectors differ by (Gao et al. 2021, section 3). Duplicates are left out:
    they would be each other's negatives."""
    return [(sentence, sentence) for sentence in dict.fromkeys(sentences)]


class Negatives(NamedTuple):
    """Queries, and for each the documents that do not answer it, the best first."""

    queries: Int[Tensor, "M"]
    documents: Int[Tensor, "M K"]


def hard_negatives(
    scores: Float[Tensor, "Q N"],
    right: Int[Tensor, "Q"],
    count: int,
    ceiling: float = 0.95,
) -> Negatives:
    """Choose documents that a ranking holds for good, but not for so good that they may
    answer the query.

    Parameters
    ----------
    scores
        By any system: BM25 first, then the model that is trained.
    right
        The index of each query's own document.
    count
        Negatives for each query.
    ceiling
        The share of its own document's score above which a document counts as a false
        negative and is passed over.

    Returns
    -------
    Negatives
        Indices. A query with fewer documents below the ceiling is left out.

    Notes
    -----
    Karpukhin et al. 2020, section 3.2; ceiling: Moreira et al. 2024, section 3,
    "TopK-PercPos". A score below 0 is lowered by the same share of its size.

    Examples
    --------
    >>> scores = torch.tensor([[0.8, 0.79, 0.1, 0.7]])
    >>> hard_negatives(scores, torch.tensor([0]), count=2).documents
    tensor([[3, 2]])
    """
    own = scores.gather(1, right[:, None])  # (Q, 1)
    allowed = scores <= own - (1 - ceiling) * own.abs()  # scores may be below 0
    allowed = allowed.scatter(1, right[:, None], False)
    queries = (allowed.sum(dim=1) >= count).nonzero()[:, 0]
    ranked = scores.masked_fill(~allowed, -torch.inf)[queries]
    return Negatives(queries, ranked.topk(count, dim=1).indices)


def setfit(
    model: SentenceBert,
    texts: Sequence[str],
    labels: Sequence[int],
    pairs: int,
    config: FineTuningConfig | None = None,
    seed: int = 0,
) -> LogisticRegression:
    """Learn classes from a few texts each: train the encoder on pairs, half of them of
    one class, to have a cosine of 1 or 0; then fit a logistic regression to its vectors
    (Tunstall et al. 2022, section 3)."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.tensor(labels)
    if len(counts := classes.unique(return_counts=True)[1]) < 2 or counts.min() < 2:
        raise ValueError("give two classes or more, and two texts or more of each")
    first = torch.arange(pairs) % len(texts)
    wanted = torch.rand(pairs, generator=generator) < 0.5
    same = classes[first][:, None] == classes[None]  # (pairs, texts)
    same_but_itself = same & (first[:, None] != torch.arange(len(texts)))
    partners = torch.where(wanted[:, None], same_but_itself, ~same)
    second = partners.float().multinomial(1, generator=generator)[:, 0]
    rows = [(texts[i], texts[j]) for i, j in zip(first, second, strict=True)]
    examples = sentence_examples(rows, wanted.float().tolist(), model)
    train_sentences(model, CosineObjective(), examples, config=config)
    return LogisticRegression(max_iter=1000).fit(model.encode(texts).numpy(), labels)
