"""What a missing word's surroundings tell: a causal encoder sees the left side, a
bidirectional one both (chapter 3).

One word of each English sentence is replaced by `MASK`, and an encoder with a
language-modelling head names it. With ``causal=True`` the position of the missing word
attends to the words before it and to itself; else to all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lab.ch01_seq2seq.text import PAD, UNK, Pair, pad
from course_lib.attention.masks import padding_mask
from course_lib.training.loop import (
    History,
    TrainingConfig,
    batches,
    device,
    set_seed,
    train,
)
from course_lib.transformer.heads import LanguageModelHead
from course_lib.transformer.model import TransformerConfig, TransformerEncoder

MASK = UNK
"""No sentence of the generated data holds an unknown word, so its id is free to mean
"missing"."""


class WordGuesser(nn.Module):
    """An encoder, causal or not, and a tied head that scores every word at the missing
    place."""

    def __init__(self, config: TransformerConfig, causal: bool):
        super().__init__()
        embedding = nn.Embedding(config.source_vocab, config.dim)
        nn.init.normal_(embedding.weight, std=config.dim**-0.5)
        self.encoder = TransformerEncoder(embedding, config)
        self.head = LanguageModelHead(embedding)
        self.causal = causal

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"],
        places: Int[Tensor, "B"],
    ) -> Float[Tensor, "B V"]:
        """Return the logits of the word at one place of each sentence."""
        # With `causal`, words after the place are hidden from it, and padding stands
        # after every word.
        mask = (
            None
            if self.causal
            else padding_mask(lengths, max_length=ids.shape[1])[:, None]
        )
        hidden = self.encoder(ids, mask, causal=self.causal)  # (B, T, D)
        return self.head(
            hidden[torch.arange(len(ids), device=ids.device), places]
        )  # (B, D) -> (B, V)


@dataclass
class Guesses:
    """A trained guesser and its figures on held-out sentences."""

    model: WordGuesser
    history: History
    perplexity: float
    accuracy: float


def train_guesser(
    config: TransformerConfig,
    pairs: dict[str, list[Pair]],
    causal: bool,
    training: TrainingConfig,
    batch_size: int = 64,
) -> Guesses:
    """Train on the training split's source sides, one missing word each, and measure on
    the test split."""
    set_seed(training.seed)
    model = WordGuesser(config, causal).to(device())

    def epoch_batches(epoch: int) -> Iterator[dict[str, Tensor]]:
        generator = torch.Generator().manual_seed(1000 * training.seed + epoch)
        for sources in batches(
            [pair.source for pair in pairs["train"]],
            batch_size,
            seed=training.seed,
            epoch=epoch,
            length=len,
        ):
            places = [
                int(torch.randint(len(source), (1,), generator=generator))
                for source in sources
            ]
            yield hide(sources, places)

    history = train(model, epoch_batches, _loss, training)
    perplexity, accuracy = evaluate(model, [pair.source for pair in pairs["test"]])
    return Guesses(model, history, perplexity, accuracy)


def hide(sources: Sequence[Sequence[int]], places: Sequence[int]) -> dict[str, Tensor]:
    """Make a batch in which the word at one place of each sentence is missing."""
    ids, at = pad(sources), torch.tensor(places)
    rows = torch.arange(len(ids))
    labels = ids[rows, at]
    ids = ids.index_put((rows, at), torch.tensor(MASK))
    return {
        "ids": ids,
        "lengths": (ids != PAD).sum(dim=1),
        "places": at,
        "labels": labels,
    }


@torch.no_grad()
def middle_word_losses(
    model: WordGuesser, sources: Sequence[Sequence[int]]
) -> Float[Tensor, "B"]:
    """Return the loss of the middle word of each sentence, in nats."""
    logits, labels = _middle_words(model, sources)
    return F.cross_entropy(logits, labels, reduction="none")


@torch.no_grad()
def evaluate(
    model: WordGuesser, sources: Sequence[Sequence[int]]
) -> tuple[float, float]:
    """Return perplexity and accuracy for the middle word of each sentence."""
    logits, labels = _middle_words(model, sources)
    loss = F.cross_entropy(logits, labels)
    return loss.exp().item(), (logits.argmax(dim=-1) == labels).float().mean().item()


def _middle_words(
    model: WordGuesser, sources: Sequence[Sequence[int]]
) -> tuple[Tensor, Tensor]:
    """Return the logits of the middle word of each sentence, and the words."""
    model.eval()
    batch = {
        name: t.to(device())
        for name, t in hide(sources, [len(source) // 2 for source in sources]).items()
    }
    return model(batch["ids"], batch["lengths"], batch["places"]), batch["labels"]


def frequency_baseline(
    pairs: dict[str, list[Pair]], vocab_size: int
) -> tuple[float, float]:
    """Return perplexity and accuracy of a guesser that knows how often each word
    occurs, and no context."""
    words = torch.tensor([word for pair in pairs["train"] for word in pair.source])
    counts = torch.bincount(words, minlength=vocab_size).double() + 1
    log_probs = (counts / counts.sum()).log()
    labels = torch.tensor(
        [pair.source[len(pair.source) // 2] for pair in pairs["test"]]
    )
    return (-log_probs[labels].mean()).exp().item(), (
        labels == counts.argmax()
    ).double().mean().item()


def _loss(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, int]:
    logits = model(batch["ids"], batch["lengths"], batch["places"])
    return F.cross_entropy(logits, batch["labels"], reduction="sum"), len(logits)
