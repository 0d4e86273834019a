"""Skip-gram with negative sampling: learn a vector of each word by guessing its
neighbours (Mikolov et al. 2013).

Other letters: B, pairs of a centre word and a neighbour; N, noise words for
each pair; T, places of a text; P, pairs of a text.

The model tells pairs of neighbours from pairs of a word and *noise*: words drawn by
frequency alone. So it needs no softmax over the vocabulary, which is why it is cheap.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Integer
from torch import Tensor, nn


def skip_gram_loss(
    centre: Float[Tensor, "B D"],
    context: Float[Tensor, "B D"],
    noise: Float[Tensor, "B N D"],
) -> Float[Tensor, "B"]:
    r"""Score pairs against noise (Mikolov et al. 2013b, equation 4, with the sign of a
    loss).

    .. math:: -\ln \sigma(u \cdot v) - \sum_n \ln \sigma(-u_n \cdot v)

    Parameters
    ----------
    centre
        v, the vectors of the centre words.
    context
        u, the output vectors of their neighbours.
    noise
        u_n, the output vectors of the noise words.

    Returns
    -------
    Tensor
        The loss of each pair, in nats.

    Examples
    --------
    >>> v = torch.tensor([[1.0, 2.0]])
    >>> u = torch.tensor([[0.5, 0.0]])
    >>> noise = torch.tensor([[[0.0, 1.0], [1.0, -1.0]]])
    >>> skip_gram_loss(v, u, noise)  # -ln σ(0.5) - ln σ(-2) - ln σ(1)
    tensor([2.9143])
    """
    true = (centre * context).sum(dim=-1)  # (B)
    false = (noise @ centre[:, :, None]).squeeze(-1)  # (B, N, D) @ (B, D, 1) -> (B, N)
    return -F.logsigmoid(true) - F.logsigmoid(-false).sum(dim=-1)


class SkipGramBatch(NamedTuple):
    """Pairs to learn from."""

    centre_ids: Int[Tensor, "B"]
    context_ids: Int[Tensor, "B"]
    noise_ids: Int[Tensor, "B N"]


class SkipGram(nn.Module):
    """Two tables: a vector of each word as a centre, which is kept, and one as a
    neighbour.

    Parameters
    ----------
    vocab_size
        Words V.
    dim
        Features D.

    Notes
    -----
    Mikolov et al. 2013a, section 3.2. The start is that of their code: small centres,
    neighbours all zero.

    Examples
    --------
    >>> model = SkipGram(vocab_size=9, dim=4)
    >>> ids = torch.tensor([2, 3])
    >>> # neighbours are 0: 4 ln 2 each
    >>> model(SkipGramBatch(ids, ids + 1, torch.tensor([[0, 1, 2], [5, 6, 7]])))
    tensor([2.7726, 2.7726], grad_fn=<SubBackward0>)
    """

    def __init__(self, vocab_size: int, dim: int):
        super().__init__()
        self.centre = nn.Embedding(vocab_size, dim)
        self.context = nn.Embedding(vocab_size, dim)
        nn.init.uniform_(self.centre.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, batch: SkipGramBatch) -> Float[Tensor, "B"]:
        """Return the loss of each pair."""
        return skip_gram_loss(
            self.centre(batch.centre_ids),
            self.context(batch.context_ids),
            self.context(batch.noise_ids),
        )


def skip_gram_loss_sum(
    model: nn.Module, batch: SkipGramBatch
) -> tuple[Float[Tensor, ""], int]:
    """Return the sum of the losses of a batch and its pairs, as
    `course_lib.training.loop.train` takes them."""
    return model(batch).sum(), len(batch.centre_ids)


@dataclass(frozen=True)
class SkipGramConfig:
    """How skip-gram learns; the defaults are near those of Mikolov et al. 2013b, for
    small corpora.

    Parameters
    ----------
    dim
        Features D of a vector.
    window
        Farthest neighbour, in words. Each centre draws its own reach from 1 to
        `window`, so that near words count more.
    noise
        Noise words N for each pair; 5 to 20 for small corpora (section 2.2).
    min_count
        Rarer words are left out of the text.
    subsample
        Words whose share of the text is above it are thinned out, see
        `keep_probability`; 1 keeps all.
    batch_size
        Pairs B in a batch.
    seed
        Of all that is drawn.

    Raises
    ------
    ValueError
        If a setting is out of range.

    Examples
    --------
    >>> SkipGramConfig(dim=50).window
    5
    """

    dim: int = 100
    window: int = 5
    noise: int = 5
    min_count: int = 5
    subsample: float = 1e-3
    batch_size: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("dim", "window", "noise", "min_count", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be at least 1"
                )
        if not 0 < self.subsample <= 1:
            raise ValueError(
                f"subsample is {self.subsample}; it is a share above 0, e.g. 0.001; 1"
                " keeps all"
            )


def keep_probability(
    counts: Integer[np.ndarray, "V"], subsample: float
) -> Float[np.ndarray, "V"]:
    r"""Say with which probability an occurrence of each word stays (Mikolov et al.
    2013b, equation 5)."""
    return np.minimum(1.0, np.sqrt(subsample * counts.sum() / np.maximum(counts, 1)))


def noise_distribution(
    counts: Integer[np.ndarray, "V"], power: float = 0.75
) -> Float[np.ndarray, "V"]:
    """Return the distribution that noise words are drawn from: counts to the power of
    3/4, normalised."""
    weights = counts.astype(np.float64) ** power
    return weights / weights.sum()


def skip_gram_pairs(
    sentence: Integer[np.ndarray, "T"], reach: Integer[np.ndarray, "T"], window: int
) -> Integer[np.ndarray, "P 2"]:
    """Pair each word with its neighbours within its reach and within its sentence."""
    found = []
    for distance in range(1, min(window, len(sentence) - 1) + 1):
        left = np.flatnonzero(sentence[:-distance] == sentence[distance:])
        right = left + distance
        found += [
            np.stack([a, b], axis=1)[reach[a] >= distance]
            for a, b in ((left, right), (right, left))
        ]
    return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)


class WordCorpus:
    """Sentences as the ids of their frequent words, from which the batches of an epoch
    are made."""

    def __init__(self, sentences: Iterable[Sequence[str]], config: SkipGramConfig):
        self.config = config
        vocab: dict[str, int] = {}
        ids, lengths = [], []
        for sentence in sentences:
            ids += [vocab.setdefault(word, len(vocab)) for word in sentence]
            lengths.append(len(sentence))
        counts = np.bincount(np.array(ids, dtype=np.int64), minlength=len(vocab))
        kept = np.flatnonzero(counts >= config.min_count)
        kept = kept[np.argsort(-counts[kept], kind="stable")]  # the most frequent first
        if len(kept) < 2:
            raise ValueError(
                f"{len(kept)} words occur min_count={config.min_count} times; take more"
                " text, or lower min_count"
            )
        known = list(vocab)
        self.words, self.counts = [known[index] for index in kept], counts[kept]
        renumbered = np.full(len(vocab), -1)
        renumbered[kept] = np.arange(len(kept))
        found = renumbered[ids]
        sentence_of = np.repeat(np.arange(len(lengths)), lengths)
        self.ids, self.sentence = found[found >= 0], sentence_of[found >= 0]

    def __len__(self) -> int:
        return len(self.words)

    def __call__(self, epoch: int) -> Iterator[SkipGramBatch]:
        """Yield the batches of an epoch, which depend on the seed and the epoch
        alone."""
        config, random = self.config, np.random.default_rng([self.config.seed, epoch])
        stays = (
            random.random(len(self.ids))
            < keep_probability(self.counts, config.subsample)[self.ids]
        )
        ids, sentence = self.ids[stays], self.sentence[stays]
        pairs = skip_gram_pairs(
            sentence, random.integers(1, config.window + 1, len(ids)), config.window
        )
        centres, contexts = ids[random.permutation(pairs)].T
        bounds = noise_distribution(self.counts).cumsum()
        for start in range(0, len(centres), config.batch_size):
            batch = slice(start, start + config.batch_size)
            draws = random.random((len(centres[batch]), config.noise)) * bounds[-1]
            noise = np.searchsorted(bounds, draws, side="right")
            yield SkipGramBatch(
                *map(torch.from_numpy, (centres[batch], contexts[batch], noise))
            )
