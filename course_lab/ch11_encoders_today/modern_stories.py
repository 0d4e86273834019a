"""What changed in encoders since BERT, one change at a time, on the stories that
chapter 6 trains on live, and on `pydocs`.

Each variant is that chapter's live BERT with one change, trained for the same steps on
the same sequences; the control is that BERT itself, with the paper's masks. All are
measured on the same hidden tokens, in sequences of the training's length and of lengths
that no model has seen. Since these are pairs of sentences, all read such pairs in
training, also those that do not predict which sentences follow.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lab.ch06_pretraining.few_stories import FEW_STORIES, little, story_corpus
from course_lab.ch06_pretraining.pretrain import scaled_start
from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretrain_scores import hidden_tokens, score
from course_lab.ch06_pretraining.pretraining_stories import LIVE, Recipe, read_stories
from course_lab.ch10_family.family_stories import guess_of
from course_lab.probing import start
from course_lab.study import Study
from course_lib.attention.multi_head import scaled_dot_product_attention
from course_lib.bert.model import BertForPreTraining
from course_lib.modern.layers import GeGLU, local_mask, rotate
from course_lib.modern.model import ModernBertConfig, ModernBertForMaskedLM
from course_lib.pretraining.batches import PreTrainingBatch, pretraining_loss_sum
from course_lib.training.batches import set_seed
from course_lib.training.loop import train
from course_lib.transformer.positions import sinusoidal_positions

CHANGES = ("sinusoidal", "rotary", "pre-norm", "GeGLU", "local", "no next sentence")
WINDOW, GLOBAL_EVERY = 16, 2
BASES = (160_000.0, 10_000.0)  # of a global and of a local layer
LENGTHS = (64, 128, 192)  # the first is that of the training
Model = BertForPreTraining | ModernBertForMaskedLM


@dataclass(frozen=True)
class Change:
    """A model and its training."""

    recipe: Recipe
    changes: tuple[str, ...] = ()  # of `CHANGES`
    modern: bool = False  # whether it is a ModernBERT, which has them all

    def __post_init__(self) -> None:
        if unknown := set(self.changes) - set(CHANGES):
            raise ValueError(f"{unknown} is no change; choose of {', '.join(CHANGES)}")


class ChangedAttention:
    """Attention that knows distances, or looks at neighbours only, in the place of a
    `MultiHeadAttention`'s `kernel`."""

    def __init__(self, base: float | None, window: int | None):
        self.base, self.window = base, window

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        dropout: nn.Module | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the output and the weights."""
        positions = torch.arange(query.shape[-2], device=query.device)
        if self.base is not None:
            waves = sinusoidal_positions(len(positions), query.shape[-1], self.base)
            waves = waves.to(query.device)
            query, key = rotate(query, waves), rotate(key, waves)
        if self.window is not None:
            near = local_mask(positions, self.window)
            # padding, of which a query sees nothing else, sees itself
            mask = near if mask is None else near & (mask | local_mask(positions, 0))
        return scaled_dot_product_attention(query, key, value, mask, dropout)


def change(model: BertForPreTraining, changes: Iterable[str]) -> None:
    """Change a BERT that has no weights worth keeping."""
    bert, config = model.bert, model.config
    width, eps = config.hidden_size, config.layer_norm_eps
    block: Any
    for layer, block in enumerate(bert.blocks):
        far = layer % GLOBAL_EVERY == 0
        if "rotary" in changes or "local" in changes:
            block.attention.kernel = ChangedAttention(
                BASES[0 if far or "local" not in changes else 1]
                if "rotary" in changes
                else None,
                None if far or "local" not in changes else WINDOW,
            )
        if "GeGLU" in changes:  # two thirds as wide: as many weights as before
            block.feed_forward = GeGLU(width, config.intermediate_size * 2 // 3)
        if "pre-norm" in changes:
            block.pre_norm = True
            block.norm1, block.norm2 = (
                nn.LayerNorm(width, eps, bias=False) for _ in range(2)
            )
            for part in block.modules():
                if isinstance(part, nn.Linear):
                    part.register_parameter("bias", None)
    if "pre-norm" in changes:  # nothing else normalises the last sum
        last: Any = bert.blocks[-1]
        last.final_norm = nn.LayerNorm(width, eps, bias=False)
        last.register_forward_hook(lambda block, _, hidden: block.final_norm(hidden))


def build(variant: Change, vocab_size: int) -> Model:
    """Build a variant's model with its first weights, which its seed determines."""
    plan = variant.recipe.stages[0]
    set_seed(plan.training.seed)
    config = plan.config(vocab_size)
    if variant.modern:
        size = config.hidden_size**-0.5
        return start(ModernBertForMaskedLM(_modern(config, size)))
    model = BertForPreTraining(config)
    change(model, variant.changes)
    scaled_start(model)
    start(model)
    table = model.bert.embeddings.position.weight
    if "rotary" in variant.changes:
        table.requires_grad_(False).zero_()
    if "sinusoidal" in variant.changes:
        waves = sinusoidal_positions(*table.shape) * (2 / config.hidden_size) ** 0.5
        table.requires_grad_(False).copy_(waves)
    return model


