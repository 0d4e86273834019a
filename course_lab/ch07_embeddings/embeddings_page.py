"""What the pages of chapter 7 show of static vectors, and of the recorded models."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer

from course_lab import records
from course_lab.ch07_embeddings.context_models import KINDS
from course_lab.ch07_embeddings.real_senses import separations
from course_lab.ch07_embeddings.sense_stories import SenseStories
from course_lib.data.corpus import markdown_table
from course_lib.embeddings.static import StaticVectors


def neighbour_table(
    after: StaticVectors, before: StaticVectors, words: Sequence[str]
) -> str:
    """Write the nearest words of some words, after training and before."""

    def nearest(vectors: StaticVectors, word: str, most: int) -> str:
        found = vectors.nearest(word, most=most)
        return ", ".join(f"{other} {cosine:.2f}" for other, cosine in found)

    return markdown_table(
        ("word", "nearest, by cosine", "nearest before training"),
        [(f"*{w}*", nearest(after, w, 6), nearest(before, w, 1)) for w in words],
    )


def plural_pairs(vectors: StaticVectors, most: int = 300) -> list[tuple[str, str]]:
    """Pair frequent words with their form with *s*, where it has a vector too."""
    words = (word for word in vectors.words if len(word) > 3 and word + "s" in vectors)
    return [(word, word + "s") for word, _ in zip(words, range(most), strict=False)]


def found_plurals(vectors: StaticVectors, pairs: Sequence[tuple[str, str]]) -> float:
    """For how many words the form with *s* is among the five nearest, in percent."""
    found = [many in dict(vectors.nearest(one, most=5)) for one, many in pairs]
    return 100 * float(np.mean(found))


class Recorded(NamedTuple):
    """The recorded runs of ELMo, GPT and BERT on the stories."""

    record: records.Record
    runs: Mapping[str, Sequence[Mapping[str, Any]]]  # of each kind, by seed

    def over_seeds(self, kind: str, state: str, *figure: str) -> list[list[float]]:
        """Average a figure over the seeds: layer by layer, that of each word."""
        found: list[Any] = [run[state] for run in self.runs[kind]]
        for key in figure:
            found = [part[key] for part in found]
        return np.mean(found, axis=0).tolist()

    def separations(self) -> dict[str, list[list[float]]]:
        """Name the separations of each model, untrained and trained."""
        return {
            f"{kind}, {state}": self.over_seeds(kind, state, "separation")
            for kind in KINDS
            for state in ("untrained", "trained")
        }


def recorded_models() -> Recorded:
    """Read the runs of the three models."""
    record = records.load("contexts-stories")
    by_seed = sorted(record.results, key=lambda result: result["seed"])
    runs = {
        kind: [result for result in by_seed if result["variant"] == kind]
        for kind in KINDS
    }
    return Recorded(record, runs)


def bags_of_words(rows: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Return the separation of the senses of each word by word counts: no model, only
    the other words of its sentences, as the one layer of a table."""
    texts = [row["text"][: row["start"]] + row["text"][row["end"] :] for row in rows]
    counts = CountVectorizer().fit_transform(texts).toarray()
    return separations([torch.from_numpy(counts).float()], rows)


def planes(
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    data: SenseStories,
    pieces: Sequence[str],
) -> tuple[list[str], dict[str, dict[str, np.ndarray]]]:
    """The senses of the uses of the first pseudo-word, and where each model of the
    first seed puts them."""
    uses, pair = data.uses["kind"], data.pairs["kind"][0]
    senses = [pieces[pair[sense]] for sense in uses.senses[uses.words == 0].tolist()]
    panels = {}
    for row in ("untrained", "trained"):
        panels[row] = {"static": np.zeros((len(senses), 2))}
        panels[row] |= {kind: np.array(runs[kind][0][row]["plane"]) for kind in KINDS}
    return senses, panels
