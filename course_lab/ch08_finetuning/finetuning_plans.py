"""Chapter 8's recorded comparisons as plans: which ways of using a checkpoint, on which
task, with how many labels.

They are run with ``course record finetuning --data sst2 --checkpoint FOLDER``, once for
each checkpoint that is compared. Ways: "fine-tuned"; "frozen", where only the head
learns; "from scratch", the same model with random weights; "words" and "states", linear
models of :mod:`course_lab.ch08_finetuning.baselines`; for single sentences "features",
a logistic regression on one kind of frozen states; "averaged", the mean of models that
other plans have fine-tuned; and for choices "longest", a control that reads nothing and
takes the longest ending.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from course_lab import stand_ins
from course_lab.ch08_finetuning.features import WAYS
from course_lab.ch08_finetuning.few_rows import LENGTH, little, task
from course_lab.ch08_finetuning.finetuning_runs import (
    LINEAR,
    Variant,
    run_variant,
    score_average,
)
from course_lab.ch08_finetuning.finetuning_tasks import Rows, Task, read_task
from course_lab.study import Study
from course_lib.bert.files import checkpoint_folder
from course_lib.finetuning.finetune import FineTuningConfig

#: Fine-tuned models, for "averaged" and ``course record errors``.
KEPT = Path("_build") / "finetuned"


class Inputs(NamedTuple):
    """What runs read: a task, its tested rows, a checkpoint's folder and name, and
    where models are kept, if they are."""

    task: Task
    tested: Rows
    folder: Path
    checkpoint: str
    kept: Path | None

    def kept_folder(self, plan: str, variant: str, seed: int = 0) -> Path:
        """Return where a fine-tuned model is kept."""
        words = [plan, self.checkpoint, *variant.replace(",", "").split()]
        later = [f"seed-{seed}"] if seed else []
        return (self.kept or KEPT) / "-".join([*words, *later])


def read(study: Study, source: str | None, checkpoint: str | None) -> Inputs:
    """Read the task of a study, and find a checkpoint."""
    if checkpoint is None:
        raise ValueError(f"{study.name} needs a checkpoint")
    folder = checkpoint_folder(checkpoint)
    task = read_task(study.shared["data"], source)
    tested = task.test.sample(study.shared["tested"], seed=0)
    return Inputs(task, tested, folder, Path(checkpoint).name, KEPT)


def run(study: Study, key: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Use the checkpoint in one way, and score it on rows that it did not see."""
    variant, longest = study.variants[key], study.shared["max_length"]
    if variant.use == "averaged":
        kept = [
            inputs.kept_folder(plan, only, x)
            for plan in variant.plans
            for only in PLANS[plan].variants  # one
            for x in variant.seeds
        ]
        return score_average(
            inputs.task, variant, kept, inputs.folder, longest, inputs.tested
        )
    plan = study.name.removeprefix("finetuning-")
    keep = inputs.kept is not None and _is_kept(plan, variant, seed)
    return run_variant(
        inputs.task,
        variant,
        inputs.folder,
        seed,
        longest,
        inputs.tested,
        inputs.kept_folder(plan, key, seed) if keep else None,
    )


def _is_kept(plan: str, variant: Variant, seed: int) -> bool:
    """Whether a later record needs the model; that of a shortened study none does."""
    means = [x for study in PLANS.values() for x in study.variants.values()]
    wanted = seed == 0 or any(plan in x.plans and seed in x.seeds for x in means)
    return variant.use == "fine-tuned" and wanted and plan in PLANS


def probe(study: Study, key: str) -> tuple[Study, Inputs]:
    """Shorten a study, with few rows of the form of its task; fine-tune what it takes a
    mean of."""
    variant = little(study.variants[key])
    short = {**study.shared, "max_length": LENGTH}
    inputs = few_inputs(study)
    if variant.use == "averaged":
        inputs = inputs._replace(kept=stand_ins.new_folder())
        for plan in variant.plans:
            [(only, tuned)] = PLANS[plan].variants.items()
            for seed in variant.seeds:
                run_variant(
                    inputs.task,
                    little(tuned),
                    inputs.folder,
                    seed,
                    LENGTH,
                    inputs.tested,
                    inputs.kept_folder(plan, only, seed),
                )
    return replace(study, variants={key: variant}, shared=short), inputs


