"""Experiments that compare variants of a model: a plan names the variants, each with
all that decides its runs.

`course_lab.ch03_transformer.transformer.PLANS` holds those of chapter 3, recorded with
``course record transformer --data NAME``.
"""

from dataclasses import dataclass, replace

from course_lab.ch01_seq2seq.seq2seq import Recipe


@dataclass(frozen=True)
class Variant:
    """One side of a comparison.

    Parameters
    ----------
    recipe
        Sizes and training.
    attention
        As in `course_lab.ch01_seq2seq.seq2seq.build`.
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
    """

    variants: dict[str, Variant]

    def __post_init__(self) -> None:
        if not self.variants:
            raise ValueError("a plan needs at least one variant")
        kinds = {data_of(variant.recipe) for variant in self.variants.values()}
        if len(kinds) > 1:
            raise ValueError(
                f"the variants prepare their data in {len(kinds)} ways, so their scores"
                " cannot be compared; give all the same data, tokenizer, vocab_size,"
                " test_size, max_source and max_test"
            )

    @property
    def recipe(self) -> Recipe:
        """A recipe that prepares the data of all variants."""
        return next(iter(self.variants.values())).recipe

    def shortened(self, steps: int) -> "Plan":
        """Return the same comparison, trained for fewer steps or more."""
        return Plan(
            {
                name: replace(v, recipe=v.recipe.shortened(steps))
                for name, v in self.variants.items()
            }
        )


def data_of(recipe: Recipe) -> tuple:
    """Return the settings that `course_lab.ch01_seq2seq.seq2seq.prepare` reads."""
    return (
        recipe.data,
        recipe.tokenizer,
        recipe.vocab_size,
        recipe.test_size,
        recipe.max_source,
        recipe.max_test,
    )
