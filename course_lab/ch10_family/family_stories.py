"""Chapter 10's models on the stories of two worlds: ALBERT next to BERT, a distilled
student next to one from scratch.

All are trained by chapter 6's live recipe, but with a constant learning rate, until
their validation loss has stopped falling, and measured on the test split with the
standard masks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from course_lab.ch06_pretraining.few_stories import (
    FEW_STORIES,
    NUMBER,
    little,
    story_corpus,
)
from course_lab.ch06_pretraining.pretrain import Plan, scaled_start
from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretrain_scores import (
    Guess,
    guess_with,
    hidden_tokens,
    score,
)
from course_lab.ch06_pretraining.pretraining_questions import Question, ask
from course_lab.ch06_pretraining.pretraining_stories import (
    LIVE,
    QUESTIONS,
    SUBJECTS,
    Recipe,
    answers,
    read_stories,
)
from course_lab.probing import start
from course_lab.study import Study
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining
from course_lib.family.albert import AlbertForPreTraining
from course_lib.family.distilbert import (
    DistilBertForMaskedLM,
    DistillationWeights,
    distillation_loss_sum,
    student_of,
)
from course_lib.modern.model import ModernBertForMaskedLM
from course_lib.pretraining.batches import PreTrainingBatch, pretraining_loss_sum
from course_lib.training.batches import set_seed, to_device
from course_lib.training.loop import Evaluation, History, LossFunction, train

MEMBERS = ("BERT", "ALBERT", "DistilBERT")
PASSES = 2  # over the test split
Model = BertForPreTraining | AlbertForPreTraining | DistilBertForMaskedLM


@dataclass(frozen=True)
class Variant:
    """One model and its training."""

    member: str  # "BERT", "ALBERT" or "DistilBERT"
    recipe: Recipe  # its steps and its text
    width: int = 64  # features of a hidden state
    embedding_size: int = 18  # ALBERT's features of an embedding
    #: For DistilBERT: whether it starts with layers of its teacher, the BERT of
    #: `TEACHER` with the same seed.
    copied: bool = False
    #: For DistilBERT: of its three losses.
    weights: DistillationWeights = field(default_factory=DistillationWeights)

    def __post_init__(self) -> None:
        if self.member not in MEMBERS:
            raise ValueError(
                f"the member is {self.member!r}; choose one of {', '.join(MEMBERS)}"
            )

    def seeded(self, seed: int) -> "Variant":
        """Return the same with another seed."""
        return replace(self, recipe=self.recipe.trained(seed=seed))


TEACHER = "BERT"
#: Until four looks in a row have found no smaller loss.
TO_THE_END = LIVE.trained(
    steps=6000, learning_rate=3e-3, schedule="constant", evaluate_every=200, patience=4
)
_MASKED_ONLY = DistillationWeights(soft=0.0, masked=1.0, cosine=0.0)


def configured(plan: Plan, variant: Variant, vocab_size: int) -> BertConfig:
    """Return the sizes of a variant."""
    config = plan.config(vocab_size)
    layers = (
        -(-config.num_hidden_layers // 2)
        if variant.member == "DistilBERT"
        else config.num_hidden_layers
    )
    return replace(
        config,
        num_hidden_layers=layers,
        hidden_size=variant.width,
        intermediate_size=4 * variant.width,
    )


def build(
    variant: Variant, vocab_size: int, teacher: BertForPreTraining | None = None
) -> Model:
    """Build a variant's model with its first weights, which its seed determines."""
    plan = variant.recipe.stages[0]
    set_seed(plan.training.seed)
    if variant.copied:
        if teacher is None:
            raise ValueError("a copied start needs a teacher")
        return student_of(teacher)
    config = configured(plan, variant, vocab_size)
    model: Model
    if variant.member == "ALBERT":
        model = AlbertForPreTraining(config, variant.embedding_size)
    else:
        model = (
            BertForPreTraining(config)
            if variant.member == "BERT"
            else DistilBertForMaskedLM(config)
        )
    scaled_start(model)
    return start(model)


def train_variant(
    variant: Variant, corpus: Corpus, teacher: BertForPreTraining | None = None
) -> tuple[Model, History]:
    """Train a variant until the loss at masked tokens of the validation split stops
    falling, whatever it is trained on."""
    model, plan = build(variant, len(corpus.tokenizer), teacher), variant.recipe.last
    loss: LossFunction = pretraining_loss_sum
    if variant.member == "DistilBERT":
        loss = distillation_loss_sum(
            teacher or BertForPreTraining(model.config), variant.weights
        )
    watch = validation(corpus, plan.max_length)
    parts, optimizer = plan.parts(corpus), plan.make_optimizer
    history = train(model, parts, loss, plan.training, watch, optimizer)
    return model.to("cpu").eval(), history