def few_inputs(study: Study) -> Inputs:
    """Return few rows of the form of a study's task, and a stand-in of a checkpoint."""
    given, folder = task(study.shared["data"]), stand_ins.checkpoint()
    return Inputs(given, given.test, folder, folder.name, None)


def study_of(
    name: str,
    data: str,
    variants: Mapping[str, Variant],
    max_length: int = 128,
    tested: int | None = None,
) -> Study:
    """Return what is compared on a task of `finetuning_tasks.SPECS`, with inputs of so
    many tokens; `tested` rows are scored, always the same, or all."""
    shared = {"data": data, "max_length": max_length, "tested": tested}
    return Study(
        f"finetuning-{name}",
        variants,
        read,
        run,
        probe,
        shared,
        (data,),
        of_checkpoint=True,
    )


Variants = dict[str, Variant]
_TUNED = FineTuningConfig(epochs=1, learning_rate=1e-4, precision="bfloat16")


def _three(
    labels: int | None, epochs: int, batch_size: int = 32, **more: Any
) -> Variants:
    """The three ways of fine-tuning, each with the same labels; the rates are those of
    small models."""
    tuned = replace(_TUNED, epochs=epochs, batch_size=batch_size)
    head = replace(tuned, learning_rate=1e-3, frozen="encoder")
    uses = {"fine-tuned": tuned, "frozen": head, "from scratch": tuned}
    shown = "all" if labels is None else str(labels)
    return {f"{x}, {shown}": Variant(x, labels, y, **more) for x, y in uses.items()}


def _reviews() -> Variants:
    """SST-2: one pass through all phrases; or 2,000 whole sentences, which do for a
    frozen model."""
    features = Variant("features", 2000, way=WAYS[2], whole=True)
    few = _three(2000, 3, whole=True)
    return {**_three(None, 1), **few, "features, 2000": features}


STEPS: Mapping[int, int] = {32: 50, 200: 100, 2000: 200}  # by the number of labels


def _linear(labels: int | None) -> Variants:
    shown = "all" if labels is None else labels
    return {f"{use}, {shown}": Variant(use, labels) for use in LINEAR}


def _curve(
    rate: float, batch_size: int = 16, times: int = 1, linear: bool = True
) -> Variants:
    """Each way with few labels and with many; of a few rates, the one that did best on
    validation rows with 200."""
    tuned = FineTuningConfig(
        learning_rate=rate, batch_size=batch_size, precision="bfloat16"
    )
    head = replace(tuned, learning_rate=1e-2, frozen="encoder")
    scratch = replace(tuned, learning_rate=5e-4)
    uses = {"fine-tuned": tuned, "frozen": head, "from scratch": scratch}
    # until five looks in a row have found no smaller loss
    ended = replace(
        scratch, precision="float32", steps=4000, evaluate_every=100, patience=5
    )
    found = {
        f"{use}, {labels}": Variant(use, labels, replace(config, steps=times * steps))
        for labels, steps in STEPS.items()
        for use, config in uses.items()
    }
    for labels in STEPS:
        found |= _linear(labels) if linear else {}
        found[f"to the end, {labels}"] = Variant(
            "from scratch", labels, ended, held=400
        )
    return found


def _full(held: int) -> Variants:
    """Small tasks of GLUE on their full training sets but for a development split,
    which each pass is looked at on; no setting was tuned."""
    tuned = FineTuningConfig(epochs=3, learning_rate=5e-4, batch_size=32)
    return {
        "fine-tuned, all": Variant("fine-tuned", None, tuned, held=held),
        "from scratch, all": Variant("from scratch", None, tuned, held=held),
        "words, all": Variant("words", held=held),
        "states, all": Variant("states", held=held),
    }


