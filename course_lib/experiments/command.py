"""What ``course experiment`` does: run what the record lacks, and save it after each run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from course_lib.checkpoint import CheckpointError
from course_lib.experiments import records, seq2seq
from course_lib.training import TrainingError

CHECKPOINTS = Path("_build") / "experiments"
ATTENTIONS = ("dot", "bilinear", "additive", "none")


class ExperimentError(RuntimeError):
    """An experiment cannot run; the message says why and what to do."""


def record_experiment(
    name: str, data: str, source: str | None, attentions: Sequence[str], seeds: Sequence[int], steps: int | None = None
) -> Path:
    """Run an experiment for each seed and each kind of attention, and record it.

    Parameters
    ----------
    name
        The experiment; there is one, "seq2seq".
    data
        A data set that `seq2seq.RECIPES` has a recipe for.
    source
        As in `course_lib.data.load`.
    attentions
        "dot", "bilinear", "additive" or "none".
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
    if name != "seq2seq":
        raise ExperimentError(f"there is no experiment {name!r}; there is: seq2seq")
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
            warmup = min(recipe.training.warmup_steps, steps)
            recipe = replace(recipe, training=replace(recipe.training, steps=steps, warmup_steps=warmup))
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


def _held(label: str, recipe: seq2seq.Recipe) -> list[dict]:
    """The runs that the record holds already, if it was made with this very recipe."""
    if not (records.RESULTS / f"{label}.json").is_file():
        return []
    record = records.load(label, records.RESULTS)
    if seq2seq.recipe_from(record.configuration) != recipe:
        raise ExperimentError(
            f"book/results/{label}.json was made with another configuration; move it away to record this one"
        )
    return record.results
