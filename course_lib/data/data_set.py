"""What the catalogue knows of a data set: its columns, where it comes from, and the
facts on its card, which stand in `cards.toml`."""

import hashlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

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
    # our column -> what to make of theirs
    values: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    # which of their rows; all if not given
    kept: Callable[[Mapping[str, Any]], bool] | None = None


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
    # how the embedded rows come about, for the announcement
    made: str = "generated on this machine"
    # what else the card shows of embedded rows
    more: Callable[[DatasetDict], str] | None = None
    hub: Hub | None = None
    # raw lines, split -> rows
    from_lines: Callable[[Sequence[str], str], list[Any]] | None = None
    # a folder may lack these; the announcement says so
    optional_splits: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The words that `source` may be for this data set; a folder is always
        possible."""
        return (
            *(["embedded"] if self.embedded else []),
            *(["hub"] if self.hub else []),
            "a folder",
        )


_CARDS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("cards.toml").read_text(encoding="utf-8")
)


def described(
    name: str, features: Features, splits: tuple[str, ...] = SPLITS, **known: Any
) -> DataSet:
    """Return a data set: what code knows of it, with the words of its card."""
    phrases = {key: text.format(name=name) for key, text in _CARDS["phrases"].items()}

    def told(words: Any) -> Any:
        if isinstance(words, str):
            return " ".join(words.format(name=name, **phrases).split())
        if isinstance(words, list):
            return tuple(map(told, words))
        if isinstance(words, dict):
            return {key: told(text) for key, text in words.items()}
        return words

    return DataSet(
        name, features=features, splits=splits, **told(_CARDS[name]), **known
    )


def hub(
    path: str,
    features: Features,
    config: str | None = None,
    splits: Sequence[str] | Mapping[str, str] = SPLITS,
    **known: Any,
) -> Hub:
    """Return the place of a data set whose hub copy has our names, but for what is
    said."""
    if not isinstance(splits, Mapping):
        splits = {split: split for split in splits}
    columns = known.pop("columns", {name: name for name in features})
    return Hub(path, columns, splits, config, **known)


def texts(*columns: str, **others: Any) -> Features:
    """Return columns of text and others."""
    return Features({**dict.fromkeys(columns, Value("string")), **others})


def labelled(labels: Sequence[str], *columns: str, label: str = "label") -> Features:
    """Return columns of text and a label."""
    return texts(*columns, **{label: ClassLabel(names=list(labels))})


def tagged_tokens(tags: Sequence[str], *columns: str) -> Features:
    """Return columns of text, and one of tokens with their tags."""
    kinds = {
        "tokens": List(Value("string")),
        "ner_tags": List(ClassLabel(names=list(tags))),
    }
    return texts(*columns, **kinds)


def as_squad() -> Features:
    """Return the columns of a data set of questions with answers that are spans of
    their context."""
    answers = {"text": List(Value("string")), "answer_start": List(Value("int32"))}
    return texts("id", "title", "context", "question", answers=answers)


def of_endings(*before: str) -> Features:
    """Return the columns of a data set of four endings of which one is right."""
    return labelled("0123", *before, *(f"ending{i}" for i in range(4)))


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
