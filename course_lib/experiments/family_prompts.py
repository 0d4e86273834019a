"""Zero-, one- and few-shot prompting beside fine-tuning, with a causal model that read the `stories`.

The task: which place belongs to what somebody carries? The stories know eight worlds, by the sea or on a farm, and each
thing is at home in one. Half of the things are for examples and for fine-tuning, the other half is asked for, so that
the answer has to come from what the model read before.

The same task is put in two ways: in a sentence as the stories have them, and as a bare list, which they never have.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.causal_lm import CausalLanguageModel
from course_lib.data import stories_lexicon as lex
from course_lib.experiments.context_models import ContextRecipe, build, train_one
from course_lib.experiments.pretraining_stories import RECIPE, read_stories
from course_lib.family_prompting import choose_continuation, prompt
from course_lib.training import TrainingConfig, train

FORMS: Mapping[str, str] = {
    "a sentence": "she took the {first} and the {second} and walked to the",
    "a list": "{first} , {second} ,",
}
ENDS: Mapping[str, str] = {"a sentence": ".", "a list": "."}


class Example(NamedTuple):
    """One task.

    Parameters
    ----------
    form
        Which of `FORMS`.
    first, second
        Two things of one world.
    world
        Its number.
    """

    form: str
    first: str
    second: str
    world: int


RECIPE_OF_GPT = ContextRecipe(
    TrainingConfig(steps=900, learning_rate=2.5e-3, warmup_steps=100, schedule="linear", bf16=True, progress=False),
    max_length=64,
    batch_size=16,
)
TUNING = TrainingConfig(steps=60, learning_rate=1e-3, warmup_steps=6, schedule="linear", progress=False)


@dataclass(frozen=True)
class PromptStudy:
    """What is compared.

    Parameters
    ----------
    variants
        "prompted", "fine-tuned" and "from scratch", which is fine-tuned without having read anything.
    recipe
        How the causal model was trained.
    tuning
        How it is fine-tuned.
    tasks
        Asked for in each form, of each world.
    labels
        Examples to fine-tune with, of each world and form.
    task
        Tells this study from those of other tasks.
    """

    variants: tuple[str, ...] = ("prompted", "fine-tuned", "from scratch")
    recipe: ContextRecipe = RECIPE_OF_GPT
    tuning: TrainingConfig = TUNING
    tasks: int = 20
    labels: int = 25
    task: str = "prompts"

    def shortened(self, steps: int) -> "PromptStudy":
        """Return the same comparison with another number of steps of pre-training."""
        training = replace(self.recipe.training, steps=steps, warmup_steps=min(steps // 10, 100))
        return replace(self, recipe=replace(self.recipe, training=training))


SHOTS = (0, 1, 3)
STUDY = PromptStudy()


def prompt_study_from(configuration: Mapping[str, Any]) -> PromptStudy:
    """Load a study back from a record's configuration."""
    recipe = configuration["recipe"]
    masking = type(RECIPE_OF_GPT.masking)(**recipe["masking"])
    read = ContextRecipe(**{**recipe, "training": TrainingConfig(**recipe["training"]), "masking": masking})
    tuning, variants = TrainingConfig(**configuration["tuning"]), configuration["variants"]
    return PromptStudy(**{**configuration, "recipe": read, "tuning": tuning, "variants": tuple(variants)})


def things(vocab: Mapping[str, int]) -> list[list[str]]:
    """Return for each world the things that are in no other world, as single tokens."""
    worlds = [world.things for world in lex.WORLDS]
    return [[x for x in own if x in vocab and sum(x in others for others in worlds) == 1] for own in worlds]


def places(vocab: Mapping[str, int]) -> list[str]:
    """Return one place for each world: the first, which is told of most."""
    found = [next(place for place in world.places if place in vocab) for world in lex.WORLDS]
    if len(set(found)) != len(found):
        raise ValueError(f"two worlds have one place: {found}")
    return found


def draw(vocab: Mapping[str, int], form: str, each: int, seen: bool, seed: int) -> list[Example]:
    """Draw tasks of one form, equally many of each world, with the half of the things that is seen or the other."""
    random = np.random.default_rng([seed, int(seen), list(FORMS).index(form)])
    made = []
    for number, own in enumerate(things(vocab)):
        half = own[0 if seen else 1 :: 2]
        for _ in range(each):
            first, second = random.choice(len(half), 2, replace=False)
            made.append(Example(form, half[first], half[second], number))
    return [made[index] for index in random.permutation(len(made))]


def ids_of(example: Example, vocab: Mapping[str, int]) -> list[int]:
    """Write a task as ids, up to where the answer begins."""
    return [vocab[word] for word in FORMS[example.form].format(first=example.first, second=example.second).split()]


def prompts_of(
    tasks: Sequence[Example],
    pool: Sequence[Example],
    shots: int,
    vocab: Mapping[str, int],
    seed: int,
    wrong: bool = False,
) -> list[list[int]]:
    """Put solved examples before each task.

    Parameters
    ----------
    tasks, pool
        What is asked, and what examples are drawn from.
    shots
        Examples before each task.
    vocab
        Token -> id.
    seed
        Of the draw.
    wrong
        Whether the examples' answers are those of other worlds, drawn at random: the control.

    Returns
    -------
    list of list of int
        For `course_lib.family_prompting`.
    """
    random, names = np.random.default_rng([seed, shots]), places(vocab)
    found = []
    for task in tasks:
        chosen = [pool[i] for i in random.choice(len(pool), shots, replace=False)]
        turn = random.integers(1, len(names), size=shots) if wrong else [0] * shots
        solved = [
            (ids_of(x, vocab), [vocab[names[(x.world + int(t)) % len(names)]], vocab[ENDS[x.form]]])
            for x, t in zip(chosen, turn, strict=True)
        ]
        found.append(prompt(ids_of(task, vocab), solved, [vocab["[CLS]"]]))
    return found


