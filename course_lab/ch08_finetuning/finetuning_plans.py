"""Chapter 8's recorded comparisons as plans: which ways of using a checkpoint, on which
task, with how many labels.

Ways: "fine-tuned"; "frozen", where only the head learns; "from scratch", the same model
with random weights; for single sentences "features", a logistic regression on frozen
states; "averaged", the mean of models that other plans have fine-tuned; and for choices
"longest", a control that reads nothing and takes the longest ending.
`course_lab.ch08_finetuning.finetuning_runs` runs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from course_lab.ch08_finetuning.features import WAYS, Way
from course_lib.finetuning.finetune import FineTuningConfig

USES = ("fine-tuned", "frozen", "from scratch", "features", "averaged", "longest")


@dataclass(frozen=True)
class Variant:
    """One way of using a checkpoint.

    Parameters
    ----------
    use
        One of `USES`.
    labels
        Rows to learn from, drawn anew for each seed; None for all.
    config
        How it is fine-tuned; the seed is the run's.
    way
        For "features": which states.
    whole
        Draw whole sentences only, where the train split has phrases cut out of them
        too.
    plans
        For "averaged": keys of `PLANS`, each of one variant whose model is kept.
    seeds
        For "averaged": which seeds' models of those plans.
    mean
        Give a class from the mean of all states in place of [CLS].
    rejoined
        Read sentences as people write them, where they were cut up for a treebank
        (`course_lib.data.treebank`).
    """

    use: str
    labels: int | None = None
    config: FineTuningConfig = field(default_factory=FineTuningConfig)
    way: Way = WAYS[1]
    whole: bool = False
    plans: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    mean: bool = False
    rejoined: bool = False

    def __post_init__(self) -> None:
        if self.use not in USES:
            raise ValueError(f"use is {self.use!r}; choose one of {', '.join(USES)}")


@dataclass(frozen=True)
class FineTuningStudy:
    """What is compared on a task.

    Parameters
    ----------
    data
        A key of `course_lab.ch08_finetuning.finetuning_tasks.SPECS`.
    variants
        By name.
    max_length
        Tokens of an input.
    tested
        Rows to test on, always the same; None for all.
    """

    data: str
    variants: Mapping[str, Variant]
    max_length: int = 128
    tested: int | None = None

    def shortened(self, steps: int) -> "FineTuningStudy":
        """Return the same comparison with so many steps in each fine-tuning."""
        changed = {
            name: replace(variant, config=replace(variant.config, steps=steps))
            for name, variant in self.variants.items()
        }
        return replace(self, variants=changed)


def _study(
    data: str,
    labels: int | None,
    epochs: int,
    max_length: int,
    tested: int | None = None,
    batch_size: int = 32,
) -> FineTuningStudy:
    """The three ways of fine-tuning, each with the same labels; the rates are those of
    small models."""
    tuned = FineTuningConfig(
        epochs=epochs, learning_rate=1e-4, batch_size=batch_size, precision="bfloat16"
    )
    head = replace(tuned, learning_rate=1e-3, frozen="encoder")
    shown = "all" if labels is None else str(labels)
    uses = {"fine-tuned": tuned, "frozen": head, "from scratch": tuned}
    variants = {
        f"{use}, {shown}": Variant(use, labels, config) for use, config in uses.items()
    }
    return FineTuningStudy(data, variants, max_length, tested)


def _reviews() -> FineTuningStudy:
    """SST-2: one pass through all phrases; or 2,000 whole sentences, which do for a
    frozen model."""
    study, few = _study("sst2", None, 1, 64), _study("sst2", 2000, 3, 64)
    sentences = {
        name: replace(variant, whole=True) for name, variant in few.variants.items()
    }
    features = Variant("features", 2000, way=WAYS[2], whole=True)
    return replace(
        study, variants={**study.variants, **sentences, "features, 2000": features}
    )


STEPS: Mapping[int, int] = {32: 50, 200: 100, 2000: 200}  # by the number of labels


def _curve(
    data: str, rate: float, batch_size: int = 16, max_length: int = 128, times: int = 1
) -> FineTuningStudy:
    """Each way with few labels and with many; of a few rates, the one that did best on
    validation rows with 200."""
    tuned = FineTuningConfig(
        learning_rate=rate, batch_size=batch_size, precision="bfloat16"
    )
    head = replace(tuned, learning_rate=1e-2, frozen="encoder")
    scratch = replace(tuned, learning_rate=5e-4)
    variants = {}
    for labels, steps in STEPS.items():
        for use, config in (
            ("fine-tuned", tuned),
            ("frozen", head),
            ("from scratch", scratch),
        ):
            variants[f"{use}, {labels}"] = Variant(
                use, labels, replace(config, steps=times * steps)
            )
    return FineTuningStudy(data, variants, max_length)


def _second() -> FineTuningStudy:
    """SST-2, for a model that has passed through all phrases: the test has whole
    sentences, so end with them."""
    config = FineTuningConfig(
        epochs=1, learning_rate=1e-4, batch_size=32, precision="bfloat16"
    )
    return FineTuningStudy(
        "sst2",
        {"fine-tuned, sentences": Variant("fine-tuned", None, config, whole=True)},
        64,
    )


def _passes(rate: float) -> FineTuningStudy:
    """SST-2 with three passes through all phrases, as the paper fine-tunes: its largest
    rate is 5e-5."""
    config = FineTuningConfig(
        epochs=3, learning_rate=rate, batch_size=32, precision="bfloat16"
    )
    return FineTuningStudy(
        "sst2", {"fine-tuned, three passes": Variant("fine-tuned", None, config)}, 64
    )


def _steadied(
    rate: float, weight: float, mean: bool = False, rejoined: bool = False
) -> FineTuningStudy:
    """SST-2 with two remedies against overfitting: dropout may not change what is said,
    and weights are averaged."""
    config = FineTuningConfig(
        epochs=2,
        learning_rate=rate,
        batch_size=32,
        warmup=0.06,
        precision="bfloat16",
        consistency=weight,
        averaging=0.999,
    )
    variant = Variant("fine-tuned", None, config, mean=mean, rejoined=rejoined)
    return FineTuningStudy("sst2", {"fine-tuned, steadied": variant}, 64)


def _seeds() -> FineTuningStudy:
    """SST-2, the mean of three models that differ by chance alone: by the new head, the
    order of the rows, dropout."""
    variant = Variant(
        "averaged", None, plans=("sst2-rejoined",), seeds=(0, 1, 2), rejoined=True
    )
    return FineTuningStudy("sst2", {"mean of three seeds": variant}, 64)


def _longest(data: str, tested: int) -> FineTuningStudy:
    """What the length of an ending alone tells of whether it is the right one."""
    return FineTuningStudy(data, {"longest ending": Variant("longest")}, tested=tested)


def _mean() -> FineTuningStudy:
    """SST-2, the mean of the models with three passes: runs at different rates end at
    different weights."""
    plans = ("sst2-small-rate", "sst2-passes", "sst2-large-rate")
    return FineTuningStudy(
        "sst2", {"mean of three rates": Variant("averaged", None, plans=plans)}, 64
    )


# On real data a run takes minutes to an hour of one processor core: hence few labels,
# and rows left out of tests.
PLANS: Mapping[str, FineTuningStudy] = {
    "sst2": _reviews(),
    "sst2-sentences": _second(),
    "sst2-passes": _passes(1e-4),
    "sst2-small-rate": _passes(5e-5),
    "sst2-large-rate": _passes(2e-4),
    "sst2-steadied": _steadied(5e-5, 1.0),
    "sst2-steadied-mean": _steadied(7e-5, 2.0, mean=True),
    "sst2-rejoined": _steadied(5e-5, 1.0, rejoined=True),
    "sst2-rejoined-mean": _steadied(1e-4, 1.0, mean=True, rejoined=True),
    "sst2-mean": _mean(),
    "sst2-seeds": _seeds(),
    "cola": _study("cola", 1000, epochs=3, max_length=48, batch_size=16),
    "mrpc": _study("mrpc", 1000, epochs=2, max_length=96, tested=800, batch_size=16),
    "rte": _study("rte", 1000, epochs=2, max_length=128, batch_size=16),
    "stsb": _study("stsb", 1000, epochs=2, max_length=96, batch_size=16),
    "wnut17": _study("wnut17", 1000, epochs=3, max_length=64, batch_size=16),
    "squad": _study("squad", 600, epochs=2, max_length=256, tested=300, batch_size=16),
    "mctest": _study("mctest", 300, epochs=1, max_length=320, tested=200, batch_size=8),
    "mctest-longest": _longest("mctest", tested=200),
    "pydocs-topic": _curve("pydocs-topic", 3e-4),
    "pydocs-pair": _curve("pydocs-pair", 5e-5),
    "pydocs-tag": _curve("pydocs-tag", 3e-4),
    "pydocs-span": _curve("pydocs-span", 3e-4, batch_size=8, max_length=256, times=2),
    "pydocs-choice": _curve("pydocs-choice", 1e-4, batch_size=8),
}


# On real data a run takes minutes, and a variant may have one seed: pages show no
# interval then.
DEAR = (
    "sst2",
    "sst2-sentences",
    "sst2-passes",
    "sst2-small-rate",
    "sst2-large-rate",
    "sst2-steadied",
    "sst2-steadied-mean",
    "sst2-rejoined",
    "sst2-rejoined-mean",
    "sst2-mean",
    "sst2-seeds",
    "cola",
    "mrpc",
    "rte",
    "stsb",
    "wnut17",
    "squad",
    "mctest",
    "mctest-longest",
)
