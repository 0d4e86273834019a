"""What ``course experiment`` does: run what the record lacks, and save it after each run.

Several such commands may run side by side, each with its own seeds: a run is added to what the record holds by then.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from course_lib.checkpoint import CheckpointError
from course_lib.experiments import (
    error_runs,
    family_runs,
    finetuning_runs,
    layer_table,
    pretraining_plans,
    records,
    sentence_plans,
    seq2seq,
    transformer,
)
from course_lib.experiments.plans import Plan, plan_from
from course_lib.training import TrainingError

CHECKPOINTS = Path("_build") / "experiments"
ATTENTIONS = ("dot", "bilinear", "additive", "none")
EXPERIMENTS = ("seq2seq", "transformer", "pretraining", "layers", "finetuning", "errors", "sentences", "family")
OF_CHECKPOINTS = ("finetuning", "errors", "sentences")


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
    """Run an experiment for each seed and each model that it compares, and record it.

    Parameters
    ----------
    name
        The experiment: "seq2seq", "transformer", "pretraining", "layers", "finetuning", "errors", "sentences" or
        "family".
    data
        For "seq2seq", a data set that `seq2seq.RECIPES` has a recipe for; for the others, a plan in
        `transformer.PLANS`, `pretraining_plans.PLANS`, `layer_table.STUDIES`, `finetuning_runs.PLANS`,
        `error_runs.STUDIES`, `sentence_plans.PLANS` or `family_runs.STUDIES`.
    source
        As in `course_lib.data.load`.
    attentions
        For "seq2seq": "dot", "bilinear", "additive" or "none". For "layers" checkpoints, for the others names of the
        plan's variants. Empty for dot and none, or for all of the plan.
    seeds
        One run for each.
    steps
        Training steps, if not the recipe's own; the record then has the steps in its name.
    checkpoint
        For "finetuning", "errors" and "sentences": what is trained, a folder or a name on the hub.

    Returns
    -------
    Path
        The record. Runs that it held already, made with the same configuration, are kept and not run again.

    Raises
    ------
    ExperimentError
        If the experiment, its data or an option is not known, or training failed.
    """
    if name not in EXPERIMENTS:
        raise ExperimentError(f"there is no experiment {name!r}; there is: {', '.join(EXPERIMENTS)}")
    if (name in OF_CHECKPOINTS) != (checkpoint is not None):
        raise ExperimentError(
            f"{' and '.join(OF_CHECKPOINTS)} need --checkpoint, a folder or a name on the hub; no other"
        )
    if name == "layers":
        return _layers(data, source, attentions, seeds, steps)
    if name == "sentences" and checkpoint is not None:
        return _sentences(data, source, attentions, seeds, steps, checkpoint)
    if name == "errors" and checkpoint is not None:
        return _errors(data, source, attentions, seeds, steps, checkpoint)
    if name == "family":
        return _family(data, source, attentions, seeds, steps)
    if checkpoint is not None:
        return _finetuning(data, source, attentions, seeds, steps, checkpoint)
    asked: seq2seq.Recipe | Plan | pretraining_plans.Study
    if name == "seq2seq":
        asked, names = _recipe(data), list(attentions) or ["dot", "none"]
        known: Sequence[str] = ATTENTIONS
    else:
        asked = _plan(data) if name == "transformer" else _study(data)
        known = list(asked.variants)
        names = list(attentions) or list(known)
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ExperimentError(f"{name} has no variant {unknown[0]!r}; choose among {', '.join(known)}")
    command, label = ["course", "experiment", name, "--data", data], f"{name}-{data}"
    try:
        if steps is not None:
            asked = asked.shortened(steps)
            command += ["--steps", str(steps)]
            label += f"-{steps}-steps"
        if isinstance(asked, pretraining_plans.Study):
            return pretraining_plans.record_study(label, command, asked, names, seeds, source)
        runs = [_run(asked, variant, seed) for seed in seeds for variant in names]
        return _record(label, command, asked, runs, source)
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _layers(data: str, source: str | None, models: Sequence[str], seeds: Sequence[int], steps: int | None) -> Path:
    """Measure frozen checkpoints; there is nothing to train for some number of steps."""
    if data not in layer_table.STUDIES:
        raise ExperimentError(f"layers has no study of {data!r}; it has: {', '.join(layer_table.STUDIES)}")
    study = layer_table.STUDIES[data]
    if steps is not None:
        raise ExperimentError("layers measures checkpoints as they are; leave out --steps")
    if unknown := sorted(set(models) - set(study.models)):
        raise ExperimentError(f"layers of {data} has no model {unknown[0]!r}; choose among {', '.join(study.models)}")
    command = ["course", "experiment", "layers", "--data", data]
    try:
        return layer_table.record_layers(f"layers-{data}", command, study, models or study.models, seeds, source)
    except (ValueError, OSError) as error:
        raise ExperimentError(str(error)) from error


def _finetuning(
    data: str, source: str | None, variants: Sequence[str], seeds: Sequence[int], steps: int | None, checkpoint: str
) -> Path:
    """Fine-tune a checkpoint on a task in several ways."""
    if data not in finetuning_runs.PLANS:
        raise ExperimentError(f"finetuning has no plan {data!r}; it has: {', '.join(finetuning_runs.PLANS)}")
    study = finetuning_runs.PLANS[data]
    if unknown := sorted(set(variants) - set(study.variants)):
        raise ExperimentError(
            f"finetuning on {data} has no variant {unknown[0]!r}; choose among {'; '.join(study.variants)}"
        )
    # The folder's name alone: where it lies is a matter of this machine.
    command = ["course", "experiment", "finetuning", "--data", data, "--checkpoint", Path(checkpoint).name]
    label = f"finetuning-{data}"
    try:
        if steps is not None:
            study = study.shortened(steps)
            command += ["--steps", str(steps)]
            label += f"-{steps}-steps"
        return finetuning_runs.record_finetuning(
            label, command, study, checkpoint, variants or list(study.variants), seeds, source
        )
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _sentences(
    data: str, source: str | None, variants: Sequence[str], seeds: Sequence[int], steps: int | None, checkpoint: str
) -> Path:
    """Train sentence encoders and judge their vectors."""
    if data not in sentence_plans.PLANS:
        raise ExperimentError(f"sentences has no plan {data!r}; it has: {', '.join(sentence_plans.PLANS)}")
    study = sentence_plans.PLANS[data]
    if unknown := sorted(set(variants) - set(study.variants)):
        raise ExperimentError(
            f"sentences of {data} has no variant {unknown[0]!r}; choose among {'; '.join(study.variants)}"
        )
    command = ["course", "experiment", "sentences", "--data", data, "--checkpoint", Path(checkpoint).name]
    label = f"sentences-{data}"
    try:
        if steps is not None:
            study = study.shortened(steps)
            command += ["--steps", str(steps)]
            label += f"-{steps}-steps"
        return sentence_plans.record_sentences(
            label, command, study, checkpoint, variants or list(study.variants), seeds, source
        )
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _family(data: str, source: str | None, variants: Sequence[str], seeds: Sequence[int], steps: int | None) -> Path:
    """Compare members of the family with BERT."""
    if data not in family_runs.STUDIES:
        raise ExperimentError(f"family has no study of {data!r}; it has: {', '.join(family_runs.STUDIES)}")
    study = family_runs.STUDIES[data]
    if unknown := sorted(set(variants) - set(study.variants)):
        raise ExperimentError(
            f"family on {data} has no variant {unknown[0]!r}; choose among {'; '.join(study.variants)}"
        )
    command, label = ["course", "experiment", "family", "--data", data], f"family-{data}"
    try:
        if steps is not None:
            study = study.shortened(steps)
            command += ["--steps", str(steps)]
            label += f"-{steps}-steps"
        return family_runs.record_family(label, command, study, variants or list(study.variants), seeds, source)
    except (ValueError, OSError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _errors(
    data: str, source: str | None, variants: Sequence[str], seeds: Sequence[int], steps: int | None, checkpoint: str
) -> Path:
    """Look at what one fine-tuned model gets wrong; the study says which."""
    if data not in error_runs.STUDIES:
        raise ExperimentError(f"errors has no study of {data!r}; it has: {', '.join(error_runs.STUDIES)}")
    if steps is not None or variants or 0 not in seeds:
        raise ExperimentError("errors looks at the one model of its study, of seed 0; leave out --steps and --variant")
    command = ["course", "experiment", "errors", "--data", data, "--checkpoint", Path(checkpoint).name]
    try:
        return error_runs.record_errors(f"errors-{data}", command, error_runs.STUDIES[data], checkpoint, source)
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error


def _recipe(data: str) -> seq2seq.Recipe:
    if data not in seq2seq.RECIPES:
        raise ExperimentError(f"seq2seq has no recipe for {data!r}; it has: {', '.join(seq2seq.RECIPES)}")
    return seq2seq.RECIPES[data]


def _plan(data: str) -> Plan:
    if data not in transformer.PLANS:
        raise ExperimentError(f"transformer has no plan {data!r}; it has: {', '.join(transformer.PLANS)}")
    return transformer.PLANS[data]


def _study(data: str) -> pretraining_plans.Study:
    if data not in pretraining_plans.PLANS:
        raise ExperimentError(f"pretraining has no plan {data!r}; it has: {', '.join(pretraining_plans.PLANS)}")
    return pretraining_plans.PLANS[data]


def _run(asked: seq2seq.Recipe | Plan, name: str, seed: int) -> _Run:
    if isinstance(asked, Plan):
        variant = asked.variants[name]
        return _Run({"variant": name, "seed": seed}, variant.recipe, variant.attention, seed)
    attention = None if name == "none" else name
    return _Run({"attention": attention, "seed": seed}, asked, attention, seed)


def _record(
    label: str, command: Sequence[str], asked: seq2seq.Recipe | Plan, runs: Sequence[_Run], source: str | None
) -> Path:
    """Do the runs that the record lacks."""
    _held(label, asked)  # another configuration is an error before any work is done
    corpus = seq2seq.prepare(asked.recipe if isinstance(asked, Plan) else asked, source)
    for key, recipe, attention, seed in runs:
        if any(result.items() >= key.items() for result in _held(label, asked)):
            continue
        which = "-".join(str(value) for value in key.values()).replace(" ", "-")
        checkpoint = CHECKPOINTS / f"{label}-{which}.safetensors"
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        trained = seq2seq.train_and_score(recipe, corpus, attention, seed, checkpoint)
        results = [*_held(label, asked), {**key, **trained.summary()}]
        records.save(records.make(label, command, asked, results), records.RESULTS)
    return records.RESULTS / f"{label}.json"


def _held(label: str, asked: seq2seq.Recipe | Plan) -> list[dict[str, Any]]:
    try:
        return records.held(label, asked, plan_from if isinstance(asked, Plan) else seq2seq.recipe_from)
    except ValueError as error:
        raise ExperimentError(str(error)) from error
