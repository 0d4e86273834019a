"""Chapter 6's recorded experiments on the `stories`: what is hidden, how, and by which model, three seeds of each.

`PLANS` holds what is compared. Each variant changes one thing of the recipe that the chapter trains live. It is run
with ``course experiment pretraining --data stories``, one variant after the other; a run is recorded when it ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from course_lib.experiments import records
from course_lib.experiments.pretrain import Plan, plan_from
from course_lib.experiments.pretrain_cost import training_flops
from course_lib.experiments.pretrain_data import Corpus
from course_lib.experiments.pretrain_results import work_of
from course_lib.experiments.pretrain_scores import evaluation, guess_with
from course_lib.experiments.pretraining_probes import Places, probe, read_places
from course_lib.experiments.pretraining_questions import ask
from course_lib.experiments.pretraining_stories import (
    PLAN,
    QUESTIONS,
    StoryRun,
    answers,
    read_stories,
    train_on_stories,
    with_seed,
)
from course_lib.masked_language_model import MaskingConfig

PLACES = 1000  # to train each probe on, and as many to test it on
PASSES = 4  # over the test split, each with other hidden words


@dataclass(frozen=True)
class Study:
    """Variants of a pre-training that are compared.

    Parameters
    ----------
    variants
        By name; all read the same text with the same vocabulary.

    Raises
    ------
    ValueError
        If there is none, or two read different text.
    """

    variants: dict[str, Plan]

    def __post_init__(self) -> None:
        if not self.variants:
            raise ValueError("a study needs at least one variant")
        kinds = {(plan.data, plan.vocab_size, plan.max_length) for plan in self.variants.values()}
        if len(kinds) > 1:
            raise ValueError(
                f"the variants read their text in {len(kinds)} ways, so their scores cannot be compared; "
                "give all the same data, vocab_size and max_length"
            )

    def shortened(self, steps: int) -> "Study":
        """Return the same comparison with fewer steps or more, in the same proportions."""
        longest = max(plan.training.steps for plan in self.variants.values())
        return Study({name: _shortened(plan, steps / longest) for name, plan in self.variants.items()})


def _shortened(plan: Plan, share: float) -> Plan:
    training = plan.training
    steps = max(1, round(share * training.steps))
    warmup = min(steps, round(share * training.warmup_steps))
    return replace(plan, training=replace(training, steps=steps, warmup_steps=warmup, evaluate_every=None))


def study_from(configuration: Mapping[str, Any]) -> Study:
    """Load a study back from a record's configuration."""
    return Study({name: plan_from(plan) for name, plan in configuration["variants"].items()})


def _sized(plan: Plan, size: str) -> Plan:
    """The plan for another size of model, with as many operations in all."""
    other = replace(plan, size=size)
    lengths, chosen = torch.full((plan.batch_size,), plan.max_length).numpy(), 0.15 * plan.batch_size * plan.max_length
    costs = [training_flops(one.config(plan.vocab_size), lengths, chosen) for one in (plan, other)]
    return _shortened(other, costs[0] / costs[1])


_BASE = replace(PLAN, training=replace(PLAN.training, evaluate_every=None))
PLANS: dict[str, Study] = {
    "stories": Study(
        {
            "as live": _BASE,
            **{f"rate {rate:.2f}": replace(_BASE, masking=MaskingConfig(rate=rate)) for rate in (0.05, 0.3, 0.5, 0.75)},
            "always [MASK]": replace(_BASE, masking=MaskingConfig(mask_share=1.0, random_share=0.0)),
            "no next sentence": replace(_BASE, next_sentence=False),
            "static masking": replace(_BASE, static_masking=True),
            "mini, equal compute": _sized(_BASE, "mini"),
        }
    )
}


def record_study(
    label: str, command: Sequence[str], study: Study, variants: Sequence[str], seeds: Sequence[int], source: str | None
) -> Path:
    """Do the runs that a record lacks, and save it after each.

    Parameters
    ----------
    label
        Name of the record.
    command
        What was typed.
    study
        What is compared.
    variants
        Which of it.
    seeds
        One run of each variant for each.
    source
        As in `course_lib.data.load`.

    Returns
    -------
    Path
        The record.

    Raises
    ------
    ValueError
        If the record was made with another study.
    """
    _held(label, study)  # another configuration is an error before any work is done
    first = next(iter(study.variants.values()))
    corpus = read_stories(first, source)
    questions = ask(corpus.tokenizer, first.max_length, QUESTIONS, "test")
    places = read_places(corpus.tokenizer, first.max_length, PLACES)
    for seed in seeds:
        for variant in variants:
            key = {"variant": variant, "seed": seed}
            if any(result.items() >= key.items() for result in _held(label, study)):
                continue
            plan = with_seed(study.variants[variant], seed)
            run = train_on_stories(plan, corpus, {})
            found = {**key, **summary(run, plan, corpus, questions, places)}
            records.save(records.make(label, command, study, [*_held(label, study), found]), records.RESULTS)
    return records.RESULTS / f"{label}.json"


def summary(
    run: StoryRun,
    plan: Plan,
    corpus: Corpus,
    questions: Mapping[str, Sequence[Any]],
    places: Mapping[str, tuple[Places, Places]],
) -> dict[str, Any]:
    """Measure a run on stories that nobody is trained on, and probe it.

    Parameters
    ----------
    run, plan, corpus
        What was trained, how, on what.
    questions, places
        What is asked, and where the probes look.

    Returns
    -------
    dict
        Scores with the standard masks, whatever the run was trained with; the share of questions answered rightly; the
        probes' accuracies by layer, and as the downstream score their mean at the last layer; the work and the time.
    """
    scores = evaluation(corpus, "test", plan.max_length, PASSES)(run.model).figures()
    if not plan.next_sentence:  # a head that was never trained
        scores = {name: value for name, value in scores.items() if not name.startswith("nsp")}
    with torch.no_grad():
        right = answers(guess_with(run.model), corpus, questions)
    probed = probe(run.model, corpus.tokenizer.vocab, places)
    return {
        "scores": scores,
        "questions": right,
        "probes": probed.accuracy,
        "downstream": sum(layers[-1] for layers in probed.accuracy.values()) / len(probed.accuracy),
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "steps": len(run.history.steps),
        "work": asdict(work_of(plan, corpus, len(run.history.steps))),
        "seconds": run.history.seconds[-1],
    }


def _held(label: str, study: Study) -> list[dict[str, Any]]:
    """The runs that the record holds already, if it was made with this very study."""
    if not (records.RESULTS / f"{label}.json").is_file():
        return []
    record = records.load(label, records.RESULTS)
    if study_from(record.configuration) != study:
        raise ValueError(
            f"book/results/{label}.json was made with another configuration; move it away to record this one"
        )
    return record.results
