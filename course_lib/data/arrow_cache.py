"""Splits that take a while to make, kept as Arrow files under a fingerprint of what
they were made from.

They lie in the folder in which `datasets` keeps its own Arrow files (HF_DATASETS_CACHE
moves it), memory-mapped when read. A file that is not what was written is reported and
made again.
"""

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets.config
import pyarrow as pa
from datasets import Dataset, DatasetInfo, Features
from filelock import FileLock

log = logging.getLogger("course_lib.data")
RECORD = "record.json"


def folder_for(name: str, fingerprint: Mapping[str, str]) -> Path:
    """Return the folder for splits made from these ingredients."""
    digest = hashlib.sha256(
        json.dumps(dict(fingerprint), sort_keys=True).encode()
    ).hexdigest()
    return (
        Path(datasets.config.HF_DATASETS_CACHE) / "course_lib" / f"{name}-{digest[:16]}"
    )


def cached(
    name: str,
    fingerprint: Mapping[str, str],
    features: Features,
    make: Callable[[], Mapping[str, Sequence[Mapping[str, Any]]]],
) -> dict[str, Dataset]:
    """Return the splits from the cache, or make them and keep them there."""
    folder = folder_for(name, fingerprint)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        fault = _fault(folder)
        if fault:
            if folder.exists():
                log.warning(
                    "%s: the copy in %s is damaged (%s); it is made again",
                    name,
                    folder,
                    fault,
                )
                shutil.rmtree(folder)
            _write(folder, fingerprint, features, make())
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    info = DatasetInfo(features=features)
    return {
        split: Dataset(_table(folder / f"{split}.arrow"), info)
        for split in record["files"]
    }


def _write(
    folder: Path,
    fingerprint: Mapping[str, str],
    features: Features,
    splits: Mapping[str, Sequence[Mapping[str, Any]]],
) -> None:
    """Write all files into a folder of another name, then rename it: an interrupted run
    leaves nothing half-made."""
    making = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    files = {}
    for split, rows in splits.items():
        table = pa.Table.from_pylist(list(rows), schema=features.arrow_schema)
        with (
            pa.OSFile(str(making / f"{split}.arrow"), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=1_000)
        files[split] = _digest(making / f"{split}.arrow")
    record = {"files": files, "made_from": dict(fingerprint)}
    (making / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
    os.replace(making, folder)


def _fault(folder: Path) -> str:
    """Say what is wrong with a cached copy; nothing where it is whole."""
    try:
        files = json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"]
        for split, digest in files.items():
            if _digest(folder / f"{split}.arrow") != digest:
                return f"{split}.arrow does not have the content that was written"
    except (OSError, ValueError, KeyError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _digest(file: Path) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _table(file: Path) -> pa.Table:
    return pa.ipc.open_stream(pa.memory_map(str(file))).read_all()
