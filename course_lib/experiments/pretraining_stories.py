"""Chapter 6's live pre-training: a tiny BERT that learns the `stories` in two minutes on two cores.

The published start (weights of size 0.02 at every width) and the published positions (random) keep a model of 128
features on the plateau where it knows only word frequencies for most of that time. Two changes shorten it. Weights
start at 1 / sqrt(D), so that attention is not uniform at first: at the paper's 768 features that is 0.036, not far from
0.02. And the rows of positions start as sinusoids, so that *the word before* is one turn, the same at every place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import nn

from course_lib.batching import set_seed
from course_lib.bert import BertForPreTraining
from course_lib.bert_layers import initialise
from course_lib.experiments.pretrain import Plan, build, optimizer
from course_lib.experiments.pretrain_controls import NGrams, controls
from course_lib.experiments.pretrain_data import Corpus, prepare
from course_lib.experiments.pretrain_scores import Guess, evaluation, guess_with, hidden_tokens, score
from course_lib.experiments.pretraining_questions import Question, share_right
from course_lib.positions import sinusoidal_positions
from course_lib.pretraining import pretraining_loss_sum
from course_lib.training import History, TrainingConfig, train

QUESTIONS = 200  # of each kind
PLAN = Plan(
    TrainingConfig(
        steps=3200,
        learning_rate=1.5e-3,
        warmup_steps=320,
        schedule="linear",
        bf16=True,
        evaluate_every=200,
        progress=False,
    ),
    size="tiny",
    data="stories",
    vocab_size=3072,
    max_length=64,
    batch_size=32,
    dropout=0.0,
)


@dataclass(frozen=True)
class StoryRun:
    """A pre-training on the stories.

    Parameters
    ----------
    seed
        Of weights, pairs and masks.
    model
        At its end.
    history
        Its metrics are the scores on validation and, kind by kind, the share of the questions answered rightly.
    """

    seed: int
    model: BertForPreTraining
    history: History


def read_stories(plan: Plan = PLAN, source: str | None = None) -> Corpus:
    """Return the tokenised stories; every word of theirs is a piece of the vocabulary."""
    return prepare(plan.data, plan.vocab_size, source)


def begin(plan: Plan, corpus: Corpus, published: bool = False) -> BertForPreTraining:
    """Build a model with its first weights.

    Parameters
    ----------
    plan, corpus
        As in `course_lib.experiments.pretrain.build`.
    published
        Whether it starts as published, with weights of size 0.02; else with 1 / sqrt(D), and positions as sinusoids.

    Returns
    -------
    BertForPreTraining
        Untrained.
    """
    model = build(plan, corpus)
    if not published:
        start = model.config.hidden_size**-0.5
        set_seed(plan.training.seed)
        model.apply(partial(_draw, std=start))
        table = model.bert.embeddings.position.weight
        with torch.no_grad():  # a sine has the mean square 1/2
            table.copy_(sinusoidal_positions(*table.shape) * start * 2**0.5)
    return model


def _draw(module: nn.Module, std: float) -> None:
    initialise(module, std)


def train_on_stories(
    plan: Plan,
    corpus: Corpus,
    questions: Mapping[str, Sequence[Question]],
    published: bool = False,
) -> StoryRun:
    """Pre-train on the stories and watch what is learnt.

    Parameters
    ----------
    plan, corpus
        What is trained on what.
    questions
        From `course_lib.experiments.pretraining_questions.ask`.
    published
        As in `begin`.

    Returns
    -------
    StoryRun
        The model, on the CPU, and its history.
    """
    watch = evaluation(corpus, "validation", plan.max_length)

    def figures(model: nn.Module) -> dict[str, float]:
        return {**watch(model).figures(), **answers(guess_with(model), corpus, questions)}

    model = begin(plan, corpus, published)
    history = train(model, plan.parts(corpus), pretraining_loss_sum, plan.training, figures, optimizer)
    return StoryRun(plan.training.seed, model.to("cpu").eval(), history)


def answers(guess: Guess, corpus: Corpus, questions: Mapping[str, Sequence[Question]]) -> dict[str, float]:
    """Return the share of the questions of each kind that a model or a control answers rightly."""
    return {kind: share_right(guess, of_kind, corpus.tokenizer.vocab) for kind, of_kind in questions.items()}


def control_figures(
    corpus: Corpus, questions: Mapping[str, Sequence[Question]], max_length: int, split: str = "validation"
) -> dict[str, dict[str, float]]:
    """Return what counts of neighbours reach where the model is measured: control -> figures by name."""
    data = hidden_tokens(corpus.stores[split], corpus.tokenizer.vocab, max_length)
    return {
        name: {**score(guess, data).figures(), **answers(guess, corpus, questions)}
        for name, guess in controls(NGrams(corpus.stores["train"])).items()
    }


def with_seed(plan: Plan, seed: int) -> Plan:
    """Return the plan with another seed."""
    return replace(plan, training=replace(plan.training, seed=seed))