def validation(corpus: Corpus, max_length: int) -> Evaluation:
    """Return what measures a model's loss at masked tokens."""
    store, vocab = corpus.stores["validation"], corpus.tokenizer.vocab
    data = hidden_tokens(store, vocab, max_length)

    def measured(model: Any) -> dict[str, float]:
        return {"loss": score(guess_of(model), data).figures()["mlm_loss"]}

    return measured


def guess_of(model: Model | ModernBertForMaskedLM) -> Guess:
    """Return what guesses with a model of the family; a DistilBERT and a ModernBERT do
    not guess next sentences."""
    if not isinstance(model, DistilBertForMaskedLM | ModernBertForMaskedLM):
        return guess_with(model)

    def guess(batch: PreTrainingBatch) -> tuple[torch.Tensor, None]:
        there = to_device(batch, next(model.parameters()).device)
        found = model(there.input_ids, there.attention_mask, there.masked_positions)
        return found.prediction_logits.float().log_softmax(-1), None

    return guess


@torch.no_grad()
def measure(
    model: Model,
    corpus: Corpus,
    questions: Mapping[str, Sequence[Question]],
    max_length: int,
) -> dict[str, Any]:
    """Measure a model on hidden tokens of the test split, those of entities and others,
    and on questions."""
    guess, vocab = guess_of(model), corpus.tokenizer.vocab
    entities = torch.tensor([vocab[word] for word in SUBJECTS])
    data = hidden_tokens(corpus.stores["test"], vocab, max_length)
    right: list[torch.Tensor] = []
    named: list[torch.Tensor] = []
    losses: list[torch.Tensor] = []
    for number in range(PASSES):
        for batch in data(number):
            scores, _ = guess(batch)
            right.append(scores.argmax(-1) == batch.masked_labels)
            losses.append(-scores.gather(1, batch.masked_labels[:, None])[:, 0])
            named.append(torch.isin(batch.masked_labels, entities))
    hits, kinds = torch.cat(right).numpy(), torch.cat(named).numpy()
    return {
        "scores": {
            "mlm_accuracy": float(hits.mean()),
            "mlm_loss": float(torch.cat(losses).mean()),
            "entity_accuracy": float(hits[kinds].mean()),
            "other_accuracy": float(hits[~kinds].mean()),
            "entity_share": float(np.mean(kinds)),
        },
        "questions": answers(guess, corpus, questions),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


@dataclass
class Inputs:
    """Stories, questions about those that nobody is trained on, and by seed the
    teachers that were trained so far."""

    corpus: Corpus
    questions: Mapping[str, Sequence[Question]]
    teachers: dict[int, BertForPreTraining] = field(default_factory=dict)


def read(study: Study, source: str | None, _: str | None) -> Inputs:
    """Read the stories of a source."""
    corpus, longest = read_stories(LIVE, source), LIVE.last.max_length
    return Inputs(corpus, ask(corpus, longest, QUESTIONS, "test"))


def run(study: Study, name: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Train and measure one variant."""
    variant = study.variants[name].seeded(seed)
    teacher = None
    if variant.member == "DistilBERT":
        if seed not in inputs.teachers:
            first = study.variants[TEACHER].seeded(seed)
            _keep(train_variant(first, inputs.corpus)[0], seed, inputs)
        teacher = inputs.teachers[seed]
    model, history = train_variant(variant, inputs.corpus, teacher)
    if name == TEACHER:
        _keep(model, seed, inputs)
    longest = variant.recipe.last.max_length
    found = measure(model, inputs.corpus, inputs.questions, longest)
    ended = {"steps": len(history.steps), "losses": history.metrics["loss"]}
    return {**found, **ended, "seconds": history.seconds[-1]}


def _keep(model: Model, seed: int, inputs: Inputs) -> None:
    assert isinstance(model, BertForPreTraining)
    inputs.teachers[seed] = model


def probe(study: Study, name: str) -> tuple[Study, Inputs]:
    """Shorten a study, the teacher of its students too, with few stories for it."""
    short = {
        key: replace(x, recipe=little(x.recipe)) for key, x in study.variants.items()
    }
    corpus = story_corpus(LIVE.last.data, FEW_STORIES)
    longest = short[name].recipe.last.max_length
    questions = ask(corpus, longest, NUMBER, "test")
    return replace(study, variants=short), Inputs(corpus, questions)


_VARIANTS = {
    TEACHER: Variant("BERT", TO_THE_END),
    "ALBERT": Variant("ALBERT", TO_THE_END),
    "BERT, as few parameters": Variant("BERT", TO_THE_END, width=32),
    "DistilBERT": Variant("DistilBERT", TO_THE_END, copied=True),
    "student, layers copied": Variant(
        "DistilBERT", TO_THE_END, copied=True, weights=_MASKED_ONLY
    ),
    "student, from scratch": Variant("DistilBERT", TO_THE_END, weights=_MASKED_ONLY),
}
STUDY = Study(
    "family-ends", _VARIANTS, read, run, probe, {"task": "stories"}, (LIVE.last.data,)
)
