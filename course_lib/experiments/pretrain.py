"""A pre-training: what decides it (`Plan`), how it runs (`pretrain`), how its model is measured (`evaluate`).

``course pretrain`` runs a plan in a folder (`course_lib.experiments.pretrain_command`); a chapter runs one live.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.batching import set_seed, to_device
from course_lib.bert import BertConfig, BertForPreTraining
from course_lib.experiments.pretrain_data import Corpus
from course_lib.masked_language_model import IGNORE, MaskingConfig
from course_lib.parallel import copy_from_first
from course_lib.pretraining import PreTrainingBatch, PreTrainingBatches, pretraining_loss_sum
from course_lib.token_store import TokenStore
from course_lib.training import History, TrainingConfig, device, train

SIZES: Mapping[str, Callable[..., BertConfig]] = {
    name: getattr(BertConfig, name) for name in ("tiny", "mini", "small", "medium", "base", "large")
}
# Every model and control is measured on the same hidden tokens: those of the paper's settings, drawn with this seed.
EVALUATION_SEED = 20_181_011
EVALUATION_BATCH = 64


@dataclass(frozen=True)
class Plan:
    """Everything that decides a pre-training.

    Parameters
    ----------
    training
        Steps, learning rate and all that `course_lib.training.train` is told; its `accumulate` is the number of batches
        that a step is cut into.
    size
        "tiny", "mini", "small", "medium", "base" or "large": see `course_lib.bert.BertConfig`.
    data
        A corpus, as in `course_lib.experiments.pretrain_data.prepare`.
    vocab_size
        Tokens in the vocabulary, which is learnt from the train split.
    max_length
        Tokens of a sequence with its special ones.
    batch_size
        Sequences of full length that a step has room for, over all its batches and all processes.
    masking
        How tokens are hidden.
    next_sentence
        Whether sequences are sentence pairs and their labels are learnt.
    static_masking
        Whether every epoch hides the same tokens.
    dropout
        Of features and of attention weights.
    compile
        Whether the model is compiled (``torch.compile``).

    Raises
    ------
    ValueError
        If the size is not known, or the batches of a step do not share its sequences evenly.

    Examples
    --------
    >>> Plan(TrainingConfig(steps=100), size="tiny").config(vocab_size=2048).hidden_size
    128
    """

    training: TrainingConfig
    size: str = "mini"
    data: str = "pydocs"
    vocab_size: int = 8192
    max_length: int = 128
    batch_size: int = 128
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    next_sentence: bool = True
    static_masking: bool = False
    dropout: float = 0.1
    compile: bool = False

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise ValueError(f"size is {self.size!r}; choose one of {', '.join(SIZES)}")
        if self.batch_size < 1 or self.batch_size % self.training.accumulate:
            raise ValueError(
                f"a step of batch_size={self.batch_size} sequences cannot be cut into accumulate="
                f"{self.training.accumulate} equal batches; choose a multiple of it"
            )

    def config(self, vocab_size: int) -> BertConfig:
        """Return the settings of the model, for a vocabulary of this size."""
        return SIZES[self.size](
            vocab_size=vocab_size,
            max_position_embeddings=max(512, self.max_length),
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
        )

    def batches(self, corpus: Corpus) -> PreTrainingBatches:
        """Return what the model is trained on: epoch -> its batches."""
        return PreTrainingBatches(
            corpus.stores["train"],
            corpus.tokenizer.vocab,
            self.max_length,
            self.batch_size // self.training.accumulate,
            self.training.accumulate,
            self.training.seed,
            self.masking,
            self.next_sentence,
            self.static_masking,
        )

    def lasting(self, steps: int, decay_steps: int | None = None) -> "Plan":
        """Return the same plan for another number of steps."""
        decay = self.training.decay_steps if decay_steps is None else decay_steps
        return replace(self, training=replace(self.training, steps=steps, decay_steps=decay))


def plan_from(configuration: Mapping[str, Any]) -> Plan:
    """Load a plan back from JSON; where it lies on disk is no part of it.

    Parameters
    ----------
    configuration
        What ``dataclasses.asdict`` made of a plan.

    Returns
    -------
    Plan
        The plan.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> import dataclasses
    >>> plan = Plan(TrainingConfig(steps=7), masking=MaskingConfig(rate=0.4))
    >>> plan_from(dataclasses.asdict(plan)) == plan
    True
    """
    try:
        nested = {
            "training": TrainingConfig(**configuration["training"]),
            "masking": MaskingConfig(**configuration["masking"]),
        }
        return Plan(**{**configuration, **nested})
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is no plan of a pre-training ({error!r})") from error


def build(plan: Plan, corpus: Corpus) -> BertForPreTraining:
    """Build the model of a plan with its first weights, which the plan's seed determines.

    Parameters
    ----------
    plan, corpus
        The plan, and the corpus whose vocabulary the model has.

    Returns
    -------
    BertForPreTraining
        Untrained, on the CPU.
    """
    set_seed(plan.training.seed)
    return BertForPreTraining(plan.config(len(corpus.tokenizer)))


def pretrain(
    plan: Plan,
    corpus: Corpus,
    model: BertForPreTraining | None = None,
    evaluate_on: str | None = "validation",
    report: Callable[[History], None] | None = None,
) -> tuple[BertForPreTraining, History]:
    """Pre-train a model as planned; go on where `plan.training.checkpoint` left off, if it exists.

    Parameters
    ----------
    plan, corpus
        What is trained on what.
    model
        From `build`, if it is there already.
    evaluate_on
        The split that `plan.training.evaluate_every` looks at; None for none.
    report
        As in `course_lib.training.train`.

    Returns
    -------
    model : BertForPreTraining
        On the device that it was trained on.
    history : History
        Its metrics are those of `Scores.figures`.
    """
    model = model or build(plan, corpus)
    if plan.compile:
        model.compile()  # in place: the names of its weights stay
    watch = evaluation(corpus, evaluate_on, plan) if evaluate_on else None
    figures = None if watch is None else lambda model: watch(model).figures()
    history = train(model, plan.batches(corpus), pretraining_loss_sum, plan.training, figures, report=report)
    return model, history


def steps_for(plan: Plan, corpus: Corpus, model: BertForPreTraining, minutes: float, warm_up: int = 2) -> int:
    """Find how many steps of a plan take so many minutes, from the speed of the first; the model is left as it was.

    Parameters
    ----------
    plan, corpus, model
        What will be trained; not the checkpoint, which is neither read nor written.
    minutes
        Of steps: evaluation and saving come on top.
    warm_up
        Steps that do not count, since caches and compilers begin with them.

    Returns
    -------
    int
        The same number in all processes, at least 1.
    """
    if not (math.isfinite(minutes) and minutes > 0):
        raise ValueError(f"minutes is {minutes}; choose a positive number, e.g. 10")
    before = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    trial = replace(
        plan.training, schedule="constant", warmup_steps=0, decay_steps=0, evaluate_every=None, patience=None,
        checkpoint=None, checkpoint_every=None, progress=False, learning_rate=1e-9,
    )  # fmt: skip
    seconds: list[float] = []
    batches = plan.batches(corpus)
    # A twentieth of the time at most, and at least one step that counts.
    for steps in (warm_up, 1, 8):
        if len(seconds) <= warm_up or seconds[-1] * 8 < 0.05 * 60 * minutes:
            told = train(model, batches, pretraining_loss_sum, replace(trial, steps=steps)).seconds
            seconds += np.diff([0.0, *told]).tolist()
    model.load_state_dict(before)
    counted = torch.tensor([max(1.0, 60 * minutes / float(np.median(seconds[warm_up:])))], device=device())
    copy_from_first(counted)
    return int(counted.item())


class Scores(NamedTuple):
    """How a model, or a control, guessed hidden tokens and next sentences.

    Parameters
    ----------
    token_right, token_loss
        Of each hidden token: whether the guess was right, and the surprise in nats, ``(N,)``.
    pair_right, pair_loss
        Of each pair with a label; empty for a control that does not guess them.
    token_document, pair_document
        The document that each is from (the one of its sequence's first segment).
    """

    token_right: np.ndarray
    token_loss: np.ndarray
    pair_right: np.ndarray
    pair_loss: np.ndarray
    token_document: np.ndarray
    pair_document: np.ndarray

    def figures(self) -> dict[str, float]:
        """Return the means by name: accuracies as shares, losses in nats."""
        means = {"mlm_accuracy": self.token_right.mean(), "mlm_loss": self.token_loss.mean()}
        if len(self.pair_right):
            means |= {"nsp_accuracy": self.pair_right.mean(), "nsp_loss": self.pair_loss.mean()}
        return {name: float(value) for name, value in means.items()}


Guess = Callable[[PreTrainingBatch], tuple[Tensor, Tensor | None]]
"""A batch -> log-probabilities of the tokens at its hidden positions (N, V), and of both labels (B, 2) or None."""


def hidden_tokens(store: TokenStore, vocab: Mapping[str, int], max_length: int) -> PreTrainingBatches:
    """Return the sequences that models are measured on: all of a split, with tokens hidden once and for all.

    Parameters
    ----------
    store
        A split.
    vocab
        Token -> id.
    max_length
        Tokens of a sequence.

    Returns
    -------
    PreTrainingBatches
        Call it with 0; another number hides other tokens of other pairs.
    """
    return PreTrainingBatches(store, vocab, max_length, EVALUATION_BATCH, seed=EVALUATION_SEED, drop_last=False)


def score(guess: Guess, data: PreTrainingBatches, passes: int = 1) -> Scores:
    """Let something guess all hidden tokens and all labels.

    Parameters
    ----------
    guess
        A model (`guess_with`), or a control.
    data
        From `hidden_tokens`.
    passes
        How often the split is read, each time with other pairs and other hidden tokens.

    Returns
    -------
    Scores
        One entry for each hidden token and for each labelled pair.
    """
    found: list[tuple[np.ndarray, ...]] = []
    for number in range(passes):
        epoch = data(number)
        sentences = np.searchsorted(data.corpus.sentence_starts, epoch.sequences.starts, side="right") - 1
        document = np.searchsorted(data.corpus.document_starts, sentences, side="right") - 1
        of_sequence = document[epoch.sequences.first_piece[:-1]]
        for batch, index in zip(epoch, epoch.order.flatten().tolist(), strict=True):
            owner = of_sequence[epoch.plan[index][1]]
            tokens, pairs = guess(batch)
            found.append(_scored(batch, tokens.float().cpu(), None if pairs is None else pairs.float().cpu(), owner))
    return Scores(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _scored(batch: PreTrainingBatch, tokens: Tensor, pairs: Tensor | None, owner: np.ndarray) -> tuple[np.ndarray, ...]:
    labels, rows = batch.masked_labels, torch.arange(len(batch.masked_labels))
    from_row = batch.masked_positions.numpy() // batch.input_ids.shape[1]
    right, loss = tokens.argmax(dim=-1) == labels, -tokens[rows, labels]
    if pairs is None or batch.next_sentence_labels is None:
        none = np.zeros(0)
        return right.numpy(), loss.numpy(), none.astype(bool), none, owner[from_row], none.astype(np.int64)
    known = batch.next_sentence_labels != IGNORE
    truth, pairs = batch.next_sentence_labels[known], pairs[known]
    pair_right, pair_loss = pairs.argmax(dim=-1) == truth, -pairs[torch.arange(len(truth)), truth]
    return right.numpy(), loss.numpy(), pair_right.numpy(), pair_loss.numpy(), owner[from_row], owner[known.numpy()]


def guess_with(model: nn.Module) -> Guess:
    """Return what guesses with a model, on its device, in evaluation mode and without gradients.

    Parameters
    ----------
    model
        A `BertForPreTraining`.

    Returns
    -------
    Guess
        For `score`.
    """

    def guess(batch: PreTrainingBatch) -> tuple[Tensor, Tensor]:
        there = to_device(batch, next(model.parameters()).device)
        # Not through __call__: a compiled model would be compiled again for what evaluation asks of it.
        output = model.forward(there.input_ids, there.attention_mask, there.token_type_ids, there.masked_positions)
        return output.prediction_logits.float().log_softmax(-1), output.seq_relationship_logits.float().log_softmax(-1)

    return guess


def evaluation(corpus: Corpus, split: str, plan: Plan, passes: int = 1) -> Callable[[nn.Module], Scores]:
    """Return what measures a model on a split: model -> its scores.

    Parameters
    ----------
    corpus, split
        Where the text is from.
    plan
        For the length of a sequence.
    passes
        As in `score`.

    Returns
    -------
    Callable
        The masks are those of `hidden_tokens`, whatever the plan trains with.
    """
    data = hidden_tokens(corpus.stores[split], corpus.tokenizer.vocab, plan.max_length)

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
    """Return a share and half of its 95% interval; documents, not tokens, are what is drawn independently.

    Parameters
    ----------
    right
        Whether each guess was right.
    document
        The document that each is from.

    Returns
    -------
    share, half_width : float
        The ratio estimator's (Cochran 1977, section 6.4), with the normal quantile 1.96.
    """
    _, place = np.unique(document, return_inverse=True)
    hits, counts = np.bincount(place, right), np.bincount(place)
    share, clusters = hits.sum() / counts.sum(), len(counts)
    if clusters < 2:
        raise ValueError("an interval needs guesses from two documents or more")
    deviation = math.sqrt(np.square(hits - share * counts).sum() * clusters / (clusters - 1)) / counts.sum()
    return float(share), 1.96 * deviation


def with_paths(plan: Plan, checkpoint: Path | None, progress: bool | None = None) -> Plan:
    """Return the plan with what does not change its numbers: where it saves, and whether it shows a bar."""
    return replace(plan, training=replace(plan.training, checkpoint=checkpoint, progress=progress))


def tokens_of_steps(batches: PreTrainingBatches, steps: int) -> Iterable[np.ndarray]:
    """Yield, step by step, the lengths of the sequences that are trained on, without making the batches."""
    epoch = 0
    while steps > 0:
        made = batches(epoch)
        lengths = made.sequences.lengths
        for order in made.order[:steps].tolist():
            yield np.concatenate([lengths[made.plan[index][1]] for index in order])
        steps, epoch = steps - len(made.order), epoch + 1
