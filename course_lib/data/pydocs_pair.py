"""`pydocs-pair`: do a summary line and a description belong to the same class or
function?"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from course_lib.data import pydocs, pydocs_blocks, pydocs_prose
from course_lib.data.data_set import labelled
from course_lib.data.pydocs_tasks import (
    Row,
    chosen,
    content_words,
    distinct,
    drawn,
    lot,
)
from course_lib.data.sentences import split_sentences

FEATURES = labelled(("different", "same"), "sentence1", "sentence2")
SHORTEST, LONGEST = (4, 10), (30, 80)  # words of a summary, and of a description
# things: the packages with fewer are one package when descriptions change places
SMALL = 12
MOST = {"train": 4_000, "validation": 600, "test": 600}


class _Thing(NamedTuple):
    package: str
    module: str
    summary: str
    description: str


def make() -> Mapping[str, Sequence[Row]]:
    """Make the task from the docstrings whose paragraphs are in the corpus."""
    things = _things()
    rows = {
        split: list(_rows(drawn(things[split], "".join))) for split in pydocs.SPLITS
    }
    left = distinct(rows, lambda row: f"{row['sentence1']} {row['sentence2']}")
    return chosen(left, lambda row: str(row["sentence1"]), MOST)


def _things() -> dict[str, list[_Thing]]:
    corpus = pydocs.load()
    known = {
        split: {text for texts in rows["paragraphs"] for text in texts}
        for split, rows in corpus.items()
    }
    found: dict[str, list[_Thing]] = {split: [] for split in pydocs.SPLITS}
    used: set[str] = set()
    columns = pydocs.docstrings()[:]
    for package, module, text in zip(
        columns["package"], columns["module"], columns["text"], strict=True
    ):
        split = pydocs.split_of(module)
        summary, description = _parts(text, known[split])
        if summary and description and used.isdisjoint((summary, description)):
            used.update((summary, description))
            if (
                SHORTEST[0] <= len(summary.split()) <= LONGEST[0]
                and SHORTEST[1] <= len(description.split()) <= LONGEST[1]
            ):
                found[split].append(_Thing(package, module, summary, description))
    return found


def _parts(docstring: str, known: Set[str]) -> tuple[str, str]:
    """The summary and what follows: the first two paragraphs of prose, or the first
    sentence of one and its others."""
    parts = map(pydocs_prose.plain, pydocs_blocks.paragraphs(docstring)[:4])
    first = next(parts, "")
    if first not in known:
        return "", ""
    sentences = split_sentences(first)
    following = next((part for part in parts if part in known), "")
    return (
        (sentences[0], " ".join(sentences[1:]))
        if len(sentences) > 1
        else (first, following)
    )


def _rows(things: Sequence[_Thing]) -> Iterator[Row]:
    """Half of the things as they are; in the other half, of each package, descriptions
    change places."""
    said = {thing: content_words(thing.description) for thing in things}
    groups: dict[str, list[_Thing]] = defaultdict(list)
    for thing in things:
        if lot(thing.description, 2):
            yield _row(thing.summary, thing.description, 1)
        else:
            groups[thing.package].append(thing)
    small = [package for package, group in groups.items() if len(group) < SMALL]
    groups["others"] = [thing for package in small for thing in groups.pop(package)]
    for group in groups.values():
        free = list(group)
        for thing in group:
            words = content_words(thing.summary)
            own = len(words & said[thing])
            others = [other for other in free if other.module != thing.module]
            if others:
                shared = [len(words & said[x]) for x in others]
                distances = [abs(count - own) for count in shared]
                other = others[distances.index(min(distances))]
                free.remove(other)
                yield _row(thing.summary, other.description, 0)


def _row(summary: str, description: str, label: int) -> Row:
    return {"sentence1": summary, "sentence2": description, "label": label}
