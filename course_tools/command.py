"""What ``course record`` does: run what the record lacks, and save it after each
run.

Several such commands may run side by side, each with its own seeds: a run is added to
what the record holds by then.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from course_lab import records
from course_lab.ch01_seq2seq import seq2seq, translator_measures
from course_lab.ch03_transformer import pronouns, transformer
from course_lab.ch03_transformer.plans import Plan
from course_lab.ch06_pretraining import pretraining_plans
from course_lab.ch07_embeddings import context_runs, layer_table
from course_lab.ch08_finetuning import error_runs, finetuning_plans, finetuning_runs
from course_lab.ch09_sentence_bert import sentence_plans
from course_lab.ch10_family import family_runs
from course_lib.training.loop import TrainingError
from course_lib.training.state import CheckpointError
from course_tools import record_command

CHECKPOINTS = Path("_build") / "experiments"
ATTENTIONS = ("dot", "bilinear", "scaled", "additive", "none")
#: Experiments that compare variants of one thing: their plans, and what does and
#: records the runs of a plan.
COMPARISONS: Mapping[str, tuple[Mapping[str, Any], Callable[..., Path]]] = {
    "pretraining": (pretraining_plans.PLANS, pretraining_plans.record_study),
    "finetuning": (finetuning_plans.PLANS, finetuning_runs.record_finetuning),
    "contexts": (context_runs.STUDIES, context_runs.record_contexts),
    "sentences": (sentence_plans.PLANS, sentence_plans.record_sentences),
    "family": (family_runs.STUDIES, family_runs.record_family),
}
EXPERIMENTS = ("seq2seq", "transformer", "layers", "errors", *COMPARISONS)
OF_CHECKPOINTS = ("finetuning", "errors", "sentences")


#: What is measured of a trained model beyond its scores, by experiment and data.
MEASURES: Mapping[tuple[str, str], translator_measures.Measure] = {
    ("seq2seq", "translation"): translator_measures.of_translation,
    ("transformer", "pronouns"): pronouns.of_pronouns,
}


class ExperimentError(RuntimeError):
    """An experiment cannot run; the message says why and what to do."""


class _Run(NamedTuple):
    """One training run, and what tells its result from the others in the record."""

    key: dict
    recipe: seq2seq.Recipe
    attention: str | None
    seed: int


def record_experiment(
    name: str,
    data: str,
    source: str | None,
    attentions: Sequence[str],
    seeds: Sequence[int],
    steps: int | None = None,
    checkpoint: str | None = None,
) -> Path:
    """Run an experiment for each seed and each model that it compares, and record
    it."""
    if name not in EXPERIMENTS:
        raise ExperimentError(
            f"there is no experiment {name!r}; there is: {', '.join(EXPERIMENTS)}"
        )
    if (name in OF_CHECKPOINTS) != (checkpoint is not None):
        raise ExperimentError(
            f"{', '.join(OF_CHECKPOINTS)} need --checkpoint, a folder or a name on the"
            " hub; no other"
        )
    path = _record_runs(name, data, source, attentions, seeds, steps, checkpoint)
    if steps is None:
        record_command.take_missing(path)
    return path


def _record_runs(
    name: str,
    data: str,
    source: str | None,
    attentions: Sequence[str],
    seeds: Sequence[int],
    steps: int | None,
    checkpoint: str | None,
) -> Path:
    """Do the runs that the record lacks."""
    if name == "layers":
        return _layers(data, source, attentions, seeds, steps)
    if name == "errors" and checkpoint is not None:
        return _errors(data, source, attentions, seeds, steps, checkpoint)
    if name in COMPARISONS:
        return _compare(name, data, source, attentions, seeds, steps, checkpoint)
    asked: seq2seq.Recipe | Plan
    if name == "seq2seq":
        asked = _recipe(data)
        names = list(attentions) or list(asked.attentions)
        known: Sequence[str] = ATTENTIONS
    else:
        asked = _plan(data)
        known = list(asked.variants)
        names = list(attentions) or list(known)
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ExperimentError(
            f"{name} has no variant {unknown[0]!r}; choose among {', '.join(known)}"
        )
    command, label = ["course", "record", name, "--data", data], f"{name}-{data}"
    try:
        if steps is not None:
            asked = asked.shortened(steps)
            command += ["--steps", str(steps)]
            label += f"-{steps}-steps"
        runs = [_run(asked, variant, seed) for seed in seeds for variant in names]
        measure = MEASURES.get((name, data))
        return _record(label, command, asked, runs, source, measure)
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _layers(
    data: str,
    source: str | None,
    models: Sequence[str],
    seeds: Sequence[int],
    steps: int | None,
) -> Path:
    """Measure frozen checkpoints; there is nothing to train for some number of
    steps."""
    if data not in layer_table.STUDIES:
        raise ExperimentError(
            f"layers has no study of {data!r}; it has: {', '.join(layer_table.STUDIES)}"
        )
    study = layer_table.STUDIES[data]
    if steps is not None:
        raise ExperimentError(
            "layers measures checkpoints as they are; leave out --steps"
        )
    if unknown := sorted(set(models) - set(study.models)):
        raise ExperimentError(
            f"layers of {data} has no model {unknown[0]!r}; choose among"
            f" {', '.join(study.models)}"
        )
    command = ["course", "record", "layers", "--data", data]
    try:
        return layer_table.record_layers(
            f"layers-{data}", command, study, models or study.models, seeds, source
        )
    except (ValueError, OSError) as error:
        raise ExperimentError(str(error)) from error


def _compare(
    name: str,
    data: str,
    source: str | None,
    variants: Sequence[str],
    seeds: Sequence[int],
    steps: int | None,
    checkpoint: str | None,
) -> Path:
    """Do the runs of a plan, of a checkpoint if the experiment is about one."""
    plans, record = COMPARISONS[name]
    if data not in plans:
        raise ExperimentError(
            f"{name} has no plan {data!r}; it has: {', '.join(plans)}"
        )
    plan = plans[data]
    if unknown := sorted(set(variants) - set(plan.variants)):
        raise ExperimentError(
            f"{name} has no variant {unknown[0]!r}; choose among"
            f" {'; '.join(plan.variants)}"
        )
    command, label = ["course", "record", name, "--data", data], f"{name}-{data}"
    if checkpoint is not None:
        command += [
            "--checkpoint",
            Path(checkpoint).name,
        ]  # the name alone: where it lies is a matter of this machine
    try:
        if steps is not None:
            plan = plan.shortened(steps)
            command += ["--steps", str(steps)]
            label += f"-{steps}-steps"
        of = [] if checkpoint is None else [checkpoint]
        return record(
            label,
            command,
            plan,
            *of,
            list(variants) or list(plan.variants),
            seeds,
            source,
        )
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _errors(
    data: str,
    source: str | None,
    variants: Sequence[str],
    seeds: Sequence[int],
    steps: int | None,
    checkpoint: str,
) -> Path:
    """Look at what one fine-tuned model gets wrong; the study says which."""
    if data not in error_runs.STUDIES:
        raise ExperimentError(
            f"errors has no study of {data!r}; it has: {', '.join(error_runs.STUDIES)}"
        )
    if steps is not None or variants or 0 not in seeds:
        raise ExperimentError(
            "errors looks at the one model of its study, of seed 0; leave out --steps"
            " and --variant"
        )
    command = [
        "course",
        "record",
        "errors",
        "--data",
        data,
        "--checkpoint",
        Path(checkpoint).name,
    ]
    try:
        return error_runs.record_errors(
            f"errors-{data}", command, error_runs.STUDIES[data], checkpoint, source
        )
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _recipe(data: str) -> seq2seq.Recipe:
    if data not in seq2seq.RECIPES:
        raise ExperimentError(
            f"seq2seq has no recipe for {data!r}; it has: {', '.join(seq2seq.RECIPES)}"
        )
    return seq2seq.RECIPES[data]


def _plan(data: str) -> Plan:
    if data not in transformer.PLANS:
        raise ExperimentError(
            f"transformer has no plan {data!r}; it has: {', '.join(transformer.PLANS)}"
        )
    return transformer.PLANS[data]


def _run(asked: seq2seq.Recipe | Plan, name: str, seed: int) -> _Run:
    if isinstance(asked, Plan):
        variant = asked.variants[name]
        return _Run(
            {"variant": name, "seed": seed}, variant.recipe, variant.attention, seed
        )
    attention = None if name == "none" else name
    return _Run({"attention": attention, "seed": seed}, asked, attention, seed)


def _record(
    label: str,
    command: Sequence[str],
    asked: seq2seq.Recipe | Plan,
    runs: Sequence[_Run],
    source: str | None,
    measure: translator_measures.Measure | None,
) -> Path:
    """Do the runs that the record lacks, and measure each trained model further if the
    experiment asks for it."""
    read = None
    for key, *_ in runs:
        _held(label, asked, key)  # a changed variant is an error before any work
    corpus = seq2seq.prepare(asked.recipe if isinstance(asked, Plan) else asked, source)
    for key, recipe, attention, seed in runs:
        if any(result.items() >= key.items() for result in _held(label, asked, key)):
            continue
        which = "-".join(str(value) for value in key.values()).replace(" ", "-")
        checkpoint = CHECKPOINTS / f"{label}-{which}.safetensors"
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        trained = seq2seq.train_and_score(recipe, corpus, attention, seed, checkpoint)
        measured = measure(trained, recipe, corpus) if measure else {}
        read = read or records.edition([recipe.data], source)
        result = {**key, **trained.summary(), **measured}
        records.add(label, command, asked, result, read)
    return records.RESULTS / f"{label}.json"


def _held(
    label: str, asked: seq2seq.Recipe | Plan, key: Mapping[str, Any]
) -> list[dict[str, Any]]:
    try:
        return records.held(label, asked, records.variant_of(key))
    except ValueError as error:
        raise ExperimentError(str(error)) from error
