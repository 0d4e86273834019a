"""What the library's tests share."""

import os
from pathlib import Path

import pytest

from course_lib.data.translation import Pair, generate
from course_lib.experiments.seq2seq import Corpus
from course_lib.experiments.text import encode_pairs, train_tokenizer

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of public data sets outside the repository; without it, the test is
    skipped and says why."""
    folder = Path(
        os.environ.get("COURSE_DATA") or ROOT.parent / "shared" / "data"
    ).expanduser()
    if not (folder / "multi30k").is_dir():
        pytest.skip(
            f"no public data: neither COURSE_DATA nor {ROOT.name}/../shared/data holds"
            " a folder multi30k"
        )
    return folder


@pytest.fixture(scope="session")
def sentences() -> list[Pair]:
    """Generated pairs of every length from 3 to 60 English words, 26 of each."""
    return generate(26 * 58, seed=41)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """A small corpus from the real grammar: 60 pairs to train on, 12 to validate, 17 to
    test."""
    rows = generate(89, seed=3, min_length=4, max_length=16)
    parts = {"train": rows[:60], "validation": rows[60:72], "test": rows[72:]}
    text = {
        s: {name: [row[name] for row in part] for name in ("en", "fr", "alignment")}
        for s, part in parts.items()
    }
    tokenizers = (
        train_tokenizer([row["en"] for row in rows], "word"),
        train_tokenizer([row["fr"] for row in rows], "word"),
    )
    pairs = {
        split: encode_pairs(columns["en"], columns["fr"], tokenizers)
        for split, columns in text.items()
    }
    return Corpus(text, pairs, tokenizers)
