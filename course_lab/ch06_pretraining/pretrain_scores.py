"""How well hidden tokens and next sentences are guessed, by a model or by a control, on
the same hidden tokens.

The masks are those of the paper's settings, drawn once and for all, whatever a model
was trained with.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lib.pretraining.batches import PreTrainingBatch, PreTrainingBatches
from course_lib.pretraining.masking import IGNORE, MaskingConfig
from course_lib.pretraining.token_store import TokenStore
from course_lib.training.batches import to_device

SEED = 20_181_011
SEQUENCES = 64  # of a batch
#: The same positions, with [MASK] at all of them: what a model reads there it has also
#: read in training, even one that was trained without the 80/10/10 rule.
ONLY_MASK = MaskingConfig(mask_share=1.0, random_share=0.0)


class Scores(NamedTuple):
    """How a model, or a control, guessed hidden tokens and next sentences."""

    #: token_right, token_loss: of each hidden token: whether the guess was right, and
    #: the surprise in nats, ``(N,)``.
    token_right: np.ndarray
    token_loss: np.ndarray
    #: pair_right, pair_loss: of each pair with a label; empty for a control that does
    #: not guess them.
    pair_right: np.ndarray
    pair_loss: np.ndarray
    #: token_document, pair_document: The document that each is from (the one of its
    #: sequence's first segment).
    token_document: np.ndarray
    pair_document: np.ndarray

    def figures(self) -> dict[str, float]:
        """Return the means by name: accuracies as shares, losses in nats."""
        means = {
            "mlm_accuracy": self.token_right.mean(),
            "mlm_loss": self.token_loss.mean(),
        }
        if len(self.pair_right):
            means |= {
                "nsp_accuracy": self.pair_right.mean(),
                "nsp_loss": self.pair_loss.mean(),
            }
        return {name: float(value) for name, value in means.items()}


Guess = Callable[[PreTrainingBatch], tuple[Tensor, Tensor | None]]
"""A batch -> log-probabilities of the tokens at its hidden positions (N, V), and of
both labels (B, 2) or None."""


def hidden_tokens(
    store: TokenStore,
    vocab: Mapping[str, int],
    max_length: int,
    masking: MaskingConfig | None = None,
) -> PreTrainingBatches:
    """Return the sequences that models are measured on: all of a split, with tokens
    hidden once and for all, as in the paper unless another way is given."""
    return PreTrainingBatches(
        store,
        vocab,
        max_length,
        SEQUENCES,
        seed=SEED,
        masking=masking or MaskingConfig(),
        drop_last=False,
    )


def score(guess: Guess, data: PreTrainingBatches, passes: int = 1) -> Scores:
    """Let something guess all hidden tokens and all labels."""
    found: list[tuple[np.ndarray, ...]] = []
    for number in range(passes):
        epoch = data(number)
        sentences = (
            np.searchsorted(
                data.corpus.sentence_starts, epoch.sequences.starts, side="right"
            )
            - 1
        )
        document = (
            np.searchsorted(data.corpus.document_starts, sentences, side="right") - 1
        )
        of_sequence = document[epoch.sequences.first_piece[:-1]]
        for batch, index in zip(epoch, epoch.order.flatten().tolist(), strict=True):
            owner = of_sequence[epoch.plan[index][1]]
            tokens, pairs = guess(batch)
            found.append(
                _scored(
                    batch,
                    tokens.float().cpu(),
                    None if pairs is None else pairs.float().cpu(),
                    owner,
                )
            )
    return Scores(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _scored(
    batch: PreTrainingBatch, tokens: Tensor, pairs: Tensor | None, owner: np.ndarray
) -> tuple[np.ndarray, ...]:
    labels, rows = batch.masked_labels, torch.arange(len(batch.masked_labels))
    from_row = batch.masked_positions.numpy() // batch.input_ids.shape[1]
    right, loss = tokens.argmax(dim=-1) == labels, -tokens[rows, labels]
    if pairs is None or batch.next_sentence_labels is None:
        none = np.zeros(0)
        return (
            right.numpy(),
            loss.numpy(),
            none.astype(bool),
            none,
            owner[from_row],
            none.astype(np.int64),
        )
    known = batch.next_sentence_labels != IGNORE
    truth, pairs = batch.next_sentence_labels[known], pairs[known]
    pair_right = pairs.argmax(dim=-1) == truth
    pair_loss = -pairs[torch.arange(len(truth)), truth]
    return (
        right.numpy(),
        loss.numpy(),
        pair_right.numpy(),
        pair_loss.numpy(),
        owner[from_row],
        owner[known.numpy()],
    )


def guess_with(model: nn.Module) -> Guess:
    """Return what guesses with a model, on its device, in evaluation mode and without
    gradients."""

    def guess(batch: PreTrainingBatch) -> tuple[Tensor, Tensor]:
        there = to_device(batch, next(model.parameters()).device)
        # Not through __call__: a compiled model would be compiled again for what
        # evaluation asks of it.
        output = model.forward(
            there.input_ids,
            there.attention_mask,
            there.token_type_ids,
            there.masked_positions,
        )
        return output.prediction_logits.float().log_softmax(
            -1
        ), output.seq_relationship_logits.float().log_softmax(-1)

    return guess


def evaluation(
    corpus: Corpus,
    split: str,
    max_length: int,
    passes: int = 1,
    masking: MaskingConfig | None = None,
) -> Callable[[nn.Module], Scores]:
    """Return what measures a model on a split: model -> its scores."""
    store, vocab = corpus.stores[split], corpus.tokenizer.vocab
    data = hidden_tokens(store, vocab, max_length, masking)

    def measure(model: nn.Module) -> Scores:
        training = model.training
        model.eval()
        try:
            with torch.no_grad():
                return score(guess_with(model), data, passes)
        finally:
            model.train(training)

    return measure


def share_with_interval(right: np.ndarray, document: np.ndarray) -> tuple[float, float]:
    """Return a share and half of its 95% interval; documents, not tokens, are what is
    drawn independently."""
    _, place = np.unique(document, return_inverse=True)
    hits, counts = np.bincount(place, right), np.bincount(place)
    share, clusters = hits.sum() / counts.sum(), len(counts)
    if clusters < 2:
        raise ValueError("an interval needs guesses from two documents or more")
    deviation = (
        math.sqrt(np.square(hits - share * counts).sum() * clusters / (clusters - 1))
        / counts.sum()
    )
    return float(share), 1.96 * deviation
