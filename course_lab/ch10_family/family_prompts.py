"""Zero-, one- and few-shot prompting beside fine-tuning, with a causal model that read
the `stories`.

The task: *she* or *he*, for a name? Half of the names are for examples and for
fine-tuning, the other half is asked for, so that the answer has to come from what the
model read before.

The same task is put in two ways: in a sentence as the stories have them, and as a bare
list, which they never have.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lab.ch06_pretraining.few_stories import story_corpus
from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretraining_stories import RECIPE, read_stories
from course_lab.ch07_embeddings.context_models import ContextRecipe, build, train_one
from course_lab.ch07_embeddings.context_runs import little
from course_lab.study import Study, shortened
from course_lib.data import stories_lexicon as lex
from course_lib.embeddings.gpt import CausalLanguageModel
from course_lib.family.prompting import choose_continuation, prompt
from course_lib.training.loop import TrainingConfig, train

FORMS: Mapping[str, str] = {
    "a sentence": "{name} was {state} .",
    "a list": "{name} , {state} ,",
}
STATES = ("tired", "hungry", "calm", "cold")
ANSWERS = ("she", "he")


class Example(NamedTuple):
    """One task."""

    form: str  # which of `FORMS`
    #: name, state: What is put into it.
    name: str
    state: str
    answer: int  # the number of the right one of `ANSWERS`


RECIPE_OF_GPT = ContextRecipe(
    TrainingConfig(
        steps=900,
        learning_rate=2.5e-3,
        warmup_steps=100,
        schedule="linear",
        precision="bfloat16",
        progress=False,
    ),
    max_length=64,
    batch_size=16,
)
TUNING = TrainingConfig(
    steps=60, learning_rate=1e-3, warmup_steps=6, schedule="linear", progress=False
)


SHOTS = (0, 1, 4)


def tasks_of(form: str, seen: bool) -> list[Example]:
    """Return all tasks of one form, with the half of the names that is seen or the
    other."""
    return [
        Example(form, name.lower(), state, number)
        for number, names in enumerate((lex.WOMEN, lex.MEN))
        for name in names[0 if seen else 1 :: 2]
        for state in STATES
    ]


def ids_of(example: Example, vocab: Mapping[str, int]) -> list[int]:
    """Write a task as ids, up to where the answer begins."""
    return [
        vocab[word]
        for word in (
            FORMS[example.form].format(name=example.name, state=example.state).split()
        )
    ]


def prompts_of(
    tasks: Sequence[Example],
    pool: Sequence[Example],
    shots: int,
    vocab: Mapping[str, int],
    seed: int,
    wrong: bool = False,
) -> list[list[int]]:
    """Put solved examples before each task."""
    random = np.random.default_rng([seed, shots])
    found = []
    for task in tasks:
        chosen = [pool[i] for i in random.choice(len(pool), shots, replace=False)]
        solved = [
            (ids_of(x, vocab), [vocab[ANSWERS[x.answer ^ wrong]], vocab["."]])
            for x in chosen
        ]
        found.append(prompt(ids_of(task, vocab), solved, [vocab["[CLS]"]]))
    return found


def accuracies(
    model: nn.Module,
    tasks: Sequence[Example],
    prompts: Sequence[Sequence[int]],
    vocab: Mapping[str, int],
) -> tuple[float, float]:
    """Return the share of right answers: of the likeliest, and of those that are
    likelier than over all prompts."""
    golds = [task.answer for task in tasks]
    options = [[vocab[answer]] for answer in ANSWERS]
    shares = []
    for calibrated in (False, True):
        choices = choose_continuation(model, prompts, options, calibrated)
        shares.append(
            float(
                np.mean(
                    [
                        choice == gold
                        for choice, gold in zip(choices, golds, strict=True)
                    ]
                )
            )
        )
    return shares[0], shares[1]


def prompted(model: nn.Module, vocab: Mapping[str, int], seed: int) -> dict[str, float]:
    """Ask a model with 0, 1 and 4 examples, in both forms; and with 4 whose answers are
    wrong."""
    scores: dict[str, float] = {}
    for form in FORMS:
        tasks, pool = tasks_of(form, seen=False), tasks_of(form, seen=True)
        asked = {
            f"{shots} shots": prompts_of(tasks, pool, shots, vocab, seed)
            for shots in SHOTS
        }
        asked[f"{max(SHOTS)} wrong shots"] = prompts_of(
            tasks, pool, max(SHOTS), vocab, seed, wrong=True
        )
        for name, prompts in asked.items():
            plain, calibrated = accuracies(model, tasks, prompts, vocab)
            scores |= {
                f"{form}, {name}": plain,
                f"{form}, {name}, calibrated": calibrated,
            }
    return scores


def answer_loss_sum(
    model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, int]:
    """Learn the answers alone: of each row, what stands behind one place."""
    ids, last, labels = batch
    hidden = model(ids).last_hidden_state
    logits = model.get_submodule("output")(hidden[torch.arange(len(ids)), last])
    return F.cross_entropy(logits, labels, reduction="sum"), len(labels)


def tuning_batches(
    examples: Sequence[Example], vocab: Mapping[str, int], seed: int, size: int = 32
) -> Callable[[int], list[tuple[Tensor, Tensor, Tensor]]]:
    """Epoch -> batches of zero-shot prompts of one form and their answers."""
    rows = torch.tensor(
        [[vocab["[CLS]"], *ids_of(example, vocab)] for example in examples]
    )
    labels = torch.tensor([vocab[ANSWERS[example.answer]] for example in examples])
    last = torch.full_like(labels, rows.shape[1] - 1)

    def epoch_of(epoch: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        order = torch.randperm(
            len(rows), generator=torch.Generator().manual_seed(1000 * seed + epoch)
        )
        return [(rows[part], last[part], labels[part]) for part in order.split(size)]

    return epoch_of


def fine_tuned(
    model: Callable[[], nn.Module], vocab: Mapping[str, int], tuning: TrainingConfig
) -> dict[str, float]:
    """Fine-tune a copy of a model for each form, and ask it with no example."""
    scores: dict[str, float] = {}
    for form in FORMS:
        tasks = tasks_of(form, seen=False)
        pool = tasks_of(form, seen=True)
        tuned = model()
        train(tuned, tuning_batches(pool, vocab, tuning.seed), answer_loss_sum, tuning)
        tuned.to("cpu").eval()
        plain, calibrated = accuracies(
            tuned, tasks, prompts_of(tasks, pool, 0, vocab, tuning.seed), vocab
        )
        scores |= {
            f"{form}, 0 shots": plain,
            f"{form}, 0 shots, calibrated": calibrated,
        }
    return scores


@dataclass
class Inputs:
    """Stories, and by seed the causal models that read them so far, with the seconds
    that it took."""

    corpus: Corpus
    models: dict[int, tuple[CausalLanguageModel, float]] = field(default_factory=dict)


def read(study: Study, source: str | None, _: str | None) -> Inputs:
    """Read the stories of a source."""
    return Inputs(read_stories(RECIPE, source))


def run(study: Study, name: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Ask or fine-tune one model."""
    vocab, recipe = inputs.corpus.tokenizer.vocab, study.shared["recipe"].seeded(seed)
    tuning = replace(study.shared["tuning"], seed=seed)
    if name == "from scratch":
        scores = fine_tuned(lambda: build("GPT", recipe, len(vocab)), vocab, tuning)
        return {"scores": scores, "steps": 0, "seconds": 0.0}
    if seed not in inputs.models:
        told = train_one("GPT", recipe, inputs.corpus.stores["train"], vocab)
        assert isinstance(told.model, CausalLanguageModel)
        inputs.models[seed] = told.model, told.history.seconds[-1]
    model, seconds = inputs.models[seed]
    if name == "prompted":
        scores = prompted(model, vocab, seed)
    else:
        scores = fine_tuned(lambda: _copy(model, recipe, len(vocab)), vocab, tuning)
    return {"scores": scores, "steps": recipe.training.steps, "seconds": seconds}


def _copy(model: nn.Module, recipe: ContextRecipe, vocab_size: int) -> nn.Module:
    """A model of its own with the same weights."""
    other = build("GPT", recipe, vocab_size)
    other.load_state_dict(model.state_dict())
    return other


def probe(study: Study, name: str) -> tuple[Study, Inputs]:
    """Shorten a study, with few stories for it."""
    short = {
        **study.shared,
        "recipe": little(study.shared["recipe"]),
        "tuning": shortened(study.shared["tuning"], steps=3, warmup=1),
    }
    return replace(study, shared=short), Inputs(story_corpus())


#: "from scratch" is fine-tuned without having read anything.
STUDY = Study(
    "family-prompts",
    dict.fromkeys(("prompted", "fine-tuned", "from scratch")),
    read,
    run,
    probe,
    {"recipe": RECIPE_OF_GPT, "tuning": TUNING, "task": "prompts"},
    ("stories",),
)
