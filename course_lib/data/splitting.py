"""A split made of another one, where a data set has none: by a column, so that what
belongs together stays together."""

import hashlib
from collections.abc import Mapping

from datasets import Dataset, DatasetDict

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}


def split_by(
    rows: Dataset, column: str, shares: Mapping[str, float] | None = None, seed: int = 0
) -> DatasetDict:
    """Split rows so that rows that agree in a column are in one split."""
    shares = SHARES if shares is None else shares
    if column not in rows.column_names:
        raise ValueError(
            f"there is no column {column!r} to split by; the columns are"
            f" {', '.join(rows.column_names)}"
        )
    if abs(sum(shares.values()) - 1) > 1e-6 or min(shares.values()) <= 0:
        raise ValueError(
            f"the shares {dict(shares)} must be positive and add up to 1, e.g. {SHARES}"
        )
    values = sorted(
        set(rows[column]),
        key=lambda value: hashlib.sha256(f"{seed} {value}".encode()).digest(),
    )
    if len(values) < len(shares):
        raise ValueError(
            f"column {column!r} has {len(values)} different values: too few for"
            f" {len(shares)} splits"
        )
    split_of: dict[str, str] = {}
    share = 0.0
    for split, more in shares.items():
        begin, share = share, share + more
        split_of |= dict.fromkeys(
            values[round(begin * len(values)) : round(share * len(values))], split
        )
    where = [split_of[value] for value in rows[column]]
    return DatasetDict(
        {
            split: rows.select([i for i, own in enumerate(where) if own == split])
            for split in shares
        }
    )