def accuracy(
    model: nn.Module, tasks: Sequence[Example], prompts: Sequence[Sequence[int]], vocab: Mapping[str, int]
) -> float:
    """Return the share of the tasks whose place is the likeliest continuation among the eight."""
    choices = choose_continuation(model, prompts, [[vocab[place]] for place in places(vocab)])
    return float(np.mean([choice == task.world for choice, task in zip(choices, tasks, strict=True)]))


def prompted(model: nn.Module, vocab: Mapping[str, int], study: PromptStudy, seed: int) -> dict[str, float]:
    """Ask a model with 0, 1 and 3 examples, in both forms; and with 3 whose answers are wrong."""
    scores = {}
    for form in FORMS:
        tasks = draw(vocab, form, study.tasks, False, seed)
        pool = draw(vocab, form, study.labels, True, seed)
        for shots in SHOTS:
            scores[f"{form}, {shots} shots"] = accuracy(
                model, tasks, prompts_of(tasks, pool, shots, vocab, seed), vocab
            )
        wrong = prompts_of(tasks, pool, max(SHOTS), vocab, seed, wrong=True)
        scores[f"{form}, {max(SHOTS)} wrong shots"] = accuracy(model, tasks, wrong, vocab)
    return scores


def answer_loss_sum(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, int]:
    """Learn the answers alone: of each row, what stands behind one place."""
    ids, last, labels = batch
    hidden = model(ids).last_hidden_state
    logits = model.get_submodule("output")(hidden[torch.arange(len(ids)), last])
    return F.cross_entropy(logits, labels, reduction="sum"), len(labels)


def tuning_batches(
    examples: Sequence[Example], vocab: Mapping[str, int], seed: int, size: int = 32
) -> Callable[[int], list[tuple[Tensor, Tensor, Tensor]]]:
    """Epoch -> batches of zero-shot prompts of one form and their answers."""
    rows = torch.tensor([[vocab["[CLS]"], *ids_of(example, vocab)] for example in examples])
    names = places(vocab)
    labels = torch.tensor([vocab[names[example.world]] for example in examples])
    last = torch.full_like(labels, rows.shape[1] - 1)

    def epoch_of(epoch: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1000 * seed + epoch))
        return [(rows[part], last[part], labels[part]) for part in order.split(size)]

    return epoch_of


def fine_tuned(
    model: Callable[[], nn.Module], vocab: Mapping[str, int], study: PromptStudy, seed: int
) -> dict[str, float]:
    """Fine-tune a copy of a model for each form, and ask it with no example."""
    scores = {}
    for form in FORMS:
        tuned = model()
        pool = draw(vocab, form, study.labels, True, seed)
        train(tuned, tuning_batches(pool, vocab, seed), answer_loss_sum, replace(study.tuning, seed=seed))
        tuned.to("cpu").eval()
        tasks = draw(vocab, form, study.tasks, False, seed)
        scores[f"{form}, fine-tuned"] = accuracy(tuned, tasks, prompts_of(tasks, pool, 0, vocab, seed), vocab)
    return scores


class PromptRunner:
    """Runs variants, and keeps the causal model of a seed."""

    def __init__(self, study: PromptStudy, source: str | None):
        self.study, self.corpus = study, read_stories(RECIPE, source)
        self.models: dict[int, tuple[CausalLanguageModel, float]] = {}

    def run(self, name: str, seed: int) -> dict[str, Any]:
        """Ask or fine-tune one model."""
        vocab, recipe = self.corpus.tokenizer.vocab, self.study.recipe.seeded(seed)
        if name == "from scratch":
            scores = fine_tuned(lambda: build("GPT", recipe, len(vocab)), vocab, self.study, seed)
            return {"scores": scores, "steps": 0, "seconds": 0.0}
        model, seconds = self._model(seed)
        if name == "prompted":
            scores = prompted(model, vocab, self.study, seed)
        else:
            scores = fine_tuned(lambda: _copy(model, recipe, len(vocab)), vocab, self.study, seed)
        return {"scores": scores, "steps": recipe.training.steps, "seconds": seconds}

    def _model(self, seed: int) -> tuple[CausalLanguageModel, float]:
        if seed not in self.models:
            corpus = self.corpus
            run = train_one("GPT", self.study.recipe.seeded(seed), corpus.stores["train"], corpus.tokenizer.vocab)
            assert isinstance(run.model, CausalLanguageModel)
            assert run.history is not None
            self.models[seed] = run.model, run.history.seconds[-1]
        return self.models[seed]


def _copy(model: nn.Module, recipe: ContextRecipe, vocab_size: int) -> nn.Module:
    """A model of its own with the same weights."""
    other = build("GPT", recipe, vocab_size)
    other.load_state_dict(model.state_dict())
    return other
