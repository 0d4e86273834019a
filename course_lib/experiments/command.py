"""What ``course experiment`` does: run what the record lacks, and save it after each run."""

from collections.abc import Sequence
from pathlib import Path

from course_lib.checkpoint import CheckpointError
from course_lib.experiments import records, seq2seq, transformer
from course_lib.experiments.plans import Plan, plan_from
from course_lib.training import TrainingError

CHECKPOINTS = Path("_build") / "experiments"
ATTENTIONS = ("dot", "bilinear", "additive", "none")
EXPERIMENTS = ("seq2seq", "transformer")


class ExperimentError(RuntimeError):
    """An experiment cannot run; the message says why and what to do."""


def record_experiment(
    name: str, data: str, source: str | None, attentions: Sequence[str], seeds: Sequence[int], steps: int | None = None
) -> Path:
    """Run an experiment for each seed and each model that it compares, and record it.

    Parameters
    ----------
    name
        The experiment: "seq2seq" or "transformer".
    data
        For "seq2seq", a data set that `seq2seq.RECIPES` has a recipe for; for "transformer", a plan in
        `transformer.PLANS`.
    source
        As in `course_lib.data.load`.
    attentions
        For "seq2seq": "dot", "bilinear", "additive" or "none". For "transformer", names of the plan's variants. Empty:
        dot and none, or all variants.
    seeds
        One run for each.
    steps
        Training steps, if not the recipe's own; the record then has the steps in its name.

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
    if name == "transformer":
        return _record_plan(data, source, attentions, seeds, steps)
    attentions = attentions or ("dot", "none")
    if data not in seq2seq.RECIPES:
        raise ExperimentError(f"seq2seq has no recipe for {data!r}; it has: {', '.join(seq2seq.RECIPES)}")
    unknown = sorted(set(attentions) - set(ATTENTIONS))
    if unknown:
        raise ExperimentError(f"attention is {unknown[0]!r}; choose among {', '.join(ATTENTIONS)}")
    recipe = seq2seq.RECIPES[data]
    command = ["course", "experiment", name, "--data", data]
    label = f"{name}-{data}"
    try:
        if steps is not None:
            recipe = recipe.shortened(steps)
            command += ["--steps", str(steps)]
            label += f"-{steps}-steps"
        results = _held(label, recipe)
        corpus = seq2seq.prepare(recipe, source)
        path = records.RESULTS / f"{label}.json"
        for seed in seeds:
            for attention in attentions:
                if any((result["attention"] or "none", result["seed"]) == (attention, seed) for result in results):
                    continue
                checkpoint = CHECKPOINTS / f"{label}-{attention}-{seed}.safetensors"
                checkpoint.parent.mkdir(parents=True, exist_ok=True)
                trained = seq2seq.train_and_score(
                    recipe, corpus, None if attention == "none" else attention, seed, checkpoint
                )
                results.append(trained.summary())
                path = records.save(records.make(label, command, recipe, results), records.RESULTS)
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error
    return path


def _record_plan(data: str, source: str | None, names: Sequence[str], seeds: Sequence[int], steps: int | None) -> Path:
    if data not in transformer.PLANS:
        raise ExperimentError(f"transformer has no plan {data!r}; it has: {', '.join(transformer.PLANS)}")
    plan = transformer.PLANS[data]
    unknown = sorted(set(names) - set(plan.variants))
    if unknown:
        raise ExperimentError(f"the plan {data} has no variant {unknown[0]!r}; it has: {', '.join(plan.variants)}")
    command, label = ["course", "experiment", "transformer", "--data", data], f"transformer-{data}"
    try:
        if steps is not None:
            plan = plan.shortened(steps)
            command += ["--steps", str(steps)]
            label += f"-{steps}-steps"
        results = _held(label, plan)
        corpus = seq2seq.prepare(plan.recipe, source)
        path = records.RESULTS / f"{label}.json"
        for seed in seeds:
            for name in names or plan.variants:
                if any((result["variant"], result["seed"]) == (name, seed) for result in results):
                    continue
                variant = plan.variants[name]
                checkpoint = CHECKPOINTS / f"{label}-{name.replace(' ', '-')}-{seed}.safetensors"
                checkpoint.parent.mkdir(parents=True, exist_ok=True)
                trained = seq2seq.train_and_score(variant.recipe, corpus, variant.attention, seed, checkpoint)
                results.append({"variant": name, **trained.summary()})
                path = records.save(records.make(label, command, plan, results), records.RESULTS)
    except (ValueError, OSError, CheckpointError, TrainingError) as error:
        raise ExperimentError(str(error)) from error
    return path


def _held(label: str, asked: seq2seq.Recipe | Plan) -> list[dict]:
    """The runs that the record holds already, if it was made with this very recipe or plan."""
    if not (records.RESULTS / f"{label}.json").is_file():
        return []
    record = records.load(label, records.RESULTS)
    load = plan_from if isinstance(asked, Plan) else seq2seq.recipe_from
    if load(record.configuration) != asked:
        raise ExperimentError(
            f"book/results/{label}.json was made with another configuration; move it away to record this one"
        )
    return record.results
