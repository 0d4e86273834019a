"""What is recorded of a trained translator besides its scores: chapter 1's alignments,
gradients and searches, and chapter 3's probe of a pronoun.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from course_lab.ch01_seq2seq import alignment, gradients
from course_lab.ch01_seq2seq.seq2seq import Corpus, Recipe, Trained, build
from course_lab.ch01_seq2seq.text import BOS, EOS, collate
from course_lib.metrics.scores import bleu
from course_lib.seq2seq.batched_search import beam_search_batch
from course_lib.seq2seq.model import Seq2Seq
from course_lib.seq2seq.search import Hypothesis, sample
from course_lib.training.loop import device

Measure: TypeAlias = Callable[[Trained, Recipe, Corpus], dict[str, Any]]
"""What is measured of a run once it is trained, ready for JSON."""

#: The searches that chapter 1 compares, each with its settings for `search`.
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "sampling, temperature 1": {"temperature": 1.0},
    "sampling, temperature 0.5": {"temperature": 0.5},
    "sampling, temperature 1, top 3": {"temperature": 1.0, "top_k": 3},
    "greedy (beam 1)": {"beam_size": 1},
    "beam 2": {"beam_size": 2},
    "beam 5": {"beam_size": 5},
    "beam 5, no length normalisation": {"beam_size": 5, "length_penalty": 0.0},
}


@torch.no_grad()
def search(
    model: Seq2Seq,
    corpus: Corpus,
    max_length: int,
    seed: int,
    sentences: int = 100,
    beam_size: int | None = None,
    length_penalty: float = 0.6,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> list[Hypothesis]:
    """Translate the first test sentences in one way."""
    model.eval()
    batch = collate(corpus.pairs["test"][:sentences])
    state = model.start(
        batch["source_ids"].to(device()), batch["source_lengths"].to(device())
    )
    size = len(batch["source_ids"])
    if beam_size:
        beams = beam_search_batch(
            model.step, state, size, BOS, EOS, max_length, beam_size, length_penalty
        )
        return [beam[0] for beam in beams]
    generator = torch.Generator(device()).manual_seed(seed)
    return sample(
        model.step, state, size, BOS, EOS, max_length, temperature, top_k, generator
    )


def _means(found: list[Hypothesis], corpus: Corpus) -> dict[str, float]:
    """Return the mean log-probability of a translation in nats, BLEU, and the mean
    length in words."""
    return {
        "log_prob": float(np.mean([hypothesis.log_prob for hypothesis in found])),
        "bleu": bleu(corpus.decode(found), corpus.text["test"]["fr"][: len(found)]),
        "length": float(np.mean([len(hypothesis.tokens) for hypothesis in found])),
    }


def of_translation(run: Trained, recipe: Recipe, corpus: Corpus) -> dict[str, Any]:
    """Measure chapter 1's model: where its gradient goes, and with attention where it
    looks and how it decodes."""
    model, edges = run.model, recipe.length_bins
    assert isinstance(model, Seq2Seq)
    found: dict[str, Any] = {
        "aligned_share": gradients.aligned_share(model, corpus, edges, run.seed)
    }
    if run.attention is None:
        return found
    untrained = build(recipe, corpus, run.attention, run.seed)
    assert isinstance(untrained, Seq2Seq)
    found["alignment"] = alignment.alignment_scores(model, corpus, run.seed)
    found["searches"] = {
        name: _means(
            search(model, corpus, recipe.max_length, run.seed, **settings), corpus
        )
        for name, settings in SEARCHES.items()
    }
    found["untrained"] = {
        "aligned_share": gradients.aligned_share(untrained, corpus, edges, run.seed),
        "alignment": alignment.alignment_scores(untrained, corpus, run.seed),
    }
    return found
