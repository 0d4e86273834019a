"""What the catalogue knows of a data set: its columns, where it comes from, and the
facts on its card."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from datasets import Dataset, DatasetDict, Features

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Hub:
    """Where a data set lies on the Hugging Face hub, and what it calls our columns and
    splits."""

    path: str
    columns: Mapping[str, str]
    splits: Mapping[str, str]
    config: str | None = None
    revision: str | None = None  # a branch, where the main one holds no parquet files
    values: Mapping[str, Callable[[Any], Any]] = field(
        default_factory=dict
    )  # our column -> what to make of theirs
    kept: Callable[[Mapping[str, Any]], bool] | None = (
        None  # which of their rows; all if not given
    )


@dataclass(frozen=True)
class DataSet:
    """One data set: its columns, where it can come from, and the facts that its card
    states."""

    name: str
    title: str
    description: str
    features: Features
    column_notes: Mapping[str, str]
    splits: tuple[str, ...]
    licence: str
    citation: str
    quirks: tuple[str, ...]
    get_it: str
    optional_features: Features | None = None
    show_rows: bool = True  # whether the licence lets a public page print some
    embedded: (
        Callable[[], Mapping[str, Dataset | Sequence[Mapping[str, Any]]]] | None
    ) = None
    made: str = (  # how the embedded rows come about, for the announcement
        "generated on this machine"
    )
    more: Callable[[DatasetDict], str] | None = (
        None  # what else the card shows of embedded rows
    )
    hub: Hub | None = None
    from_lines: Callable[[Sequence[str], str], list[Any]] | None = (
        None  # raw lines, split -> rows
    )
    optional_splits: tuple[
        str, ...
    ] = ()  # a folder may lack these; the announcement says so

    @property
    def sources(self) -> tuple[str, ...]:
        """The words that `source` may be for this data set; a folder is always
        possible."""
        return (
            *(["embedded"] if self.embedded else []),
            *(["hub"] if self.hub else []),
            "a folder",
        )
