"""Which noun does "it" attend to, and does it matter? A probe of a Transformer that
must resolve a pronoun (chapter 3).

The model translates `pronouns` (:mod:`course_lib.data.pronouns`): il or elle, and the
adjective's ending, depend on which of two nouns "it" stands for. Three questions, each
asked of pairs of nouns that training never showed:

1. Does the model resolve the pronoun? `resolved`: the share of translations with the
   right pronoun and adjective.
2. Do weights show it? `shares`: how often a word attends to the noun that "it" stands
   for more than to the other, in the head that does best on validation. By chance: 0.5.
   Controls: the same weights with source words permuted, the weights of another
   sentence, an untrained model.
3. Does the model need it? `Probe.cuts`: how often the pronoun is right when some words
   may not look at others. A weight can be large and of no use (Jain and Wallace 2019);
   such a cut shows use.

``course record transformer --data pronouns`` trains the model and records its
`Probe`.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from course_lab.ch01_seq2seq.seq2seq import Corpus, Recipe, Trained
from course_lab.ch03_transformer.pronoun_attention import (
    QUERIES,
    Rows,
    another_sentence,
    attention_rows,
    permuted_words,
    preference,
)
from course_lab.ch03_transformer.pronoun_cuts import CUTS, pronoun_accuracy
from course_lab.probing import start
from course_lib.metrics.scores import Interval, mean_interval
from course_lib.training.loop import TrainingConfig, device, set_seed
from course_lib.transformer.model import Transformer

RECIPE = Recipe(
    "pronouns",
    transformer={
        "dim": 64,
        "num_heads": 4,
        "num_layers": 2,
        "hidden_dim": 128,
        "norm": "pre",
    },
    batch_size=64,
    training=TrainingConfig(
        steps=300,
        learning_rate=5e-3,
        warmup_steps=30,
        schedule="linear",
        progress=False,
    ),
    max_length=20,
    length_bins=(14,),
)


def resolved(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of translations that end as the reference does, from "parce qu'"
    on: pronoun and adjective."""
    ends = [
        [sentence.partition("parce")[2] for sentence in side]
        for side in (texts, references)
    ]
    return sum(a == b != "" for a, b in zip(*ends, strict=True)) / len(references)


@dataclass(frozen=True)
class Probe:
    """What one trained model answers.

    Parameters
    ----------
    seed
        Of its training.
    resolved
        Share of test translations, greedy, with the right pronoun and adjective.
    shares
        For "trained", "permuted words", "another sentence" and "untrained", the
        `preference` of each of `QUERIES`.
    cuts
        For each of `CUTS`, the share of test sentences with the right pronoun.
    untrained
        That share before training, with nothing cut.
    """

    seed: int
    resolved: float
    shares: dict[str, dict[str, float]]
    cuts: dict[str, float]
    untrained: float


def probe(run: Trained, corpus: Corpus, size: int | None = 600) -> Probe:
    """Ask a trained model all three questions."""
    model = run.model
    if not isinstance(model, Transformer):
        raise ValueError(
            f"this run trained a {type(model).__name__}; the probe reads a"
            " Transformer's weights"
        )
    set_seed(run.seed)
    # as it was before its training
    untrained = start(Transformer(model.config)).to(device())
    generator = torch.Generator().manual_seed(run.seed)
    trained_rows, untrained_rows = (
        _both_splits(model, corpus),
        _both_splits(untrained, corpus),
    )

    def control(change: Callable[[Rows, torch.Generator], Rows]) -> dict[str, float]:
        """Change the weights on both splits, and let the control choose its head as the
        model does."""
        return {
            query: preference(*(change(rows, generator) for rows in splits))
            for query, splits in trained_rows.items()
        }

    of_sources = {
        "trained": {
            query: preference(*splits) for query, splits in trained_rows.items()
        },
        "permuted words": control(permuted_words),
        "another sentence": control(another_sentence),
        "untrained": {
            query: preference(*splits) for query, splits in untrained_rows.items()
        },
    }
    return Probe(
        run.seed,
        resolved(run.texts, corpus.text["test"]["fr"]),
        of_sources,
        {
            name: pronoun_accuracy(model, corpus, cut, size)
            for name, cut in CUTS.items()
        },
        pronoun_accuracy(untrained, corpus, size=size),
    )


def of_pronouns(run: Trained, recipe: Recipe, corpus: Corpus) -> dict[str, Any]:
    """Probe chapter 3's model, a Transformer that has learned to resolve a pronoun
    (`probe`)."""
    return {"probe": asdict(probe(run, corpus))}


def _both_splits(model: Transformer, corpus: Corpus) -> dict[str, tuple[Rows, Rows]]:
    validation, test = (
        attention_rows(model, corpus, split) for split in ("validation", "test")
    )
    return {query: (validation[query], test[query]) for query in QUERIES}


# -- over seeds
# --------------------------------------------------------------------------------------


def shares(probes: Sequence[Probe]) -> dict[str, dict[str, Interval]]:
    """Return the mean share of each source of weights and each query over seeds, with
    its interval."""
    return {
        source: {
            query: mean_interval([probe.shares[source][query] for probe in probes])
            for query in QUERIES
        }
        for source in probes[0].shares
    }


def share_table(probes: Sequence[Probe]) -> str:
    """Write `shares` as a Markdown table: a row for each query, a column for each
    source of weights."""
    found = shares(probes)
    lines = [
        "| word that attends | " + " | ".join(found) + " |",
        "| --- |" + " --- |" * len(found),
    ]
    for query in QUERIES:
        cells = [
            f"{column[query].mean:.3f} ± {column[query].half_width:.3f}"
            for column in found.values()
        ]
        lines.append(f"| {query} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cut_table(probes: Sequence[Probe]) -> str:
    """Write the accuracies under each cut as a Markdown table, seed by seed: models
    resolve in ways of their own."""
    lines = [
        "| taken away | " + " | ".join(f"seed {probe.seed}" for probe in probes) + " |"
    ]
    lines.append("| --- |" + " --- |" * len(probes))
    lines += [
        f"| {name} | "
        + " | ".join(f"{probe.cuts[name]:.3f}" for probe in probes)
        + " |"
        for name in CUTS
    ]
    return "\n".join(lines)
