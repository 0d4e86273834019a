"""ELMo, GPT and BERT side by side: equally many features and layers, the same
sequences, as many steps (chapter 7).

All three read the batches of one `PreTrainingBatches`: BERT with tokens hidden, the
other two as they are. ELMo and GPT learn from each position, BERT from those that were
hidden.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lab.ch06_pretraining.pretrain import scaled_start
from course_lab.probing import start
from course_lib.bert.layers import initialise
from course_lib.bert.model import BertConfig, BertForPreTraining
from course_lib.embeddings.elmo import ELMo, ELMoConfig, elmo_loss_sum
from course_lib.embeddings.gpt import CausalLanguageModel, causal_loss_sum, unhidden
from course_lib.pretraining.batches import PreTrainingBatches, pretraining_loss_sum
from course_lib.pretraining.masking import MaskingConfig
from course_lib.pretraining.packing import Corpus as Tokens
from course_lib.training.batches import set_seed
from course_lib.training.loop import History, TrainingConfig, adamw, train
from course_lib.transformer.positions import sinusoidal_positions

KINDS = ("ELMo", "GPT", "BERT")
optimizer = partial(adamw, betas=(0.9, 0.98), eps=1e-6)


@dataclass(frozen=True)
class ContextRecipe:
    """What decides the three trainings."""

    training: TrainingConfig  # steps, learning rate and so on, the same for all
    #: num_layers, hidden_size: of each model. A state of ELMo has `hidden_size`
    #: features in each direction.
    num_layers: int = 2
    hidden_size: int = 128
    #: max_length, batch_size: Tokens of a sequence, and sequences of that length in a
    #: step.
    max_length: int = 32
    batch_size: int = 32
    #: How tokens are hidden from BERT.
    masking: MaskingConfig = field(default_factory=MaskingConfig)

    def config(self, vocab_size: int) -> BertConfig:
        """Return the sizes of BERT and of GPT."""
        return BertConfig.tiny(
            vocab_size=vocab_size,
            num_hidden_layers=self.num_layers,
            hidden_size=self.hidden_size,
            num_attention_heads=max(1, self.hidden_size // 64),
            intermediate_size=4 * self.hidden_size,
            max_position_embeddings=self.max_length,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )

    def seeded(self, seed: int) -> "ContextRecipe":
        """Return the same recipe with another seed."""
        return replace(self, training=replace(self.training, seed=seed))

    def shortened(self, steps: int) -> "ContextRecipe":
        """Return the same recipe for another number of training steps, with the same
        share of warm-up."""
        warmup_steps = self.training.warmup_steps * steps // self.training.steps
        return replace(
            self,
            training=replace(self.training, steps=steps, warmup_steps=warmup_steps),
        )


#: What the three models of chapter 7 are trained with on the stories; their figures are
#: recorded.
RECIPE = ContextRecipe(
    TrainingConfig(
        steps=900,
        learning_rate=2.5e-3,
        warmup_steps=100,
        schedule="linear",
        progress=False,
    )
)


@dataclass(frozen=True)
class ContextRun:
    """One model with what it learnt."""

    kind: str  # one of `KINDS`
    model: nn.Module  # on the CPU, in evaluation mode
    history: History  # of its training


def build(kind: str, recipe: ContextRecipe, vocab_size: int) -> nn.Module:
    """Build a model with its first weights, which the recipe's seed determines: of size
    1 / sqrt(D), as in chapter 6."""
    set_seed(recipe.training.seed)
    if kind == "ELMo":
        size = recipe.hidden_size
        config = ELMoConfig(vocab_size, size, size, recipe.num_layers, dropout=0.0)
        return start(ELMo(config))
    if kind == "BERT":
        bert = BertForPreTraining(recipe.config(vocab_size))
        scaled_start(bert)
        return start(bert)
    if kind != "GPT":
        raise ValueError(
            f"there is no model {kind!r}; choose one of {', '.join(KINDS)}"
        )
    gpt, size = CausalLanguageModel(recipe.config(vocab_size)), recipe.hidden_size**-0.5
    gpt.apply(partial(initialise, std=size))
    with torch.no_grad():
        gpt.position.weight.copy_(
            sinusoidal_positions(*gpt.position.weight.shape) * size * 2**0.5
        )
    return start(gpt)


def train_one(
    kind: str, recipe: ContextRecipe, corpus: Tokens, vocab: Mapping[str, int]
) -> ContextRun:
    """Train one model."""
    hidden = PreTrainingBatches(
        corpus,
        vocab,
        recipe.max_length,
        recipe.batch_size,
        seed=recipe.training.seed,
        masking=recipe.masking,
        next_sentence=False,
        across_documents=False,
    )
    losses: dict[str, Callable[[nn.Module, Any], Any]] = {
        "ELMo": elmo_loss_sum,
        "GPT": causal_loss_sum,
    }
    model = build(kind, recipe, len(vocab))
    data: Callable[[int], Any] = hidden if kind == "BERT" else unhidden(hidden)
    loss_sum = losses.get(kind, pretraining_loss_sum)
    history = train(model, data, loss_sum, recipe.training, make_optimizer=optimizer)
    return ContextRun(kind, model.to("cpu").eval(), history)


@torch.no_grad()
def hidden_states(
    model: nn.Module, input_ids: Tensor, attention_mask: Tensor
) -> tuple[Tensor, ...]:
    """Return the embeddings and each layer's states of an ELMo, a GPT or a BERT."""
    if isinstance(model, BertForPreTraining):
        model = model.bert
    if isinstance(model, ELMo | CausalLanguageModel):
        return model(input_ids, attention_mask).hidden_states
    return model(input_ids, attention_mask, return_hidden_states=True).hidden_states
