"""Chapter 6's pre-trainings on stories: one that a page runs live, and longer ones that
are recorded.

`LIVE` is the plain recipe of Devlin et al. 2019, made small: all words are asked for
alike, AdamW moves all weights. It learns the stories of two worlds in about two minutes
of one thread.

`RECIPE` learns those of all eight worlds, and takes more than twice as long. Its heads
are eight small ones, so that some are left for what is far away. Its matrices are moved
by Muon (`course_lib.training.muon`). And at first it is asked mostly for the words that
a story is about, in the spirit of ERNIE (Sun et al. 2019, section 3.2): neighbours tell
little of them, the rest of the text tells much.

Both start with weights scaled to their width
(`course_lab.ch06_pretraining.pretrain.scaled_start`): with the published start a narrow
model stays for most of its training on the plateau where it knows only word
frequencies.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from course_lab.ch06_pretraining.pretrain import Plan, build
from course_lab.ch06_pretraining.pretrain_controls import NGrams, controls
from course_lab.ch06_pretraining.pretrain_data import Corpus, prepare
from course_lab.ch06_pretraining.pretrain_scores import (
    Guess,
    evaluation,
    guess_with,
    hidden_tokens,
    score,
)
from course_lab.ch06_pretraining.pretraining_questions import Question, share_right
from course_lib.bert.model import BertForPreTraining
from course_lib.data import stories_lexicon as lex
from course_lib.pretraining.batches import pretraining_loss_sum
from course_lib.pretraining.masking import MaskingConfig
from course_lib.training.loop import History, TrainingConfig, train

QUESTIONS = 200  # of each kind


@dataclass(frozen=True)
class Recipe:
    """A pre-training in stages: each goes on with the weights of the one before, and
    begins its own schedule."""

    stages: tuple[Plan, ...]  # all of one model and one text

    def __post_init__(self) -> None:
        kinds = {
            (p.size, p.heads, p.data, p.vocab_size, p.dropout, p.start, p.training.seed)
            for p in self.stages
        }
        if len(kinds) != 1:
            raise ValueError(
                f"the stages have {len(kinds)} kinds of model, text, start or seed;"
                " give all the same, and at least one"
            )

    @property
    def last(self) -> Plan:
        """The last stage: models are measured on sequences as long as its."""
        return self.stages[-1]

    @property
    def steps(self) -> int:
        """Steps of all stages together."""
        return sum(plan.training.steps for plan in self.stages)

    def changed(self, **settings: Any) -> "Recipe":
        """Return the recipe with settings of `Plan` exchanged in each stage."""
        return Recipe(tuple(replace(plan, **settings) for plan in self.stages))

    def masked(self, **settings: Any) -> "Recipe":
        """Return the recipe with settings of `MaskingConfig` exchanged in each
        stage."""
        return Recipe(
            tuple(
                replace(plan, masking=replace(plan.masking, **settings))
                for plan in self.stages
            )
        )

    def trained(self, **settings: Any) -> "Recipe":
        """Return the recipe with settings of `TrainingConfig` exchanged in each
        stage."""
        return Recipe(
            tuple(
                replace(plan, training=replace(plan.training, **settings))
                for plan in self.stages
            )
        )

    def shortened(self, share: float) -> "Recipe":
        """Return the recipe with this share of the steps in each stage, of warm-up and
        of decay."""
        stages = []
        for plan in self.stages:
            old = plan.training
            steps = max(1, round(share * old.steps))
            # rounded down: both must fit into the steps
            warmup = math.floor(share * old.warmup_steps)
            decay = math.floor(share * old.decay_steps)
            stages.append(
                replace(
                    plan,
                    training=replace(
                        old, steps=steps, warmup_steps=warmup, decay_steps=decay
                    ),
                )
            )
        return Recipe(tuple(stages))


# What a story is about: who, what and where.
SUBJECTS = tuple(
    sorted(
        {
            word
            for kind in (
                lex.WOMEN,
                lex.MEN,
                lex.OCCUPATIONS,
                lex.THINGS,
                lex.PAIRS,
                lex.PLACES,
                lex.LOOKS,
                lex.SIZES_AND_AGES,
            )
            for phrase in kind
            for word in phrase.lower().split()
        }
    )
)
_SUBJECTS_FIRST = Plan(
    TrainingConfig(
        steps=400,
        learning_rate=4e-3,
        warmup_steps=80,
        precision="bfloat16",
        evaluate_every=200,
        progress=False,
    ),
    size="tiny",
    heads=8,
    data="stories",
    vocab_size=3072,
    max_length=64,
    batch_size=64,
    masking=MaskingConfig(rate=0.3),
    preferred=SUBJECTS,
    dropout=0.0,
    start="scaled",
    optimizer="muon",
    muon_ratio=1.0,
)
_ALL_WORDS = replace(
    _SUBJECTS_FIRST,
    training=replace(
        _SUBJECTS_FIRST.training,
        steps=750,
        warmup_steps=50,
        schedule="linear",
        evaluate_every=250,
    ),
    preferred=(),
)
RECIPE = Recipe((_SUBJECTS_FIRST, _ALL_WORDS))

# Chapter 6's live training: the plain recipe of the paper, one stage with all words
# alike and AdamW, made small.
LIVE = Recipe(
    (
        Plan(
            TrainingConfig(
                steps=1100,
                learning_rate=6e-3,
                warmup_steps=30,
                schedule="linear",
                evaluate_every=100,
                progress=False,
            ),
            size="tiny",
            width=64,
            heads=4,
            data="two_worlds",
            vocab_size=3072,
            max_length=64,
            batch_size=64,
            masking=MaskingConfig(rate=0.3),
            dropout=0.0,
            start="scaled",
        ),
    )
)


def _studied(plan: Plan, steps: int, warmup_steps: int) -> Plan:
    training = replace(
        plan.training,
        steps=steps,
        warmup_steps=warmup_steps,
        learning_rate=1e-3,
        evaluate_every=None,
    )
    return replace(plan, training=training, batch_size=32, muon_ratio=4.0)


# The same at a slower pace: more steps of half as many sequences. Chapter 6's study
# changes one thing of it.
STUDIED = Recipe((_studied(_SUBJECTS_FIRST, 900, 180), _studied(_ALL_WORDS, 1700, 50)))
# That with AdamW in place of Muon, at twice the rate.
WITH_ADAMW = STUDIED.changed(optimizer="adamw").trained(learning_rate=2e-3)


@dataclass(frozen=True)
class StoryRun:
    """A pre-training on the stories."""

    seed: int  # of weights, pairs and masks
    model: BertForPreTraining  # at its end
    #: Its metrics are the scores on validation and, kind by kind, the share of the
    #: questions answered rightly.
    history: History


def read_stories(recipe: Recipe = RECIPE, source: str | None = None) -> Corpus:
    """Return the tokenised stories; every word of theirs is a piece of the
    vocabulary."""
    return prepare(recipe.last.data, recipe.last.vocab_size, source)


def train_on_stories(
    recipe: Recipe,
    corpus: Corpus,
    questions: Mapping[str, Sequence[Question]],
    report: Callable[[History], None] | None = None,
) -> StoryRun:
    """Pre-train on the stories and watch what is learnt."""
    figures = watching(recipe, corpus, questions)
    model = build(recipe.stages[0], corpus)
    histories = [
        train(
            model,
            plan.parts(corpus),
            pretraining_loss_sum,
            plan.training,
            figures,
            plan.make_optimizer,
            report,
        )
        for plan in recipe.stages
    ]
    return StoryRun(
        recipe.last.training.seed, model.to("cpu").eval(), _joined(histories)
    )


def watching(
    recipe: Recipe, corpus: Corpus, questions: Mapping[str, Sequence[Question]]
) -> Callable[[nn.Module], dict[str, float]]:
    """Return what measures a model on validation and by questions: model -> figures."""
    watch = evaluation(corpus, "validation", recipe.last.max_length)

    def figures(model: nn.Module) -> dict[str, float]:
        with torch.no_grad():
            right = answers(guess_with(model), corpus, questions)
        return {**watch(model).figures(), **right}

    return figures


def _joined(histories: Sequence[History]) -> History:
    """One history of several, one behind the other."""
    whole = History(precision=histories[-1].precision)
    for history in histories:
        steps = len(whole.steps)  # numbered from 1
        seconds, tokens = (
            column[-1] if column else 0.0 for column in (whole.seconds, whole.tokens)
        )
        whole.steps += [steps + step for step in history.steps]
        whole.metric_steps += [steps + step for step in history.metric_steps]
        whole.seconds += [seconds + second for second in history.seconds]
        whole.tokens += [tokens + count for count in history.tokens]
        for name in ("losses", "learning_rates", "gradient_norms"):
            getattr(whole, name).extend(getattr(history, name))
        for name, values in history.metrics.items():
            whole.metrics.setdefault(name, []).extend(values)
    return whole


def answers(
    guess: Guess, corpus: Corpus, questions: Mapping[str, Sequence[Question]]
) -> dict[str, float]:
    """Return the share of the questions of each kind that a model or a control answers
    rightly."""
    return {
        kind: share_right(guess, of_kind, corpus.tokenizer.vocab)
        for kind, of_kind in questions.items()
    }


def control_figures(
    corpus: Corpus,
    questions: Mapping[str, Sequence[Question]],
    max_length: int,
    split: str = "validation",
) -> dict[str, dict[str, float]]:
    """Return what counts of neighbours reach where the model is measured: control ->
    figures by name."""
    data = hidden_tokens(corpus.stores[split], corpus.tokenizer.vocab, max_length)
    return {
        name: {**score(guess, data).figures(), **answers(guess, corpus, questions)}
        for name, guess in controls(NGrams(corpus.stores["train"])).items()
    }
