"""Two-faced words in the stories: what chapter 7 trains its three models on, and where
it measures them.

There are two groups of pseudo-words. Of those of *kind*, the two words are of different
classes, *florist* and *grapes*: much around a use tells which it is. Of those of
*number*, one is a thing and one a pair, *lamp* and *boots*, and *was* or *were*
follows: the next word tells which it is, and what is said before tells it only where it
was mentioned already.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from course_lab.ch06_pretraining.pretrain_data import Corpus, documents
from course_lab.ch06_pretraining.pretraining_probes import CLASSES
from course_lab.ch07_embeddings.pseudo_words import (
    Merged,
    PseudoWord,
    Uses,
    draw_pseudo_words,
    find_uses,
    merge,
    tokens_of,
)
from course_lib.data import stories_lexicon as lex
from course_lib.data.stories import generate
from course_lib.pretraining.sequences import Specials

NUMBER: Mapping[str, str] = dict.fromkeys(lex.THINGS, "one") | dict.fromkeys(
    lex.PAIRS, "two"
)
GROUPS = ("kind", "number")
VERBS = ("was", "were")  # which agree with the word before them


@dataclass(frozen=True)
class SenseStories:
    """Stories with pseudo-words."""

    train: Merged  # what models are trained on: the train split, its pairs merged
    pairs: Mapping[str, list[PseudoWord]]  # group -> its pseudo-words
    uses: Mapping[str, Uses]  # group -> uses in stories of the test split, told anew


def read_sense_stories(
    corpus: Corpus,
    pairs: int = 10,
    per_sense: int = 30,
    width: int = 32,
    seed: int = 0,
    stories: int = 4000,
    least: int = 100,
) -> SenseStories:
    """Draw pseudo-words, merge them in the train split, and find their uses in other
    stories."""
    train, vocab = corpus.stores["train"], corpus.tokenizer.vocab
    plural = {
        vocab[word]
        for word, number in NUMBER.items()
        if number == "two" and word in vocab
    }
    numbers = draw_pseudo_words(train, vocab, NUMBER, pairs, seed, least)
    drawn = {
        "number": [
            PseudoWord(*sorted(pair, key=plural.__contains__)) for pair in numbers
        ]
    }  # one, then two
    taken = {word for pair in drawn["number"] for word in pair}
    kinds = {
        w: c for w, c in CLASSES.items() if c != "person" and vocab.get(w) not in taken
    }
    of_kind = draw_pseudo_words(train, vocab, kinds, pairs, seed, least)
    drawn = {"kind": of_kind, **drawn}
    told = tokens_of(
        documents(generate("test", stories, seed=1000 + seed)), corpus.tokenizer
    )
    everything = [pair for group in GROUPS for pair in drawn[group]]
    uses = {}
    for number, (group, before) in enumerate(zip(GROUPS, (None, VERBS), strict=True)):
        next_ids = None if before is None else [vocab[verb] for verb in before]
        of_all = find_uses(
            told, everything, Specials.of(vocab), width, per_sense, seed, next_ids
        )
        uses[group] = _part(of_all, number * pairs, (number + 1) * pairs)
    return SenseStories(merge(train, everything), drawn, uses)


def _part(uses: Uses, begin: int, end: int) -> Uses:
    """The uses of some pseudo-words, which are numbered anew."""
    rows = torch.nonzero((uses.words >= begin) & (uses.words < end)).squeeze(1)
    return Uses(*(column[rows] for column in uses))._replace(
        words=uses.words[rows] - begin
    )
