"""What attention looks at: its weights on the test split, and how well they agree with
gold alignments.

Chapter 1 asks it of the recurrent model's attention, chapter 3 of the Transformer's
cross-attention.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lab.ch01_seq2seq.scoring import sorted_chunks
from course_lab.ch01_seq2seq.seq2seq import Corpus
from course_lab.ch01_seq2seq.text import Pair, collate
from course_lib.attention.weights import watch_attention
from course_lib.metrics.scores import alignment_error_rate, alignment_from_weights
from course_lib.seq2seq.model import Seq2Seq
from course_lib.training.loop import device
from course_lib.transformer.model import Transformer

#: What a `Transformer` calls the attention of a target word to the source.
CROSS = ".cross_attention"


@torch.no_grad()
def attention_weights(model: Seq2Seq, pairs: Sequence[Pair]) -> list[Tensor]:
    """Return for each pair the weights with which its own target was written: target
    words (rows) by source words."""
    model.eval()
    found: dict[int, Tensor] = {}
    for places, chunk in sorted_chunks(pairs, 256):
        batch = {name: tensor.to(device()) for name, tensor in collate(chunk).items()}
        _, weights = model(
            batch["source_ids"],
            batch["source_lengths"],
            batch["target_ids"],
            return_weights=True,
        )
        if weights is None:
            raise ValueError(
                "this model has no attention, so there are no weights; build it with"
                " attention='dot'"
            )
        for place, pair, table in zip(places, chunk, weights, strict=True):
            found[place] = table[: len(pair.target), : len(pair.source)].cpu()
    return [found[place] for place in range(len(pairs))]


def alignment_scores(model: Seq2Seq, corpus: Corpus, seed: int) -> dict[str, float]:
    """Measure the alignment error rate on the test split, beside two controls that know
    less."""
    return scores_of(attention_weights(model, corpus.pairs["test"]), corpus, seed)


def scores_of(weights: Sequence[Tensor], corpus: Corpus, seed: int) -> dict[str, float]:
    """Return what `alignment_scores` returns, for one table of weights for each test
    sentence."""
    generator = torch.Generator().manual_seed(seed)
    gold = [{(s, t) for s, t in links} for links in corpus.text["test"]["alignment"]]
    shuffled = [
        table[:, torch.randperm(table.shape[1], generator=generator)]
        for table in weights
    ]
    return {
        "model": alignment_error_rate(
            [alignment_from_weights(table) for table in weights], gold
        ),
        "shuffled": alignment_error_rate(
            [alignment_from_weights(table) for table in shuffled], gold
        ),
        "diagonal": alignment_error_rate(
            [_diagonal(*table.shape) for table in weights], gold
        ),
    }


@torch.no_grad()
def cross_attention_weights(model: Transformer, pairs: Sequence[Pair]) -> list[Tensor]:
    """Return for each pair the weights of every layer and head: layers, heads, target
    words, source words."""
    model.eval()
    found: dict[int, Tensor] = {}
    for places, chunk in sorted_chunks(pairs, 128):
        batch = {name: tensor.to(device()) for name, tensor in collate(chunk).items()}
        with watch_attention(model) as calls:
            model(batch["source_ids"], batch["source_lengths"], batch["target_ids"])
        cross = [maps for name, (maps,) in calls.items() if name.endswith(CROSS)]
        weights = torch.stack(cross, dim=1)  # (B, H, T, S) -> (B, layers, H, T, S)
        for place, pair, table in zip(places, chunk, weights, strict=True):
            found[place] = table[:, :, : len(pair.target), : len(pair.source)].cpu()
    return [found[place] for place in range(len(pairs))]


def error_rate_of_heads(
    weights: Sequence[Tensor], alignments: Sequence[Sequence[Sequence[int]]]
) -> Tensor:
    """Return the alignment error rate of each layer's heads, and of their mean in the
    last column."""
    gold = [{(s, t) for s, t in links} for links in alignments]
    layers, heads = weights[0].shape[:2]
    tables = [
        torch.cat([table, table.mean(dim=1, keepdim=True)], dim=1) for table in weights
    ]
    rates = torch.empty(layers, heads + 1)
    for layer in range(layers):
        for head in range(heads + 1):
            links = [alignment_from_weights(table[layer, head]) for table in tables]
            rates[layer, head] = alignment_error_rate(links, gold)
    return rates


def _diagonal(target_length: int, source_length: int) -> set[tuple[int, int]]:
    return {(t * source_length // target_length, t) for t in range(target_length)}