def _modern(config: Any, size: float) -> ModernBertConfig:
    """The same sizes, with a start that is scaled to the width as BERT's is."""
    return ModernBertConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size * 2 // 3,
        max_position_embeddings=config.max_position_embeddings,
        pad_token_id=config.pad_token_id,
        hidden_dropout_prob=config.hidden_dropout_prob,
        attention_probs_dropout_prob=config.attention_probs_dropout_prob,
        initializer_range=size,
        local_attention=WINDOW,
        global_attn_every_n_layers=GLOBAL_EVERY,
    )


def masked_loss_sum(model: nn.Module, batch: PreTrainingBatch) -> tuple[Tensor, int]:
    """Return the loss of a model that predicts hidden tokens and nothing else."""
    if isinstance(model, BertForPreTraining):
        return pretraining_loss_sum(model, batch._replace(next_sentence_labels=None))
    logits = model(
        batch.input_ids, batch.attention_mask, batch.masked_positions
    ).prediction_logits
    loss = F.cross_entropy(logits, batch.masked_labels, reduction="sum")
    return batch.mlm_weight * loss, len(batch.input_ids)


def train_variant(variant: Change, corpus: Corpus) -> tuple[Model, float]:
    """Train a variant; return it with the seconds that it took."""
    model, seconds = build(variant, len(corpus.tokenizer)), 0.0
    no_pairs = variant.modern or "no next sentence" in variant.changes
    loss = masked_loss_sum if no_pairs else pretraining_loss_sum
    for plan in variant.recipe.stages:
        told = train(
            model,
            plan.parts(corpus),
            loss,
            plan.training,
            make_optimizer=plan.make_optimizer,
        )
        seconds += told.seconds[-1]
    return model.to("cpu").eval(), seconds


@torch.no_grad()
def measure(model: Model, corpus: Corpus) -> dict[str, dict[str, float]]:
    """Return the scores on hidden tokens of the test split, by the longest sequence."""
    guess, found = guess_of(model), {}
    for length in LENGTHS:
        data = hidden_tokens(corpus.stores["test"], corpus.tokenizer.vocab, length)
        found[f"up to {length}"] = score(guess, data).figures()
    return found


def read(study: Study, source: str | None, _: str | None) -> Corpus:
    """Read the texts of a source."""
    return read_stories(study.recipe, source)


def run(study: Study, name: str, seed: int, corpus: Corpus) -> dict[str, Any]:
    """Train and measure one variant."""
    variant = study.variants[name]
    variant = replace(variant, recipe=variant.recipe.trained(seed=seed))
    model, seconds = train_variant(variant, corpus)
    return {
        "scores": measure(model, corpus),
        "parameters": sum(x.numel() for x in model.parameters() if x.requires_grad),
        "steps": variant.recipe.steps,
        "seconds": seconds,
    }


def probe(study: Study, name: str) -> tuple[Study, Corpus]:
    """Shorten a study, with few stories for it."""
    short = {
        key: replace(x, recipe=little(x.recipe)) for key, x in study.variants.items()
    }
    return replace(study, variants=short), story_corpus("two_worlds", FEW_STORIES)


def _study(name: str, **settings: Any) -> Study:
    bert = LIVE.masked(rate=0.15).changed(**settings).trained(evaluate_every=None)
    task = bert.last.data
    more = bert.masked(rate=0.3)
    variants = {
        "BERT": Change(bert),
        **{one: Change(bert, (one,)) for one in CHANGES},
        "30% masked": Change(more),
        "ModernBERT": Change(more, modern=True),
    }
    return Study(name, variants, read, run, probe, {"task": task}, (task,))


STUDIES = {
    "stories": _study("encoders-stories"),
    "pydocs": _study("encoders-pydocs", data="pydocs", vocab_size=8192),
}
