"""A corpus small enough to pre-train on in seconds, in a folder that
`course_lib.data.load` reads."""

import random
from pathlib import Path

from datasets import Dataset

from course_lib.data.corpus import FEATURES

VOCAB_SIZE = 90


def write(folder: Path, documents: int = 60) -> Path:
    """Write the splits of "stories": documents of a few sentences, each about one
    animal and its way to move."""
    draw = random.Random(5)
    for split, count in (("train", documents), ("validation", 11), ("test", 13)):
        rows = [row(draw, f"{split}/{number}") for number in range(count)]
        (folder / "stories").mkdir(parents=True, exist_ok=True)
        Dataset.from_list(rows, FEATURES).to_parquet(
            folder / "stories" / f"{split}.parquet"
        )
    return folder


def row(draw: random.Random, name: str) -> dict:
    animal, way = draw.choice(
        (("fox", "runs"), ("owl", "flies"), ("eel", "swims"), ("toad", "hops"))
    )
    where = draw.choice(("home", "north", "away"))
    sentences = [
        f"The {draw.choice(('old', 'red', 'sly'))} {animal} {way}"
        f" {draw.choice((where, 'far', 'fast'))}."
        for _ in range(draw.randint(4, 9))
    ]
    return {
        "document": name,
        "package": "p",
        "module": "m",
        "title": animal,
        "paragraphs": [" ".join(sentences)],
    }
