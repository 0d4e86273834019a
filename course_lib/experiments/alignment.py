"""What attention looks at: its weights on the test split, and how well they agree with gold alignments (chapter 1)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.experiments.scoring import sorted_chunks
from course_lib.experiments.seq2seq import Corpus
from course_lib.experiments.text import Pair, collate
from course_lib.metrics import alignment_error_rate, alignment_from_weights
from course_lib.seq2seq import Seq2Seq
from course_lib.training import device


@torch.no_grad()
def attention_weights(model: Seq2Seq, pairs: Sequence[Pair]) -> list[Tensor]:
    """Return for each pair the weights with which its own target was written: target words (rows) by source words.

    The target is given (teacher forcing), so that its words are those of the gold alignment; the row of `<eos>` is left
    out.
    """
    model.eval()
    found: dict[int, Tensor] = {}
    for places, chunk in sorted_chunks(pairs, 256):
        batch = {name: tensor.to(device()) for name, tensor in collate(chunk).items()}
        _, weights = model(batch["source_ids"], batch["source_lengths"], batch["target_ids"], return_weights=True)
        if weights is None:
            raise ValueError("this model has no attention, so there are no weights; build it with attention='dot'")
        for place, pair, table in zip(places, chunk, weights, strict=True):
            found[place] = table[: len(pair.target), : len(pair.source)].cpu()
    return [found[place] for place in range(len(pairs))]


def alignment_scores(model: Seq2Seq, corpus: Corpus, seed: int) -> dict[str, float]:
    """Measure the alignment error rate on the test split, beside two controls that know less.

    Parameters
    ----------
    model
        A model with attention.
    corpus
        The test split needs gold alignments.
    seed
        Of the shuffling.

    Returns
    -------
    dict of str to float
        ``model``: of the model's weights. ``shuffled``: of the same weights with the source words of each sentence
        permuted, which are as sharp and know nothing of position. ``diagonal``: of no model at all, each target word
        linked to the source word at the same relative position.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = attention_weights(model, corpus.pairs["test"])
    gold = [{(s, t) for s, t in links} for links in corpus.text["test"]["alignment"]]
    shuffled = [table[:, torch.randperm(table.shape[1], generator=generator)] for table in weights]
    return {
        "model": alignment_error_rate([alignment_from_weights(table) for table in weights], gold),
        "shuffled": alignment_error_rate([alignment_from_weights(table) for table in shuffled], gold),
        "diagonal": alignment_error_rate([_diagonal(*table.shape) for table in weights], gold),
    }


def _diagonal(target_length: int, source_length: int) -> set[tuple[int, int]]:
    return {(t * source_length // target_length, t) for t in range(target_length)}
