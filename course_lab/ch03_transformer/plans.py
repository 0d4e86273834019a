"""One side of a comparison of translators (chapter 3)."""

from dataclasses import dataclass

from course_lab.ch01_seq2seq.seq2seq import Recipe


@dataclass(frozen=True)
class Variant:
    """One side of a comparison."""

    recipe: Recipe  # Sizes and training
    #: As in `course_lab.ch01_seq2seq.seq2seq.build`.
    attention: str | None = "transformer"


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
