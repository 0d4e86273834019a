"""Pre-training: batches of hidden tokens and sentence pairs, and the loss that they are
learnt by.

Other letters: N, chosen positions of the whole batch.

The loss of a step is the mean over its chosen positions plus the mean over its sentence
pairs. A step may be cut into batches, and these be shared by processes; the mean of
their means is another number, since their counts differ. So the batches of one step are
made together, and each carries the weights that turn its sums into a share of the
step's loss.

What is drawn depends on (seed, epoch, batch) and on nothing that was drawn before: a
resumed run and a second process draw what one run in one go would have drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.pretraining.masking import IGNORE, MaskingConfig, VocabIds, mask_tokens
from course_lib.pretraining.next_sentence import sentence_pairs
from course_lib.pretraining.packing import Corpus, cut_long_sentences, pack
from course_lib.pretraining.sequences import Sequences, Specials, batch_plan, lay_out

# what a generator draws; each has a stream of its own
SEQUENCES, ORDER, MASKS = range(3)


class PreTrainingBatch(NamedTuple):
    """One batch."""

    input_ids: Int[Tensor, "B T"]
    token_type_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"] | None
    masked_positions: Int[Tensor, "N"]
    masked_labels: Int[Tensor, "N"]
    next_sentence_labels: Int[Tensor, "B"] | None
    mlm_weight: float
    nsp_weight: float


def pretraining_loss(
    prediction_logits: Float[Tensor, "*place V"],
    seq_relationship_logits: Float[Tensor, "B 2"],
    masked_labels: Int[Tensor, "*place"],
    next_sentence_labels: Int[Tensor, "B"] | None = None,
) -> Float[Tensor, ""]:
    """Mean cross-entropy at the chosen positions plus mean cross-entropy of the
    sentence pairs.

    Parameters
    ----------
    prediction_logits
        Of the tokens, at the chosen positions ``(N, V)`` or everywhere ``(B, T, V)``.
    seq_relationship_logits
        Of IsNext and NotNext.
    masked_labels
        The original ids; `IGNORE` where nothing is to be guessed.
    next_sentence_labels
        `IGNORE` where there is no second segment; None to leave this part out.

    Returns
    -------
    Tensor
        The loss in nats, a scalar. Without knowledge it is ln V + ln 2.

    Notes
    -----
    Devlin et al. 2019, appendix A.2: "the training loss is the sum of the mean masked
    LM likelihood and the mean next sentence prediction likelihood".

    Examples
    --------
    >>> loss = pretraining_loss(
    ...     torch.zeros(3, 50),
    ...     torch.zeros(2, 2),
    ...     torch.tensor([7, -100, 9]),
    ...     torch.tensor([0, 1]),
    ... )
    >>> torch.isclose(loss, torch.tensor(50.0).log() + torch.tensor(2.0).log())
    tensor(True)
    """
    loss = F.cross_entropy(
        prediction_logits.flatten(0, -2), masked_labels.flatten(), ignore_index=IGNORE
    )
    if next_sentence_labels is not None:
        loss = loss + F.cross_entropy(
            seq_relationship_logits, next_sentence_labels, ignore_index=IGNORE
        )
    return loss


def pretraining_loss_sum(
    model: nn.Module, batch: PreTrainingBatch
) -> tuple[Float[Tensor, ""], int]:
    """Return a batch's share of the step's loss for `course_lib.training.loop.train`: a
    sum, and the number of sequences."""
    output = model(
        batch.input_ids,
        batch.attention_mask,
        batch.token_type_ids,
        batch.masked_positions,
    )
    loss = batch.mlm_weight * F.cross_entropy(
        output.prediction_logits, batch.masked_labels, reduction="sum"
    )
    if batch.next_sentence_labels is not None:
        loss = loss + batch.nsp_weight * F.cross_entropy(
            output.seq_relationship_logits,
            batch.next_sentence_labels,
            ignore_index=IGNORE,
            reduction="sum",
        )
    return loss, len(batch.input_ids)


def collate(
    ids: np.ndarray,
    sequences: Sequences,
    rows: np.ndarray,
    width: int,
    specials: Specials,
    vocab: VocabIds,
    generator: torch.Generator,
    masking: MaskingConfig,
    next_sentence: bool = True,
) -> PreTrainingBatch:
    """Lay sequences out, hide tokens and gather what the model is asked."""
    laid = lay_out(ids, sequences, rows, width, specials)
    input_ids, labels = mask_tokens(
        torch.from_numpy(laid.input_ids),
        torch.from_numpy(laid.special_tokens_mask),
        generator,
        vocab,
        masking,
    )
    positions = torch.nonzero(labels.flatten() != IGNORE).flatten()
    padded = bool((laid.lengths < width).any())
    batch = PreTrainingBatch(
        input_ids,
        torch.from_numpy(laid.token_type_ids),
        torch.from_numpy(np.arange(width) < laid.lengths[:, None]) if padded else None,
        positions,
        labels.flatten()[positions],
        torch.from_numpy(sequences.labels[rows]) if next_sentence else None,
        mlm_weight=1.0,
        nsp_weight=1.0,
    )
    return _weighted([batch])[0]


def _weighted(step: list[PreTrainingBatch]) -> list[PreTrainingBatch]:
    """Give the batches of one step the weights of that step."""
    sequences = sum(len(batch.input_ids) for batch in step)
    chosen = sum(len(batch.masked_labels) for batch in step)
    pairs = sum(
        int((batch.next_sentence_labels != IGNORE).sum())
        for batch in step
        if batch.next_sentence_labels is not None
    )
    # A step without a chosen position, or without a pair, has no term to weigh.
    mlm_weight, nsp_weight = sequences / max(chosen, 1), sequences / max(pairs, 1)
    return [
        batch._replace(mlm_weight=mlm_weight, nsp_weight=nsp_weight) for batch in step
    ]


@dataclass(eq=False)
class EpochBatches(Sequence[PreTrainingBatch]):
    """The batches of one epoch; those of a step are made when one of them is asked."""

    data: "PreTrainingBatches"
    sequences: Sequences
    plan: list[tuple[int, np.ndarray]]
    order: np.ndarray
    mask_epoch: int
    _latest: tuple[int, list[PreTrainingBatch]] = field(
        default=(-1, []), init=False, repr=False
    )

    def __len__(self) -> int:
        return self.order.size

    @overload
    def __getitem__(self, index: int) -> PreTrainingBatch: ...

    @overload
    def __getitem__(self, index: slice) -> list[PreTrainingBatch]: ...

    def __getitem__(
        self, index: int | slice
    ) -> PreTrainingBatch | list[PreTrainingBatch]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        step, place = divmod(places, self.order.shape[1])
        if self._latest[0] != step:
            self._latest = step, self.step(step)
        return self._latest[1][place]

    def step(self, index: int) -> list[PreTrainingBatch]:
        """Make the batches of one step."""
        return _weighted([self._make(batch) for batch in self.order[index].tolist()])

    def _make(self, batch: int) -> PreTrainingBatch:
        data, (width, rows) = self.data, self.plan[batch]
        seed = np.random.SeedSequence(
            [data.seed, self.mask_epoch, MASKS, batch]
        ).generate_state(1, np.uint64)
        generator = torch.Generator().manual_seed(int(seed[0]))
        drawn = (
            data.specials,
            data.vocab_ids,
            generator,
            data.masking,
            data.next_sentence,
        )
        return collate(data.corpus.ids, self.sequences, rows, width, *drawn)


@dataclass(eq=False)
class PreTrainingBatches:
    """Epoch -> its batches, for `course_lib.training.loop.train`.

    Parameters
    ----------
    corpus
        A `course_lib.pretraining.token_store.TokenStore`, or anything with its three
        arrays.
    vocab
        Token -> id, of the tokenizer that made the ids.
    max_length
        Tokens of a sequence with [CLS] and each [SEP].
    batch_size
        Sequences of the full length that a batch has room for; of shorter ones it takes
        more.
    batches_per_step
        Batches that the optimizer makes one step of: `TrainingConfig.accumulate`.
    seed
        With the epoch it determines everything that is drawn.
    masking
        How tokens are hidden.
    next_sentence
        Whether sequences are sentence pairs; else each is filled with what fits.
    static_masking
        Whether each epoch has the sequences and masks of the first, in another order;
        else both are drawn anew.
    static_sequences
        Whether each epoch has the sequences of the first; a control, to tell the effect
        of masks from that of pairs.
    across_documents
        Without next sentences: whether a sequence may go on with the next document.
    multiple
        Widths are multiples of it. Fewer widths cost padding, and save compiling.
    drop_last
        Whether to leave out what does not fill a batch, another part in each epoch;
        False to evaluate on everything.
    preferred
        The tokens that are hidden at the full rate, and others rarely (`VocabIds`);
        none given: all at the full rate.

    Raises
    ------
    ValueError
        If a setting is out of range, the corpus is too small for one step, or the
        vocabulary lacks a special token.

    Notes
    -----
    Devlin et al. 2019, appendix A.2; dynamic masking: Liu et al. 2019, section 4.1.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> arrays = np.arange(5, 45), np.arange(0, 41, 5), np.arange(0, 9, 2)
    >>> corpus = SimpleNamespace(
    ...     **dict(zip(["ids", "sentence_starts", "document_starts"], arrays))
    ... )
    >>> vocab = {
    ...     token: index
    ...     for index, token in enumerate([*SPECIAL_TOKENS, *map(str, range(5, 45))])
    ... }
    >>> data = PreTrainingBatches(corpus, vocab, max_length=13, batch_size=2)
    >>> (
    ...     [tuple(batch.input_ids.shape) for batch in data(epoch=0)],
    ...     data(0)[1].next_sentence_labels is not None,
    ... )
    ([(2, 16), (2, 16)], True)
    """

    corpus: Corpus
    vocab: Mapping[str, int]
    max_length: int = 128
    batch_size: int = 32
    batches_per_step: int = 1
    seed: int = 0
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    next_sentence: bool = True
    static_masking: bool = False
    static_sequences: bool = False
    across_documents: bool = True
    multiple: int = 8
    drop_last: bool = True
    preferred: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (
            ("max_length", 5 if self.next_sentence else 3),
            ("batch_size", 1),
            ("batches_per_step", 1),
            ("multiple", 1),
        ):
            if getattr(self, name) < least:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be at least {least}"
                )
        if not self.drop_last and self.batches_per_step > 1:
            raise ValueError(
                "drop_last=False keeps batches that fill no step; set"
                " batches_per_step=1 to evaluate"
            )
        self.vocab_ids = VocabIds.of(self.vocab, self.preferred)
        self.specials = Specials.of(self.vocab)
        longest = (
            (self.max_length - 3) // 2 if self.next_sentence else self.max_length - 2
        )
        bounds = (
            np.asarray(self.corpus.sentence_starts),
            np.asarray(self.corpus.document_starts),
        )
        self._bounds = cut_long_sentences(*bounds, longest)

    def __call__(self, epoch: int) -> EpochBatches:
        """Return the batches of an epoch; what does not fill a step is left out,
        another part in each epoch."""
        drawn_in = 0 if self.static_sequences or self.static_masking else epoch
        random = np.random.default_rng([self.seed, drawn_in, SEQUENCES])
        sequences = self._sequences(random)
        width = -(-self.max_length // self.multiple) * self.multiple
        plan = batch_plan(
            sequences.lengths,
            self.batch_size * width,
            self.multiple,
            random,
            self.drop_last,
        )
        order = np.random.default_rng([self.seed, epoch, ORDER]).permutation(len(plan))
        steps = len(plan) // self.batches_per_step
        if steps == 0:
            raise ValueError(
                f"the corpus makes {len(plan)} batches of {self.batch_size} sequences,"
                f" but a step takes {self.batches_per_step}; take a smaller batch_size"
                " or a larger corpus"
            )
        order = order[: steps * self.batches_per_step].reshape(steps, -1)
        return EpochBatches(
            self, sequences, plan, order, 0 if self.static_masking else epoch
        )

    def _sequences(self, random: np.random.Generator) -> Sequences:
        if self.next_sentence:
            return sentence_pairs(
                self.corpus.ids, *self._bounds, self.max_length, random
            )
        return pack(
            *self._bounds, self.max_length, random, IGNORE, self.across_documents
        )
