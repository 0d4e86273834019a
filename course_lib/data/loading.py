"""One way in to every data set of the course: :func:`load`."""

import difflib
import logging
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import (
    ClassLabel,
    Dataset,
    DatasetDict,
    DatasetInfo,
    Features,
    List,
    Value,
    load_dataset,
)
from datasets.table import table_cast
from pyarrow import ArrowInvalid

from course_lib.data.catalogue import DATASETS, make_embedded
from course_lib.data.data_set import DataSet, Hub


class _StdoutHandler(logging.StreamHandler):
    """Writes to whatever sys.stdout is now: notebooks and tests replace it after this
    module is imported."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        super().emit(record)


# stdout, not stderr: in a notebook the source of the data is a result, not a warning.
# To silence: logging.getLogger("course_lib.data").setLevel("WARNING")
log = logging.getLogger("course_lib.data")
log.addHandler(_StdoutHandler())
log.propagate = False
log.setLevel(logging.INFO)


def load(name: str, source: str | os.PathLike[str] | None = None) -> DatasetDict:
    """Load a data set by name, with the same columns whatever its source, and say which
    source was used."""
    entry = find(name)
    chosen, why = (source, "") if source is not None else _default_source()
    if str(chosen) == "embedded":
        data, where = _from_embedded(entry, why), f"embedded, {entry.made}"
    elif str(chosen) == "hub":
        data, where = _from_hub(entry), f"hub, {entry.hub.path if entry.hub else ''}"
    else:
        folder = Path(chosen).expanduser()
        data, where = _from_folder(entry, folder, why), f"folder, {folder / entry.name}"
    where += "".join(
        f", without {split}" for split in entry.splits if split not in data
    )
    counts = ", ".join(f"{len(rows):,} {split}" for split, rows in data.items())
    log.info("%s: %s%s (%s)", entry.name, where, why, counts)
    return data


def find(name: str) -> DataSet:
    """Return the row of the catalogue with this name."""
    if name in DATASETS:
        return DATASETS[name]
    close = difflib.get_close_matches(str(name), DATASETS, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(
        f"no data set is called {name!r}{hint} Known: {', '.join(sorted(DATASETS))}"
    )


def _default_source() -> tuple[str, str]:
    value = os.environ.get("COURSE_DATA", "")
    return (value, " (set by COURSE_DATA)") if value else ("embedded", "")


def _from_embedded(entry: DataSet, why: str) -> DatasetDict:
    if entry.embedded is None:
        raise ValueError(
            f"{entry.name} is not embedded{why}: it comes from"
            f" {' or '.join(entry.sources)}. {entry.get_it}"
        )
    return make_embedded(entry)


def _from_hub(entry: DataSet) -> DatasetDict:
    if entry.hub is None:
        raise ValueError(
            f"{entry.name} has no copy on the hub: it comes from"
            f" {' or '.join(entry.sources)}"
        )
    return DatasetDict(
        {split: _hub_split(entry, entry.hub, split) for split in entry.splits}
    )


def _hub_split(entry: DataSet, hub: Hub, split: str) -> Dataset:
    theirs = list(hub.columns.values())
    try:
        # Streaming chosen columns reads those columns of the remote parquet files
        # alone: not 10 GB of images.
        chosen = {"name": hub.config} if hub.config else {}
        chosen |= {"revision": hub.revision} if hub.revision else {}
        stream = load_dataset(
            hub.path, split=hub.splits[split], columns=theirs, streaming=True, **chosen
        )
        table: dict[str, list[Any]] = {}
        for row in stream if hub.kept is None else filter(hub.kept, stream):
            for column, value in row.items():
                table.setdefault(column, []).append(value)
    # no network, no such repository, a broken download: requests and datasets raise
    # OSErrors
    except OSError as error:
        raise OSError(
            f"the hub copy of {entry.name} ({hub.path}, {split}) could not be read:"
            f" {error}. Check the network, or use another source. {entry.get_it}"
        ) from error
    place = f"hub:{hub.path}/{split}"
    if entry.from_lines is not None:
        return _from_lines(entry, table[theirs[0]], split, place)
    ours = {hub_name: name for name, hub_name in hub.columns.items()}
    named = {ours.get(column, column): values for column, values in table.items()}
    for column, convert in hub.values.items():
        named[column] = [convert(value) for value in named[column]]
    return _checked(entry, Dataset.from_dict(named), place)


def _from_folder(entry: DataSet, folder: Path, why: str) -> DatasetDict:
    if not folder.is_dir():
        raise FileNotFoundError(
            f"source {str(folder)!r}{why} is neither 'embedded' nor 'hub' nor a folder"
            f" that exists; {entry.name} comes from {' or '.join(entry.sources)}"
        )
    splits = {}
    for split in entry.splits:
        file = folder / entry.name / f"{split}.parquet"
        lines = file.with_suffix(".txt")
        if not file.is_file() and entry.from_lines is not None and lines.is_file():
            text = lines.read_text(encoding="utf-8").split("\n")
            splits[split] = _from_lines(entry, text, split, str(lines))
            continue
        if not file.is_file() and split in entry.optional_splits:
            continue
        if not file.is_file():
            raise FileNotFoundError(
                f"{file} does not exist; a source folder{why} holds"
                f" {entry.name}/<split>.parquet. {entry.name} comes from"
                f" {' or '.join(entry.sources)}. {entry.get_it}"
            )
        splits[split] = _checked(entry, _read(file), str(file))
    return DatasetDict(splits)


def _from_lines(
    entry: DataSet, lines: Sequence[str], split: str, where: str
) -> Dataset:
    assert entry.from_lines is not None
    rows = Dataset.from_list(entry.from_lines(lines, split), entry.features)
    return _checked(entry, rows, where)


def _read(file: Path) -> Dataset:
    try:
        # Not Dataset.from_parquet, which leaves a second copy of the data in a cache
        # folder.
        return Dataset(pq.read_table(file))
    except (ArrowInvalid, OSError) as error:
        raise ValueError(
            f"{file} cannot be read as parquet: {error}. Write or download it again"
        ) from error


def _checked(entry: DataSet, rows: Dataset, where: str) -> Dataset:
    """Keep the columns of the card, in its order and types; refuse rows that
    lack one."""
    found = rows.features
    optional = {c: t for c, t in (entry.optional_features or {}).items() if c in found}
    wanted = Features({**entry.features, **optional})
    for column in entry.features:
        if column not in found:
            raise ValueError(
                f"{where} has no column {column!r}; {entry.name} needs"
                f" {', '.join(entry.features)}; found {', '.join(found) or 'none'}"
            )
    chosen = rows.select_columns(list(wanted))
    for column, feature in wanted.items():
        if not _fits(chosen.features[column], feature):
            raise ValueError(
                f"{where}: column {column!r} holds {chosen.features[column]}; expected"
                f" {feature}"
            )
        missing = chosen.data.column(column).null_count
        if missing:
            raise ValueError(
                f"{where}: column {column!r} has no value in {missing:,} of"
                f" {len(chosen):,} rows"
            )
    if chosen.features != wanted:
        try:
            # Not chosen.cast: it copies by way of a file and shows a bar for it.
            chosen = Dataset(
                table_cast(chosen.data.table, wanted.arrow_schema),
                DatasetInfo(features=wanted),
            )
        # the name of a label that the card does not list
        except (ValueError, TypeError, ArrowInvalid) as error:
            raise ValueError(
                f"{where}: {error}; {entry.name} holds {wanted}"
            ) from error
    _check_labels(chosen, where)
    return chosen


def _check_labels(rows: Dataset, where: str) -> None:
    """Refuse a number that stands for no label, such as the -1 of rows whose label is
    kept secret."""
    for column, feature in rows.features.items():
        kind = feature.feature if isinstance(feature, List) else feature
        if isinstance(kind, ClassLabel):
            stored = rows.data.column(column)
            flat = stored if kind is feature else pc.list_flatten(stored)
            if unknown := {*pc.unique(flat).to_pylist()} - {*range(len(kind.names))}:
                raise ValueError(
                    f"{where}: column {column!r} holds {sorted(unknown, key=str)[0]},"
                    f" which stands for no label; expected 0 to {len(kind.names) - 1}:"
                    f" {', '.join(kind.names)}"
                )


def _fits(found: object, wanted: object) -> bool:
    """Whether a column is of the kind that the card lists; a label may be stored as its
    number or as its name."""
    if isinstance(wanted, ClassLabel):
        return isinstance(found, ClassLabel) or _kind(found) in (
            _kind(Value("int64")),
            _kind(Value("string")),
        )
    if isinstance(wanted, List):
        return isinstance(found, List) and _fits(found.feature, wanted.feature)
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and set(found) == set(wanted)
            and all(_fits(found[k], wanted[k]) for k in wanted)
        )
    return _kind(found) == _kind(wanted)


def _kind(feature: object) -> str:
    """Name a type without its storage width: pandas and pyarrow write the same text as
    string or large_string."""
    return re.sub(r"large_|Large|(?<=int)\d+|(?<=float)\d+", "", str(feature))
