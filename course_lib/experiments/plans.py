"""Experiments that compare variants of a model: a plan names the variants, each with all that decides its runs.

`course_lib.experiments.transformer.PLANS` holds those of chapter 3. A plan is trained live with `train_plan`, or
recorded with ``course experiment transformer --data NAME``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from course_lib.experiments.runs import train_jobs
from course_lib.experiments.seq2seq import Corpus, Recipe, Trained, recipe_from


@dataclass(frozen=True)
class Variant:
    """One side of a comparison.

    Parameters
    ----------
    recipe
        Sizes and training.
    attention
        As in `course_lib.experiments.seq2seq.build`.
    """

    recipe: Recipe
    attention: str | None = "transformer"


@dataclass(frozen=True)
class Plan:
    """The variants that an experiment compares.

    Parameters
    ----------
    variants
        By name; all use the same data, prepared in the same way.

    Raises
    ------
    ValueError
        If there is no variant, or two prepare their data differently.
    """

    variants: dict[str, Variant]

    def __post_init__(self) -> None:
        if not self.variants:
            raise ValueError("a plan needs at least one variant")
        kinds = {data_of(variant.recipe) for variant in self.variants.values()}
        if len(kinds) > 1:
            raise ValueError(
                f"the variants prepare their data in {len(kinds)} ways, so their scores cannot be compared; "
                "give all the same data, tokenizer, vocab_size, test_size and max_source"
            )

    @property
    def recipe(self) -> Recipe:
        """A recipe that prepares the data of all variants."""
        return next(iter(self.variants.values())).recipe

    def shortened(self, steps: int) -> "Plan":
        """Return the same comparison, trained for fewer steps or more."""
        return Plan({name: replace(v, recipe=v.recipe.shortened(steps)) for name, v in self.variants.items()})


def data_of(recipe: Recipe) -> tuple:
    """Return the settings that `course_lib.experiments.seq2seq.prepare` reads."""
    return (recipe.data, recipe.tokenizer, recipe.vocab_size, recipe.test_size, recipe.max_source)


def plan_from(configuration: Mapping) -> Plan:
    """Load a plan back from a record's configuration."""
    return Plan(
        {
            name: Variant(recipe_from(settings["recipe"]), settings["attention"])
            for name, settings in configuration["variants"].items()
        }
    )


def train_plan(plan: Plan, corpus: Corpus, seeds: Sequence[int], processes: int = 2) -> dict[str, list[Trained]]:
    """Train and score every variant with every seed.

    Parameters
    ----------
    plan, corpus
        What is compared, on what.
    seeds
        One run of each variant for each.
    processes
        How many run at once.

    Returns
    -------
    dict of str to list of Trained
        The variants in the plan's order, each with its runs in the order of the seeds.
    """
    jobs = [(variant.recipe, variant.attention, seed) for variant in plan.variants.values() for seed in seeds]
    runs = iter(train_jobs(jobs, corpus, processes))
    return {name: [next(runs) for _ in seeds] for name in plan.variants}
