"""Turn the files of the Multi30k repository into a folder that
:func:`course_lib.data.load` reads."""

import gzip
from pathlib import Path

from datasets import Dataset

# Our split -> the name of its files in data/task1/raw of
# https://github.com/multi30k/dataset
FILES = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
LANGUAGES = ("en", "fr", "de")


def convert(raw: Path, folder: Path) -> list[Path]:
    """Write <folder>/multi30k/<split>.parquet from the repository's gzipped text
    files."""
    splits: dict[str, dict[str, list[str]]] = {}
    for split, stem in FILES.items():
        columns = {
            language: _lines(Path(raw) / f"{stem}.{language}.gz")
            for language in LANGUAGES
        }
        counts = {language: len(lines) for language, lines in columns.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(
                f"{stem}.*.gz are not parallel: {counts} lines; download the three"
                " files again"
            )
        splits[split] = columns
    # Nothing is written before everything has been read: a failure leaves no half
    # folder.
    target = Path(folder) / "multi30k"
    target.mkdir(parents=True, exist_ok=True)
    written = [target / f"{split}.parquet" for split in splits]
    for path, columns in zip(written, splits.values(), strict=True):
        Dataset.from_dict(columns).to_parquet(str(path))
    return written


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist; give the folder data/task1/raw of the Multi30k"
            " repository"
        )
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").strip() for line in file]
