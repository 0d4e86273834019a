"""A pre-training: what decides it (`Plan`), and how it runs (`pretrain`).

``course pretrain`` runs a plan in a folder (`course_tools.pretrain_command`);
a chapter runs one live.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretrain_scores import evaluation
from course_lab.probing import start
from course_lib.bert.layers import initialise
from course_lib.bert.model import BertConfig, BertForPreTraining
from course_lib.family.albert import AlbertForPreTraining
from course_lib.family.distilbert import DistilBertForMaskedLM
from course_lib.pretraining.batches import (
    PreTrainingBatch,
    PreTrainingBatches,
    pretraining_loss_sum,
)
from course_lib.pretraining.masking import MaskingConfig, VocabIds
from course_lib.training.batches import set_seed
from course_lib.training.config import read_settings
from course_lib.training.cpu import keep_freed_memory, speed_up
from course_lib.training.loop import History, TrainingConfig, adamw, device, train
from course_lib.training.muon import muon
from course_lib.training.parallel import copy_from_first
from course_lib.transformer.positions import sinusoidal_positions

SIZES: Mapping[str, Callable[..., BertConfig]] = {
    name: getattr(BertConfig, name)
    for name in ("tiny", "mini", "small", "medium", "base", "large")
}
# Liu et al. 2019, section 3.1: with Adam's usual 0.999 the loss leaps where, after the
# plateau at which a model knows only frequencies, gradients suddenly grow.
ADAMW = partial(adamw, betas=(0.9, 0.98), eps=1e-6)


@dataclass(frozen=True)
class Plan:
    """Everything that decides a pre-training."""

    #: Steps, learning rate and all that `course_lib.training.loop.train` is told; its
    #: `accumulate` is the number of parts that a step is made of.
    training: TrainingConfig
    #: "tiny", "mini", "small", "medium", "base" or "large": see
    #: `course_lib.bert.model.BertConfig`.
    size: str = "mini"
    #: A corpus, as in `course_lab.ch06_pretraining.pretrain_data.prepare`.
    data: str = "pydocs"
    #: Tokens in the vocabulary, which is learnt from the train split.
    vocab_size: int = 8192
    max_length: int = 128  # tokens of a sequence with its special ones
    #: Sequences of full length that a step has room for, over all its parts and all
    #: processes.
    batch_size: int = 128
    #: Parts that each batch is cut into, so that processes can share a step of few
    #: batches: the sequences of the step and their masks stay, while sequences in one
    #: batch are of similar length, those of several are not.
    split: int = 1
    #: How tokens are hidden.
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    #: Whether sequences are sentence pairs and their labels are learnt.
    next_sentence: bool = True
    static_masking: bool = False  # whether every epoch hides the same tokens
    dropout: float = 0.1  # of features and of attention weights
    #: The first weights: "published" (0.02 at every width, positions drawn) or "scaled"
    #: (`scaled_start`).
    start: str = "published"
    compile: bool = False  # whether the model is compiled (``torch.compile``)
    #: "adamw", or "muon" for the matrices of the layers (`course_lib.training.muon`).
    optimizer: str = "adamw"
    #: Attention heads of each layer; None: as many as the size has, one for 64
    #: features.
    heads: int | None = None
    #: The tokens that are hidden at the full rate, and others rarely
    #: (`course_lib.pretraining.masking.VocabIds`); none given: all at the full rate.
    preferred: tuple[str, ...] = ()
    #: How far Muon moves a matrix where AdamW would move it by 1; see
    #: `course_lib.training.muon.MuonAdamW`.
    muon_ratio: float = 4.0
    #: Features of a state, and four times as many inside the feed-forward; None: as
    #: many as the size has.
    width: int | None = None

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise ValueError(f"size is {self.size!r}; choose one of {', '.join(SIZES)}")
        if self.start not in ("published", "scaled"):
            raise ValueError(f"start is {self.start!r}; choose published or scaled")
        if self.optimizer not in ("adamw", "muon"):
            raise ValueError(f"optimizer is {self.optimizer!r}; choose adamw or muon")
        if self.batch_size < 1 or self.batch_size % self.training.accumulate:
            raise ValueError(
                f"a step of batch_size={self.batch_size} sequences cannot be made of"
                f" accumulate={self.training.accumulate} equal parts; choose a multiple"
                " of it"
            )
        if self.split < 1 or self.training.accumulate % self.split:
            raise ValueError(
                f"accumulate={self.training.accumulate} parts are no whole batches of"
                f" split={self.split}"
            )

    def make_optimizer(
        self, model: nn.Module, training: TrainingConfig
    ) -> torch.optim.Optimizer:
        """Return what moves a model's parameters, for
        `course_lib.training.loop.train`."""
        if self.optimizer == "muon":
            return muon(model, training, self.muon_ratio)
        return ADAMW(model, training)

    def config(self, vocab_size: int) -> BertConfig:
        """Return the settings of the model, for a vocabulary of this size."""
        changes = {} if self.heads is None else {"num_attention_heads": self.heads}
        if self.width is not None:
            changes |= {"hidden_size": self.width, "intermediate_size": 4 * self.width}
        return SIZES[self.size](
            **changes,
            vocab_size=vocab_size,
            max_position_embeddings=max(512, self.max_length),
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
        )

    def mean_rate(self, corpus: Corpus) -> float:
        """Return the share of the train split's tokens that is hidden; below the rate
        where some are preferred."""
        if not self.preferred:
            return self.masking.rate
        counts = torch.from_numpy(
            np.bincount(corpus.stores["train"].ids, minlength=len(corpus.tokenizer))
        )
        relative = VocabIds.of(corpus.tokenizer.vocab, self.preferred).relative_rates
        return self.masking.rate * float((counts * relative).sum() / counts.sum())

    def batches(self, corpus: Corpus) -> PreTrainingBatches:
        """Return what the model is trained on: epoch -> its batches, not yet cut into
        parts."""
        batches = self.training.accumulate // self.split
        return PreTrainingBatches(
            corpus.stores["train"],
            corpus.tokenizer.vocab,
            self.max_length,
            self.batch_size // batches,
            batches,
            self.training.seed,
            self.masking,
            self.next_sentence,
            self.static_masking,
            preferred=self.preferred,
        )

    def parts(self, corpus: Corpus) -> Callable[[int], Iterable[PreTrainingBatch]]:
        """Return what `course_lib.training.loop.train` reads: epoch -> the parts of its
        batches."""
        batches = self.batches(corpus)
        if self.split == 1:
            return batches
        return lambda epoch: (
            part for batch in batches(epoch) for part in cut(batch, self.split)
        )

    def lasting(self, steps: int, decay_steps: int | None = None) -> "Plan":
        """Return the same plan for another number of steps."""
        decay = self.training.decay_steps if decay_steps is None else decay_steps
        return replace(
            self, training=replace(self.training, steps=steps, decay_steps=decay)
        )


def plan_from(configuration: Mapping[str, Any]) -> Plan:
    """Load a plan back from JSON; where it lies on disk is no part of it."""
    try:
        nested = {
            "training": TrainingConfig(**read_settings(configuration["training"])),
            "masking": MaskingConfig(**configuration["masking"]),
            "preferred": tuple(configuration.get("preferred", ())),
        }
        return Plan(**{**configuration, **nested})
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is no plan of a pre-training ({error!r})") from error


def cut(batch: PreTrainingBatch, parts: int) -> list[PreTrainingBatch]:
    """Cut a batch between its sequences into parts of equal size, or nearly; their
    weights stay those of the step."""
    if parts == 1:
        return [batch]
    width, found, begin = batch.input_ids.shape[1], [], 0
    for rows in batch.input_ids.tensor_split(parts):
        end = begin + len(rows)
        here = (batch.masked_positions >= begin * width) & (
            batch.masked_positions < end * width
        )
        pairs = batch.next_sentence_labels
        found.append(
            batch._replace(
                input_ids=rows,
                token_type_ids=batch.token_type_ids[begin:end],
                attention_mask=(
                    None
                    if batch.attention_mask is None
                    else batch.attention_mask[begin:end]
                ),
                masked_positions=batch.masked_positions[here] - begin * width,
                masked_labels=batch.masked_labels[here],
                next_sentence_labels=None if pairs is None else pairs[begin:end],
            )
        )
        begin = end
    return found


def build(plan: Plan, corpus: Corpus) -> BertForPreTraining:
    """Build the model of a plan with its first weights, which the plan's seed
    determines."""
    return untrained(plan, len(corpus.tokenizer))


def untrained(plan: Plan, vocab_size: int) -> BertForPreTraining:
    """Build the model of a plan with its first weights, for a vocabulary of this size;
    see `build`."""
    set_seed(plan.training.seed)
    model = BertForPreTraining(plan.config(vocab_size))
    if plan.start == "scaled":
        scaled_start(model)
    return speed_up(start(model))


def scaled_size(config: BertConfig) -> float:
    """Return the size of the first weights of a `scaled_start`: 1 / sqrt(D)."""
    return config.hidden_size**-0.5


def scaled_start(
    model: BertForPreTraining | AlbertForPreTraining | DistilBertForMaskedLM,
) -> None:
    """Draw the weights anew with `scaled_size`, and let the positions start as
    sinusoids of that size."""
    size = scaled_size(model.config)
    model.apply(partial(initialise, std=size))
    table = model.bert.embeddings.position.weight
    with torch.no_grad():
        table.copy_(sinusoidal_positions(*table.shape) * size * math.sqrt(2))


def pretrain(
    plan: Plan,
    corpus: Corpus,
    model: BertForPreTraining | None = None,
    evaluate_on: str | None = "validation",
    report: Callable[[History], None] | None = None,
) -> tuple[BertForPreTraining, History]:
    """Pre-train a model as planned; go on where `plan.training.checkpoint` left off, if
    it exists."""
    keep_freed_memory()
    model = model or build(plan, corpus)
    _compile(plan, model)
    watch = evaluation(corpus, evaluate_on, plan.max_length) if evaluate_on else None
    figures = None if watch is None else lambda model: watch(model).figures()
    history = train(
        model,
        plan.parts(corpus),
        pretraining_loss_sum,
        plan.training,
        figures,
        plan.make_optimizer,
        report,
    )
    return model, history


def _compile(plan: Plan, model: BertForPreTraining) -> None:
    """Compile a model once, in place: the names of its weights stay."""
    if plan.compile and model._compiled_call_impl is None:
        model.compile()


def steps_for(
    plan: Plan,
    corpus: Corpus,
    model: BertForPreTraining,
    minutes: float,
    warm_up: int = 2,
) -> int:
    """Find how many steps of a plan take so many minutes, from the speed of the first;
    the model is left as it was."""
    if not (math.isfinite(minutes) and minutes > 0):
        raise ValueError(f"minutes is {minutes:g}; choose a positive number, e.g. 10")
    _compile(plan, model)
    before = {
        name: tensor.detach().clone() for name, tensor in model.state_dict().items()
    }
    trial = replace(
        plan.training,
        schedule="constant",
        warmup_steps=0,
        decay_steps=0,
        evaluate_every=None,
        patience=None,
        checkpoint=None,
        checkpoint_every=None,
        progress=False,
        learning_rate=1e-9,
    )
    seconds: list[float] = []
    parts = plan.parts(corpus)
    # A twentieth of the time at most, and at least one step that counts.
    for steps in (warm_up, 1, 8):
        if len(seconds) <= warm_up or seconds[-1] * 8 < 0.05 * 60 * minutes:
            timed = replace(trial, steps=steps)
            told = train(
                model,
                parts,
                pretraining_loss_sum,
                timed,
                make_optimizer=plan.make_optimizer,
            ).seconds
            seconds += np.diff([0.0, *told]).tolist()
    model.load_state_dict(before)
    counted = torch.tensor(
        [max(1.0, 60 * minutes / float(np.median(seconds[warm_up:])))], device=device()
    )
    copy_from_first(counted)
    return int(counted.item())


def tokens_of_steps(batches: PreTrainingBatches, steps: int) -> Iterable[np.ndarray]:
    """Yield, step by step, the lengths of the sequences that are trained on, without
    making the batches."""
    epoch = 0
    while steps > 0:
        made = batches(epoch)
        lengths = made.sequences.lengths
        for order in made.order[:steps].tolist():
            yield np.concatenate([lengths[made.plan[index][1]] for index in order])
        steps, epoch = steps - len(made.order), epoch + 1
