"""`pydocs-choice`: which of four sentences goes on where a text stops?"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from datasets import Dataset

from course_lib.data import pydocs
from course_lib.data.data_set import of_endings
from course_lib.data.pydocs_tasks import HELD_OUT_FIRST, Row, content_words, drawn, lot
from course_lib.data.sentences import split_sentences

CHOICES = 4
FEATURES = of_endings("context")
SHORTEST, LONGEST = 7, 40  # words of a sentence
MOST = {"train": 4_000, "validation": 600, "test": 600}
CANDIDATES = 300  # real endings of other texts, among which the wrong ones are chosen


class _Text(NamedTuple):
    package: str
    module: str
    context: str
    ending: str


def make() -> Mapping[str, Sequence[Row]]:
    """Make the task from the corpus."""
    corpus = pydocs.load()
    made: dict[str, list[Row]] = {}
    held_out: set[str] = set()
    for split in HELD_OUT_FIRST:
        # A few more than needed, as some will go: short sentences stand in several
        # modules word for word.
        found = _rows(drawn(_texts(corpus[split]), "".join), MOST[split] * 11 // 10)
        made[split] = [row for row in found if held_out.isdisjoint(_sentences(row))][
            : MOST[split]
        ]
        held_out.update(text for row in made[split] for text in _sentences(row))
    return {split: made[split] for split in pydocs.SPLITS}


def _sentences(row: Row) -> list[str]:
    return [str(row["context"]), *(str(row[f"ending{i}"]) for i in range(CHOICES))]


def _texts(documents: Dataset) -> Iterator[_Text]:
    """Of each paragraph with a second sentence, the place where it goes on."""
    columns = (documents[name] for name in ("package", "module", "paragraphs"))
    for package, module, paragraphs in zip(*columns, strict=True):
        for paragraph in paragraphs:
            sentences = split_sentences(paragraph)
            if len(sentences) < 2:
                continue
            at = 1 + lot(paragraph, len(sentences) - 1)
            context, ending = " ".join(sentences[max(0, at - 2) : at]), sentences[at]
            if (
                _long_enough(ending)
                and _long_enough(sentences[at - 1])
                and ending[-1] in ".!?"
            ):
                yield _Text(package, module, context, ending)


def _long_enough(sentence: str) -> bool:
    return SHORTEST <= len(sentence.split()) <= LONGEST


def _rows(texts: Sequence[_Text], most: int) -> Iterator[Row]:
    """Set beside each real ending three of other modules of the package that share as
    many words with the context."""
    pools: dict[str, list[_Text]] = defaultdict(list)
    for text in texts:
        pools[text.package].append(text)
    words = {
        text: (content_words(text.context), content_words(text.ending))
        for text in texts
    }
    made = 0
    for text in texts:
        pool = pools[text.package]
        start = lot(text.ending, len(pool))
        others = [
            other
            for other in (pool[start:] + pool[:start])[:CANDIDATES]
            if other.module != text.module
        ]
        own, length = len(words[text][0] & words[text][1]), len(text.ending.split())
        others = [
            other
            for other in others
            if 0.6 * length <= len(other.ending.split()) <= length / 0.6
        ]
        if len(others) < 5 * CHOICES or made == most:
            continue
        others.sort(key=lambda other: abs(len(words[text][0] & words[other][1]) - own))
        label = lot(text.context, CHOICES)
        # Some sentences stand in several modules: no two choices may be the same.
        different = dict.fromkeys(
            other.ending for other in others if other.ending != text.ending
        )
        endings = list(different)[: CHOICES - 1]
        endings.insert(label, text.ending)
        made += 1
        yield {
            "context": text.context,
            **{f"ending{i}": ending for i, ending in enumerate(endings)},
            "label": label,
        }