def _passes(rate: float) -> Variants:
    """SST-2 with three passes through all phrases, as the paper fine-tunes: its largest
    rate is 5e-5."""
    config = replace(_TUNED, epochs=3, learning_rate=rate)
    return {"fine-tuned, three passes": Variant("fine-tuned", None, config)}


def _steadied(rate: float, weight: float, **more: Any) -> Variants:
    """SST-2 with two remedies against overfitting: dropout may not change what is said,
    and weights are averaged."""
    config = replace(
        _TUNED,
        epochs=2,
        learning_rate=rate,
        warmup=0.06,
        consistency=weight,
        averaging=0.999,
    )
    return {"fine-tuned, steadied": Variant("fine-tuned", None, config, **more)}


# On real data a run takes minutes to an hour of one processor core: hence few labels,
# and rows left out of tests.
_SST2: Mapping[str, Variants] = {
    "sst2": _reviews(),
    # For a model that has passed through all phrases: the test has whole sentences.
    "sst2-sentences": {
        "fine-tuned, sentences": Variant("fine-tuned", None, _TUNED, whole=True)
    },
    "sst2-passes": _passes(1e-4),
    "sst2-small-rate": _passes(5e-5),
    "sst2-large-rate": _passes(2e-4),
    "sst2-steadied": _steadied(5e-5, 1.0),
    "sst2-steadied-mean": _steadied(7e-5, 2.0, mean=True),
    "sst2-rejoined": _steadied(5e-5, 1.0, rejoined=True),
    "sst2-rejoined-mean": _steadied(1e-4, 1.0, mean=True, rejoined=True),
    # Runs at different rates end at different weights.
    "sst2-mean": {
        "mean of three rates": Variant(
            "averaged", plans=("sst2-small-rate", "sst2-passes", "sst2-large-rate")
        )
    },
    # Three models that differ by chance alone: the new head, the order, dropout.
    "sst2-seeds": {
        "mean of three seeds": Variant(
            "averaged", plans=("sst2-rejoined",), seeds=(0, 1, 2), rejoined=True
        )
    },
}
_OTHERS = (
    study_of("cola", "cola", {**_three(1000, 3, 16), **_full(500)}, 48),
    study_of("mrpc", "mrpc", {**_three(1000, 2, 16), **_full(500)}, 96, tested=800),
    study_of("rte", "rte", {**_three(1000, 2, 16), **_full(250)}, 128),
    study_of("stsb", "stsb", {**_three(1000, 2, 16), **_full(500)}, 96),
    study_of("wnut17", "wnut17", _three(1000, 3, 16), 64),
    study_of("squad", "squad", _three(600, 2, 16), 256, tested=300),
    study_of("mctest", "mctest", _three(300, 1, 8), 320, tested=200),
    study_of(
        "mctest-longest", "mctest", {"longest ending": Variant("longest")}, tested=200
    ),
    study_of("pydocs-topic", "pydocs-topic", _curve(3e-4)),
    study_of("pydocs-pair", "pydocs-pair", _curve(5e-5)),
    study_of("pydocs-tag", "pydocs-tag", _curve(3e-4)),
    study_of("pydocs-span", "pydocs-span", _curve(3e-4, 8, times=2, linear=False), 256),
    study_of("pydocs-choice", "pydocs-choice", _curve(1e-4, 8)),
)
PLANS: dict[str, Study] = {
    study.name.removeprefix("finetuning-"): study
    for study in (*(study_of(x, "sst2", y, 64) for x, y in _SST2.items()), *_OTHERS)
}


# On real data a run takes minutes, and a variant may have one seed: pages show no
# interval then.
DEAR = tuple(name for name in PLANS if not name.startswith("pydocs-"))
